// Operations of a feed: {"put": ...}, {"update": ...}, {"remove": ...}.

#include <fmt/format.h>

#include "fjord/document/json.h"
#include "json_tree.h"
#include "json_value.h"
#include "text.h"

namespace fjord {
namespace {

using Kind = JsonNode::Kind;
using Operation = FeedOperation::Kind;

Status invalid(std::uint64_t offset, std::string_view what) {
  return {StatusCode::InvalidArgument, fmt::format("JSON, byte {}: {}", offset, what)};
}

/// The members of an operation; null if absent.
struct OperationMembers {
  const JsonNode* put = nullptr;
  const JsonNode* update = nullptr;
  const JsonNode* remove = nullptr;
  const JsonNode* fields = nullptr;
  const JsonNode* type = nullptr;
  const JsonNode* condition = nullptr;
  const JsonNode* create = nullptr;

  const JsonNode** slot(std::string_view key) {
    if (key == "put" || key == "id") return &put;
    if (key == "update") return &update;
    if (key == "remove") return &remove;
    if (key == "fields") return &fields;
    if (key == "type") return &type;
    if (key == "condition") return &condition;
    return key == "create" ? &create : nullptr;
  }
};

/// Members that visits, gets and subscriptions print beside a document, so that their lines can be fed.
bool is_passed_over(std::string_view key) { return key == "pathId" || key == "timestamp_us" || key == "version"; }

Result<OperationMembers> find_members(const JsonTree& tree) {
  const JsonNode& root = tree.root();
  if (root.kind != Kind::Object) {
    return invalid(root.offset,
                   fmt::format("expected an operation, which is an object, found {}", to_string(root.kind)));
  }
  OperationMembers members;
  for (std::uint32_t i = tree.first(root); i != root.next; i = tree.at(i).next) {
    const JsonNode& member = tree.at(i);
    if (is_passed_over(member.key)) continue;
    const JsonNode** slot = members.slot(member.key);
    if (slot == nullptr) {
      return invalid(member.offset,
                     fmt::format("expected the members put, update or remove, fields, condition, create and type, "
                                 "found {}",
                                 quoted(member.key)));
    }
    if (*slot != nullptr) return invalid(member.offset, fmt::format("{} occurs twice", quoted(member.key)));
    *slot = &member;
  }
  const int ids = (members.put != nullptr) + (members.update != nullptr) + (members.remove != nullptr);
  if (ids != 1) return invalid(root.offset, "expected either put, update or remove");
  if (members.remove == nullptr && members.fields == nullptr) {
    return invalid(root.offset, members.put != nullptr ? "a put without fields" : "an update without fields");
  }
  if (members.remove != nullptr && members.fields != nullptr) {
    return invalid(members.fields->offset, "a remove has no fields");
  }
  if (members.remove != nullptr && members.create != nullptr) {
    return invalid(members.create->offset, "a remove creates nothing");
  }
  return members;
}

/// Null if neither the id nor `member` names the type; only a remove allows this.
Result<const DocumentType*> find_type(const DocumentTypeRepo& repo, const DocumentId& id, const JsonNode* member) {
  if (member != nullptr && member->kind != Kind::String) {
    return invalid(member->offset, fmt::format("expected the name of the type, found {}", to_string(member->kind)));
  }
  std::string_view name = id.type();
  if (name.empty() && member != nullptr) name = member->text;
  if (member != nullptr && member->text != name) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("JSON, byte {}: type {}, but the id {} names type {}", member->offset,
                              quoted(member->text), quoted(id.str()), name));
  }
  if (name.empty()) return nullptr;
  const DocumentType* type = repo.find(name);
  if (type == nullptr) {
    return Status(StatusCode::UnknownType,
                  fmt::format("document {}: unknown document type {}", quoted(id.str()), quoted(name)));
  }
  return type;
}

Status read_options(const OperationMembers& members, FeedOperation& operation) {
  if (const JsonNode* condition = members.condition) {
    if (condition->kind != Kind::String || condition->text.empty()) {
      return invalid(condition->offset,
                     fmt::format("expected a selection as condition, found {}",
                                 condition->kind == Kind::String ? "an empty string" : to_string(condition->kind)));
    }
    operation.condition = condition->text;
  }
  if (const JsonNode* create = members.create) {
    if (create->kind != Kind::Bool) {
      return invalid(create->offset, fmt::format("expected true or false, found {}", to_string(create->kind)));
    }
    operation.create_if_missing = create->boolean;
  }
  return Status::ok();
}

}  // namespace

Result<FeedOperation> parse_feed_operation(const DocumentTypeRepo& repo, std::string_view json) {
  return parse_feed_operation(repo, json, JsonValues::Exact);
}

Result<FeedOperation> parse_feed_operation(const DocumentTypeRepo& repo, std::string_view json, JsonValues values) {
  FJORD_TRY_ASSIGN(JsonTree tree, JsonTree::parse(json));
  FJORD_TRY_ASSIGN(OperationMembers members, find_members(tree));
  FeedOperation operation;
  operation.kind = members.put != nullptr      ? Operation::Put
                   : members.update != nullptr ? Operation::Update
                                               : Operation::Remove;
  const JsonNode& id = members.put != nullptr      ? *members.put
                       : members.update != nullptr ? *members.update
                                                   : *members.remove;
  if (id.kind != Kind::String) {
    return invalid(id.offset, fmt::format("expected a document id, found {}", to_string(id.kind)));
  }
  auto parsed = DocumentId::parse(id.text);
  if (!parsed) return parsed.error().with_context(fmt::format("JSON, byte {}", id.offset));
  operation.id = std::move(*parsed);
  FJORD_TRY_ASSIGN(const DocumentType* type, find_type(repo, operation.id, members.type));
  FJORD_TRY(read_options(members, operation));
  if (operation.kind == Operation::Remove) return operation;
  if (type == nullptr) {
    return Status(StatusCode::UnknownType,
                  fmt::format("JSON, byte {}: the id {} names no document type; add the member \"type\"", id.offset,
                              quoted(operation.id.str())));
  }
  if (operation.kind == Operation::Put) {
    FJORD_TRY_ASSIGN(operation.document,
                     encode_json_fields(tree, *members.fields, *type, operation.id, json.size(), values));
    return operation;
  }
  FJORD_TRY_ASSIGN(DocumentUpdate update, update_from_json(tree, *members.fields, *type, operation.id, values));
  update.set_create_if_missing(operation.create_if_missing);
  operation.update = std::move(update);
  return operation;
}

Result<DocumentUpdate> DocumentUpdate::from_json(const DocumentTypeRepo& repo, std::string_view json) {
  FJORD_TRY_ASSIGN(FeedOperation operation, parse_feed_operation(repo, json));
  if (operation.kind != Operation::Update) return invalid(0, "expected an update, found another operation");
  if (!operation.condition.empty()) return invalid(0, "an update with a condition where none is taken");
  return std::move(*operation.update);
}

}  // namespace fjord
