#include <fmt/format.h>

#include "commands/commands.h"
#include "fjord/document/garbage_rules.h"
#include "fjord/library/admin.h"
#include "fjord/library/detail/input_file.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

constexpr std::size_t kSchemaBytesMax = std::size_t{4} << 20;

/// Parses a file alone, so that the message names the file. Skips a file whose types inherit from other types.
Status check_schema(const std::string& file, const std::string& text) {
  const std::vector<std::string> one = {text};
  const auto repo = DocumentTypeRepo::build(one);
  if (text.find("inherits") != std::string::npos) return Status::ok();
  const Status status = repo ? GarbageRules::check(**repo) : repo.error();
  return status.is_ok() ? status : status.with_context(file);
}

std::string type_json(const DocumentType& type) {
  JsonText json;
  json.begin_object().key("type").text(type.name()).key("fields").begin_array();
  for (const Field& field : type.fields()) {
    json.begin_object().key("name").text(field.name).key("type").text(field.type->name());
    json.key("header").boolean(field.in_header).end_object();
  }
  json.end_array().end_object();
  return json.str();
}

std::string_view index_text(IndexRole role) {
  switch (role) {
    case IndexRole::Keyword:
      return "  (index: keyword)";
    case IndexRole::Group:
      return "  (index: group)";
    case IndexRole::Ad:
      return "  (index: ad)";
    case IndexRole::None:
      break;
  }
  return "";
}

std::string type_text(const DocumentType& type) {
  std::string text = type.name() + "\n";
  for (const Field& field : type.fields()) {
    text += fmt::format("  {:<24} {}{}{}\n", field.name, field.type->name(), field.in_header ? "  (header)" : "",
                        index_text(field.index));
  }
  return text;
}

}  // namespace

int run_schema_deploy(const SchemaArgs& args) {
  std::vector<std::string> schemas;
  for (const std::string& path : args.files) {
    const auto file = InputFile::open(path);
    if (!file) return report(file.error());
    auto text = (*file)->read_all(kSchemaBytesMax);
    if (!text) return report(text.error().with_context((*file)->name()));
    if (Status status = check_schema((*file)->name(), *text); !status) return report(status);
    schemas.push_back(std::move(*text));
  }
  return with_admin(args.common, [&](Admin admin) {
    const auto deployed = admin.deploy_schemas(std::move(schemas), args.may_drop);
    if (!deployed) return report_failure(deployed.error());
    for (const std::string& warning : deployed->warnings) complain("warning: " + warning);
    if (args.common.json()) {
      JsonText json;
      json.begin_object().key("schema_version").number(deployed->version).key("warnings").begin_array();
      for (const std::string& warning : deployed->warnings) json.text(warning);
      json.end_array().end_object();
      print_line(json.str());
    } else {
      print_line(fmt::format("schema version {}", deployed->version));
    }
    return static_cast<int>(kOk);
  });
}

int run_schema_list(const SchemaArgs& args) {
  Client client = client_of(args.common);
  if (const Status status = ready(client, args.common); !status) return report(status);
  if (const auto schemas = client.admin().schemas(); !schemas) return report(schemas.error());
  const auto types = client.types();
  if (!types) return report(types.error());
  for (const auto& type : (*types)->types()) {
    if (args.common.json()) {
      print_line(type_json(*type));
    } else {
      print(type_text(*type));
    }
  }
  return kOk;
}

}  // namespace fjord::cli
