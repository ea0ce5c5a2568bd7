#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fjord/library/arrow_abi.h"

namespace fjord {

/// A schema that is built by value and handed out as an ArrowSchema.
struct SchemaNode {
  std::string format;
  std::string name;
  bool nullable = true;
  std::map<std::string, std::string> metadata = {};
  std::vector<SchemaNode> children = {};
};

/// Makes `out` own a copy of the schema.
void export_schema(const SchemaNode& node, ArrowSchema* out);

/// The memory of one array that is handed out as an ArrowArray.
struct ArrayMemory {
  std::vector<std::string> buffers;  ///< The bitmap of valid rows first; empty: all rows are valid.
  std::vector<ArrowArray> children;
  bool has_bitmap = true;  ///< False for types without one.
};

/// Makes `out` own the memory.
void export_array(ArrayMemory memory, std::int64_t length, std::int64_t null_count, ArrowArray* out);

/// Returns the pairs of a schema's metadata.
std::map<std::string, std::string> metadata_of(const ArrowSchema& schema);

}  // namespace fjord
