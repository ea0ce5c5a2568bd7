#pragma once

#include <string>

#include "fjord/document/document.h"
#include "fjord/document/document_update.h"
#include "fjord/rpc/distributor_messages.h"

namespace fjord {

/// Makes an operation for AsyncClient::execute(). The caller can set condition, create, token, durability and field set
/// as members of the operation:
///
///     rpc::Operation put = put_operation(id, std::move(document));
///     put.condition = "song.version == 7";
///     client.execute(std::move(put), timeout, done);
inline rpc::Operation operation_on(rpc::OperationKind kind, std::string id) {
  rpc::Operation operation;
  operation.kind = kind;
  operation.id = std::move(id);
  return operation;
}

/// `field_set` is as in document/field_set.h; empty: all fields.
inline rpc::Operation get_operation(std::string id, std::string field_set = {}) {
  rpc::Operation operation = operation_on(rpc::OperationKind::Get, std::move(id));
  operation.field_set = std::move(field_set);
  return operation;
}
inline rpc::Operation get_json_operation(std::string id, std::string field_set = {}) {
  rpc::Operation operation = get_operation(std::move(id), std::move(field_set));
  operation.want_json = true;
  return operation;
}
inline rpc::Operation put_operation(std::string id, EncodedDocument document) {
  rpc::Operation operation = operation_on(rpc::OperationKind::Put, std::move(id));
  operation.header = std::move(document.header);
  operation.body = std::move(document.body);
  return operation;
}
/// `fields` is a JSON object; the distributor makes a document from it.
inline rpc::Operation put_json_operation(std::string id, std::string fields) {
  rpc::Operation operation = operation_on(rpc::OperationKind::Put, std::move(id));
  operation.json = std::move(fields);
  return operation;
}
inline rpc::Operation update_operation(const DocumentUpdate& update) {
  rpc::Operation operation = operation_on(rpc::OperationKind::Update, update.id().str());
  operation.update = update.encode();
  operation.create = update.create_if_missing();
  return operation;
}
/// `changes` is a JSON object of paths and actions, like "fields" in a feed (document/FEED.md).
inline rpc::Operation update_json_operation(std::string id, std::string changes) {
  rpc::Operation operation = operation_on(rpc::OperationKind::Update, std::move(id));
  operation.json = std::move(changes);
  return operation;
}
inline rpc::Operation remove_operation(std::string id) {
  return operation_on(rpc::OperationKind::Remove, std::move(id));
}

}  // namespace fjord
