#include "output/parquet.h"

#include <vector>

#include "output/json_text.h"
#include "output/python.h"

namespace fjord::cli {

bool is_parquet(const std::string& path) { return path.ends_with(".parquet"); }

Status check_parquet() {
  if (run_python("fjord-parquet.py", {"check"}, true) == 0) return Status::ok();
  return {StatusCode::NotImplemented,
          "Parquet needs python3 with the package pyarrow, which this machine does not have: pip install pyarrow, or "
          "use .jsonl or .jsonl.gz"};
}

Status jsonl_to_parquet(const std::string& jsonl, const std::string& parquet, const DocumentTypeRepo& types,
                        bool all_fields) {
  JsonText declared;
  declared.begin_object();
  for (const auto& type : types.types()) {
    declared.key(type->name()).begin_object();
    for (const Field& field : type->fields()) declared.key(field.name).text(field.type->name());
    declared.end_object();
  }
  declared.end_object();
  const std::vector<std::string> arguments = {"write", jsonl, parquet, all_fields ? "all" : "seen", declared.str()};
  if (run_python("fjord-parquet.py", arguments, false) == 0) return Status::ok();
  return {StatusCode::IoError, parquet + " cannot be written; the documents are in " + jsonl};
}

Status parquet_to_jsonl(const std::string& parquet, const std::string& jsonl) {
  if (run_python("fjord-parquet.py", {"read", parquet, jsonl}, false) == 0) return Status::ok();
  return {StatusCode::IoError, parquet + " cannot be read"};
}

}  // namespace fjord::cli
