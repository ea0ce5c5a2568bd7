#pragma once

#include <string>
#include <string_view>

#include "arrow/arrow_memory.h"
#include "fjord/document/document_type.h"

namespace fjord {

/// Keys and values of metadata: a schema that an export has made, a column of JSON texts, a map that is a weighted set.
inline constexpr const char* kArrowKey = "fjord";
inline constexpr const char* kArrowExport = "export";
inline constexpr const char* kArrowJson = "json";
inline constexpr const char* kArrowWeightedSet = "weightedset";

inline constexpr const char* kIdColumn = "_id";
inline constexpr const char* kVersionColumn = "_version";

/// Returns Arrow's name of a type of the C interface: "int64" for "l", "timestamp[us, tz=UTC]" for "tsu:UTC".
std::string arrow_type_name(std::string_view format);

/// Returns the Arrow field for values of this type.
SchemaNode arrow_field_of(const DataType& type, std::string name, bool nullable = true);

}  // namespace fjord
