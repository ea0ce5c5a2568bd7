#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/docblock.h"
#include "fjord/document/document.h"
#include "fjord/document/json.h"
#include "fjord/library/client.h"

namespace fjord::gateway {

/// Writes documents as JSON. Threading: one thread at a time.
class EntryWriter {
 public:
  /// `fields` selects fields in documents of any type; none, or a field set: all that the document has.
  EntryWriter(Client& client, std::shared_ptr<const DocumentTypeRepo> types, const std::vector<std::string>& fields);

  /// Sets id and JSON of a document, or only the id of a removed one. Fetches the schemas if they lack the document's
  /// type. Errors: Corruption; UnknownType; those of ClientCore::refresh().
  Status write(const EntryView& entry, std::string& id, std::string& json);
  /// Appends {"NAME":ID,"fields":{...}} without fields that have no content, or {"remove":ID} for a removed document.
  /// Appends nothing after an error. Errors: as write().
  Status append(const EntryView& entry, std::string_view name, JsonLines& to);

 private:
  Result<DocumentView> view_of(const EntryView& entry);
  std::span<const Field* const> fields_of(const DocumentType& type);

  Client& client_;
  std::shared_ptr<const DocumentTypeRepo> types_;
  std::vector<std::string> names_;
  std::map<const DocumentType*, std::vector<const Field*>> by_type_;
};

}  // namespace fjord::gateway
