#pragma once

#include <string>

#include "fjord/common/status.h"

namespace fjord::cli {

bool is_parquet(const std::string& path);

/// Parquet files are read and written by Python's pyarrow in a process of its own; there is no C++ package of it in
/// Debian. Errors: NotImplemented that says what to install.
Status check_parquet();
/// Makes a Parquet file of lines of {"put": ID, "fields": {...}}: a column "_id", and one for each field.
/// Errors: IoError; what went wrong is on standard error.
Status jsonl_to_parquet(const std::string& jsonl, const std::string& parquet);
/// The reverse. Rows without a column "_id" become flat objects.
Status parquet_to_jsonl(const std::string& parquet, const std::string& jsonl);

}  // namespace fjord::cli
