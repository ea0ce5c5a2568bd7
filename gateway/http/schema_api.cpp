// Handlers of /schemas/v1: document types.

#include "fjord/library/admin.h"
#include "fjord/library/detail/client_core.h"
#include "http/json_shape.h"
#include "http/own_api.h"

namespace fjord::gateway {
namespace {

std::string_view index_text(IndexRole role) {
  switch (role) {
    case IndexRole::Keyword:
      return "keyword";
    case IndexRole::Group:
      return "group";
    case IndexRole::Ad:
      return "ad";
    case IndexRole::None:
      break;
  }
  return "";
}

void write_type(const DocumentType& type, JsonText& json) {
  json.begin_object().member("name", type.name()).member("inherits", type.ancestors());
  if (!type.keep_while().empty()) json.member("keep_while", type.keep_while());
  json.key("fields").begin_array();
  for (const Field& field : type.fields()) {
    json.begin_object().member("name", field.name).member("type", field.type->name());
    json.member("header", field.in_header);
    if (field.index != IndexRole::None) json.member("index", index_text(field.index));
    json.end_object();
  }
  json.end_array().end_object();
}

Status list_schemas(Client& client, JsonText& json) {
  FJORD_TRY_ASSIGN(const std::vector<std::string> schemas, client.admin().schemas());
  FJORD_TRY_ASSIGN(const auto types, DocumentTypeRepo::build(schemas));
  json.begin_object().key("types").begin_array();
  for (const auto& type : types->types()) write_type(*type, json);
  json.end_array().member("schemas", schemas).end_object();
  return Status::ok();
}

Status get_schema(Client& client, const std::string& name, JsonText& json) {
  const auto types = client.core().types_with(name);
  if (!types && types.error().code() == StatusCode::UnknownType) {
    return {StatusCode::NotFound, types.error().message()};
  }
  FJORD_TRY(types.status());
  write_type(*(*types)->find(name), json);
  return Status::ok();
}

Status deploy(Client& client, const std::string& body, JsonText& json) {
  std::vector<std::string> schemas;
  std::vector<std::string> may_drop;
  FJORD_TRY(read_json(body, JsonShape().texts("schemas", schemas).texts("may_drop", may_drop).required("schemas")));
  if (schemas.empty()) return {StatusCode::InvalidArgument, "the body: \"schemas\": expected at least one text"};
  FJORD_TRY_ASSIGN(const DeployedSchemas deployed,
                   client.admin().deploy_schemas(std::move(schemas), std::move(may_drop)));
  json.begin_object().member("schema_version", deployed.version).member("warnings", deployed.warnings).end_object();
  return Status::ok();
}

}  // namespace

void add_schema_routes(RouteTable& routes, Client& client) {
  routes.add_waiting("GET", "/schemas/v1", {},
                     [&client](const ApiCall&, JsonText& json) { return list_schemas(client, json); });
  routes.add_waiting("GET", "/schemas/v1/{type}", {}, [&client](const ApiCall& call, JsonText& json) {
    return get_schema(client, call.part("type"), json);
  });
  routes.add_waiting("POST", "/schemas/v1", {}, [&client](const ApiCall& call, JsonText& json) {
    return deploy(client, call.request.body, json);
  });
}

}  // namespace fjord::gateway
