#include "fjord/library/detail/file_format.h"

namespace fjord {

FileFormat file_format(std::string_view path) {
  if (path.ends_with(".parquet")) return FileFormat::Parquet;
  if (path.ends_with(".gz")) path.remove_suffix(3);
  for (const std::string_view ending : {".jsonl", ".json", ".ndjson"}) {
    if (path.ends_with(ending)) return FileFormat::Lines;
  }
  return path.ends_with(".csv") ? FileFormat::Csv : FileFormat::Unknown;
}

}  // namespace fjord
