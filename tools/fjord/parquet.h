#pragma once

#include <string>

#include "fjord/common/status.h"
#include "fjord/document/document_type.h"

namespace fjord::cli {

bool is_parquet(const std::string& path);

/// Parquet files are read and written by Python's pyarrow in a process of its own; there is no C++ package of it in
/// Debian. Errors: NotImplemented that says what to install.
Status check_parquet();
/// Makes a Parquet file of lines of {"put": ID, "fields": {...}}: a column "_id", and one for each field of the
/// document types that occur, with the type that the schema says; `all_fields` false: only for those that occur. Arrays
/// of simple values are lists; what else is nested is JSON text. Errors: IoError; what went wrong is on standard error.
Status jsonl_to_parquet(const std::string& jsonl, const std::string& parquet, const DocumentTypeRepo& types,
                        bool all_fields);
/// The reverse. Rows without a column "_id" become flat objects.
Status parquet_to_jsonl(const std::string& parquet, const std::string& jsonl);

}  // namespace fjord::cli
