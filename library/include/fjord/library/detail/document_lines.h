#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/docblock.h"
#include "fjord/document/document_type.h"

namespace fjord {

/// Converts docblocks to JSON lines, {"put": ID, "fields": {...}} and {"remove": ID}, which `fjord feed` reads.
class DocumentLines {
 public:
  DocumentLines(std::shared_ptr<const DocumentTypeRepo> types, std::vector<std::string> names, bool timestamps = false)
      : types_(std::move(types)), names_(std::move(names)), timestamps_(timestamps) {}

  /// Appends all documents of the block to `out`. Returns their number. Errors: UnknownType, Corruption.
  Result<std::uint64_t> append(const std::string& docblock, std::string& out);
  /// Appends one document or removed entry; nothing for an entry of the field set [none]. Errors: as append().
  Status append_entry(const EntryView& entry, std::string& out);

 private:
  std::span<const Field* const> fields_of(const DocumentType& type);

  std::shared_ptr<const DocumentTypeRepo> types_;
  std::vector<std::string> names_;
  bool timestamps_;  ///< Adds "timestamp_us" to each line.
  std::map<const DocumentType*, std::vector<const Field*>> by_type_;
};

}  // namespace fjord
