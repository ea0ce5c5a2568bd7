#include "fjord/client/own_types.h"

#include <algorithm>
#include <fmt/format.h>

#include "fjord/common/coding.h"
#include "fjord/document/document_id.h"
#include "fjord/document/document_type.h"
#include "fjord/rpc/cluster_snapshot.h"

namespace fjord {
namespace {

const DocumentTypeRepo& own_types() {
  static const auto types = DocumentTypeRepo::build(rpc::builtin_schemas()).value();
  return *types;
}

/// Returns the type in what an operation writes: a header has it after its version, an update after its version and id.
const DocumentType* own_type_in(std::string_view written, bool is_update) {
  ByteReader reader(written);
  reader.fixed<std::uint8_t>();
  if (is_update) reader.string();
  const auto id = reader.fixed<std::uint32_t>();
  return reader.ok() ? own_types().find(id) : nullptr;
}

}  // namespace

bool is_own_type(std::string_view name) { return own_types().find(name) != nullptr; }

Status check_users_write(const rpc::Operation& operation) {
  if (operation.kind == rpc::OperationKind::Get) return Status::ok();
  const DocumentType* type = nullptr;
  if (const auto id = DocumentId::parse(operation.id); id) type = own_types().find(id->type());
  // An id of an old scheme names no type.
  if (type == nullptr) type = own_type_in(operation.header, false);
  if (type == nullptr) type = own_type_in(operation.update, true);
  if (type == nullptr) return Status::ok();
  return {StatusCode::Unauthorized,
          fmt::format("documents of type {} are Fjord's own: {} can be read, not written", type->name(), operation.id)};
}

}  // namespace fjord
