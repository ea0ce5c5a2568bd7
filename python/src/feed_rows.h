#pragma once

#include <memory>
#include <string>

#include "client_handle.h"
#include "fjord/client/operations.h"

namespace fjord::python {

/// Makes operations of the rows that a program feeds. A row is
///
///     (id, fields)                                  a put
///     a fjord.Document                              a put
///     {"put": id, "fields": {...}}                  and "condition", "create": as in document/FEED.md
///     {"update": id, "fields": {...}}
///     {"remove": id}
///
/// Threading: the interpreter lock.
class FeedRows {
 public:
  explicit FeedRows(ClientHandle& handle) : handle_(handle) {}

  /// Raises WrongType, and what DocumentId::parse() and to_document() raise. `id` is set as far as it is known.
  rpc::Operation to_operation(nb::handle row, std::string& id);

 private:
  rpc::Operation put(nb::handle id, nb::handle fields, std::string& text);
  rpc::Operation of_mapping(nb::handle row, std::string& id);
  const DocumentType& type_of(const DocumentId& id);

  ClientHandle& handle_;
  std::shared_ptr<const DocumentTypeRepo> types_;
  const DocumentType* type_ = nullptr;  ///< Type of the row before.
};

}  // namespace fjord::python
