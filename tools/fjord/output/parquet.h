#pragma once

#include <string>

#include "fjord/common/status.h"
#include "fjord/document/document_type.h"

namespace fjord::cli {

bool is_parquet(const std::string& path);

/// Checks that Python's pyarrow is installed. It reads and writes Parquet files in a separate process, because Debian
/// has no C++ package for them. Errors: NotImplemented that names the package to install.
Status check_parquet();
/// Converts lines of {"put": ID, "fields": {...}} to a Parquet file: a column "_id", and one for each field of the
/// document types that occur, with the type of the schema. If `all_fields` is false, only fields that occur get a
/// column. Arrays of simple values become lists, other nested values JSON text. Errors: IoError; details are on
/// standard error.
Status jsonl_to_parquet(const std::string& jsonl, const std::string& parquet, const DocumentTypeRepo& types,
                        bool all_fields);
/// Converts a Parquet file to the lines of jsonl_to_parquet(). Without a column "_id" the rows become flat objects.
Status parquet_to_jsonl(const std::string& parquet, const std::string& jsonl);

}  // namespace fjord::cli
