#pragma once

#include <string_view>

namespace fjord {

enum class FileFormat { Lines, Csv, Parquet, Unknown };

/// Returns the format that the ending of the name says: .jsonl, .json, .ndjson, .csv, each also with .gz behind, or
/// .parquet.
FileFormat file_format(std::string_view path);

}  // namespace fjord
