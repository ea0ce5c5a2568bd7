#include <charconv>
#include <fmt/format.h>
#include <functional>
#include <rapidjson/document.h>

#include "commands/commands.h"
#include "commands/json_argument.h"
#include "fjord/document/json.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{64} << 20;

std::string dump(const rapidjson::Value& value) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  value.Accept(writer);
  return std::string(buffer.GetString(), buffer.GetSize());
}

/// Returns the fields in `text`, which is an object of fields or {"put": id, "fields": {...}}, as `get` prints it, or
/// the same with "id" for "put". `kind` is the name of the id's member, "put" or "update". Errors: InvalidId if the
/// text has another id.
Result<std::string> fields_of(const std::string& text, const std::string& id, const char* kind = "put") {
  // The document parser reports malformed texts, because its messages contain the position.
  if (!check_json(text)) return text;
  rapidjson::Document json;
  json.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseFullPrecisionFlag>(text.data(), text.size());
  if (json.HasParseError() || !json.IsObject()) return text;
  auto put = json.FindMember(kind);
  if (put == json.MemberEnd() && std::string_view(kind) == "put") put = json.FindMember("id");
  const auto fields = json.FindMember("fields");
  if (put == json.MemberEnd() || fields == json.MemberEnd() || !put->value.IsString() || !fields->value.IsObject()) {
    return text;
  }
  if (id != put->value.GetString()) {
    return Status(StatusCode::InvalidId, fmt::format("the file holds the document \"{}\"", put->value.GetString()));
  }
  return dump(fields->value);
}

/// Returns the exit code of a call that ended with this status.
int exit_of(const JsonResult& read) { return exit_code(read.status); }
int exit_of(const WriteResult& written) {
  return written.outcome == WriteOutcome::InDoubt ? static_cast<int>(kInDoubt) : exit_code(written.status);
}

WriteDurability durability_of(const std::string& text) {
  if (text == "process") return WriteDurability::Process;
  return text == "sync" ? WriteDurability::Sync : WriteDurability::Default;
}

WriteOptions write_options(const DocumentArgs& args) {
  WriteOptions options{.condition = args.condition,
                       .create = args.create,
                       .durability = durability_of(args.durability),
                       .idempotency_key = args.token};
  if (args.if_version) options.required_version = Timestamp{*args.if_version};
  return options;
}

/// Parses "storage.2" or "2". Errors: InvalidArgument.
Result<std::uint16_t> storage_node_named(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with("storage.")) digits.remove_prefix(8);
  std::uint16_t node = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), node);
  if (error == std::errc() && end == digits.data() + digits.size()) return node;
  return Status(StatusCode::InvalidArgument,
                fmt::format("--node {}: not a storage node; expected storage.N, as `fjord status` lists them", text));
}

/// Adds a member "version" to `document`, a JSON object that the cluster has written.
std::string with_version(std::string document, std::uint64_t version) {
  if (document.empty() || document.back() != '}') return document;
  document.pop_back();
  return fmt::format("{},\"version\":{}}}", document, version);
}

/// Prints the current version to standard output if a condition failed and JSON output is requested.
void print_refused(const Common& common, const std::string& id, const WriteResult& written) {
  if (!common.json() || written.status.code() != StatusCode::TestAndSetFailed) return;
  JsonText json;
  json.begin_object().key("id").text(id).key("outcome").text(to_string(written.outcome));
  json.key("reason").text(to_string(written.status.code()));
  print_line(json.key("version").number(written.current_version.us).end_object().str());
}

/// Returns `status` with a message that names the id, once.
Status about(const Status& status, const std::string& id) {
  return status.message().find(id) == std::string::npos ? status.with_context(id) : status;
}

void report_failed(const Common& common, const std::string& id, const WriteResult& written) {
  const bool in_doubt = written.outcome == WriteOutcome::InDoubt;
  print_refused(common, id, written);
  const Status named = about(written.status, id);
  report(in_doubt ? named.with_context("in doubt, it may have been applied") : named);
}

void print_written(const Common& common, const std::string& id, const WriteResult& written, std::string_view what) {
  if (!common.json()) return print_line(fmt::format("{} {}", id, what));
  JsonText json;
  json.begin_object().key("id").text(id).key("outcome").text(to_string(written.outcome));
  json.key("existed").boolean(written.existed).key("timestamp_us").number(written.version.us);
  json.key("version").number(written.version.us).end_object();
  print_line(json.str());
}

/// Parses an id of the command line. With --type, an id can omit its type: "id:shop::1" or "id:shop::n=7:1".
/// Errors: InvalidId.
Result<DocumentId> id_of(const DocumentArgs& args, const std::string& text) {
  const std::size_t colon = text.starts_with("id:") ? text.find(':', 3) : std::string::npos;
  const bool is_without_type = colon != std::string::npos && text.compare(colon, 2, "::") == 0;
  if (is_without_type && args.type.empty()) {
    return Status(StatusCode::InvalidId,
                  fmt::format("document id \"{}\" has no document type: --type TYPE gives it", text));
  }
  if (!is_without_type) {
    FJORD_TRY_ASSIGN(DocumentId id, DocumentId::parse(text));
    if (args.type.empty() || id.type() == args.type || id.type().empty()) return id;
    return Status(StatusCode::InvalidId,
                  fmt::format("document id \"{}\" is of type {}, and --type says {}", text, id.type(), args.type));
  }
  // The rest has a modifier, possibly empty, before a colon ("n=7:1", ":1"), or is the last part of the id alone.
  const std::string rest = text.substr(colon + 2);
  const bool has_modifier = rest.find(':') != std::string::npos;
  return DocumentId::parse(fmt::format("{}:{}:{}{}", text.substr(0, colon), args.type, has_modifier ? "" : ":", rest));
}

/// Returns the type of a document: the one in its id, or that of --type for ids of the old schemes, which name none.
/// `types` outlives it. Errors: InvalidId if there is none; UnknownType.
Result<const DocumentType*> type_of(const DocumentTypeRepo& types, const DocumentArgs& args, const DocumentId& id) {
  const std::string name(id.type().empty() ? std::string_view(args.type) : id.type());
  if (name.empty()) {
    return Status(StatusCode::InvalidId,
                  fmt::format("document id \"{}\" names no document type: --type TYPE gives it", id.str()));
  }
  if (const DocumentType* type = types.find(name)) return type;
  return Status(StatusCode::UnknownType, fmt::format("there is no document type \"{}\"", name));
}

/// Parses the ids of the command line. Errors: InvalidId.
Result<std::vector<std::string>> ids_of(const DocumentArgs& args) {
  std::vector<std::string> ids;
  for (const std::string& id : args.ids) {
    FJORD_TRY_ASSIGN(const DocumentId parsed, id_of(args, id));
    ids.push_back(parsed.str());
  }
  return ids;
}

/// Checks that the type in an id is known; the cluster answers about a document of another one that there is none.
/// Errors: UnknownType; those of Client::types().
Status check_type(Client& client, const std::string& id) {
  FJORD_TRY_ASSIGN(const DocumentId parsed, DocumentId::parse(id));
  if (parsed.type().empty()) return Status::ok();
  FJORD_TRY_ASSIGN(const auto types, client.types());
  return type_of(*types, {}, parsed).status();
}

/// Starts a call for each id, then waits for all of them.
template <typename T>
std::vector<T> on_all(const std::vector<std::string>& ids, const std::function<Pending<T>(const std::string&)>& start) {
  std::vector<Pending<T>> calls;
  for (const std::string& id : ids) calls.push_back(start(id));
  std::vector<T> results;
  for (Pending<T>& call : calls) results.push_back(std::move(call).wait());
  return results;
}

/// Returns the exit code of several operations: that of the only kind of failure, kFailed for several kinds, or
/// kPartial if some operations succeeded. NotFound counts only without other failures. kNotFound and kInDoubt never
/// become kPartial.
template <typename T>
int combined_exit(const std::vector<T>& results) {
  int code = kOk;
  bool any_ok = false;
  for (const T& result : results) {
    const int one = exit_of(result);
    any_ok = any_ok || one == kOk;
    if (one == kNotFound && code == kOk) code = kNotFound;
    if (one != kOk && one != kNotFound) code = code == kOk || code == kNotFound || code == one ? one : kFailed;
  }
  if (any_ok && code != kOk && code != kNotFound && code != kInDoubt) return kPartial;
  return code;
}

/// Prints an error in the id's document type, or in the text that the command line has or names.
int report_content(const Status& error, const std::string& source) {
  return report(error.code() == StatusCode::UnknownType ? error : error.with_context(source));
}

/// Reads the file and makes the write that `write` starts with the id and the fields.
int write_one(const DocumentArgs& args, const char* kind, std::string_view existed, std::string_view made,
              const std::function<Result<WriteResult>(Client&, const DocumentType&, const DocumentId&,
                                                      const std::string& fields)>& write) {
  const auto id = id_of(args, args.id);
  if (!id) return report(id.error());
  const auto json = json_argument(args.json, kFileBytesMax);
  if (!json) return report(json.error());
  const auto fields = fields_of(json->text, id->str(), kind);
  if (!fields) return report(fields.error().with_context(json->source));
  Client client = client_of(args.common);
  if (const Status status = ready(client, args.common); !status) return report(status);
  const auto types = client.types();
  if (!types) return report(types.error());
  const auto type = type_of(**types, args, *id);
  if (!type) return report(type.error());
  const auto written = write(client, **type, *id, *fields);
  if (!written) return report_content(written.error(), json->source);
  if (!*written) {
    report_failed(args.common, id->str(), *written);
    return exit_of(*written);
  }
  print_written(args.common, id->str(), *written, written->existed ? existed : made);
  return kOk;
}

}  // namespace

// put and update parse the text here, not in the cluster, so that the message names the file that it is from.

int run_put(const DocumentArgs& args) {
  return write_one(args, "put", "replaced", "stored",
                   [&](Client& client, const DocumentType& type, const DocumentId& id,
                       const std::string& fields) -> Result<WriteResult> {
                     FJORD_TRY_ASSIGN(const EncodedDocument encoded, fields_from_json(type, id, fields));
                     FJORD_TRY_ASSIGN(const auto types, client.types());
                     FJORD_TRY_ASSIGN(const DocumentView view,
                                      DocumentView::open(*types, encoded.header, encoded.body));
                     FJORD_TRY_ASSIGN(const Document document, view.document());
                     return client.put(document, write_options(args)).wait();
                   });
}

int run_update(const DocumentArgs& args) {
  return write_one(args, "update", "updated", "made",
                   [&](Client& client, const DocumentType& type, const DocumentId& id,
                       const std::string& changes) -> Result<WriteResult> {
                     FJORD_TRY_ASSIGN(const DocumentUpdate update, DocumentUpdate::from_json_fields(type, id, changes));
                     return client.update(update, write_options(args)).wait();
                   });
}

int run_get(const DocumentArgs& args) {
  const auto ids = ids_of(args);
  if (!ids) return report(ids.error());
  ReadOptions options{.fields = args.fields};
  if (args.consistency == "session") options.consistency = ReadConsistency::Linearizable;
  if (!args.node.empty()) {
    const auto node = storage_node_named(args.node);
    if (!node) return report(node.error());
    options.node = *node;
  }
  Client client = client_of(args.common);
  if (const Status status = ready(client, args.common); !status) return report(status);
  const auto results = on_all<JsonResult>(*ids, [&](const std::string& id) { return client.get_json(id, options); });
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i]) {
      if (results[i].json.empty()) continue;  // The field set is [none], so there is no result.
      print_line(args.versions ? with_version(results[i].json, results[i].version.us) : results[i].json);
    } else {
      const Status known =
          results[i].status.code() == StatusCode::NotFound ? check_type(client, (*ids)[i]) : Status::ok();
      report(about(known ? results[i].status : known, (*ids)[i]));
    }
  }
  return combined_exit(results);
}

int run_remove(const DocumentArgs& args) {
  const auto ids = ids_of(args);
  if (!ids) return report(ids.error());
  Client client = client_of(args.common);
  if (const Status status = ready(client, args.common); !status) return report(status);
  for (const std::string& id : *ids) {
    // The cluster would answer that there was no document.
    if (const Status known = check_type(client, id); !known) return report(known);
  }
  const auto results =
      on_all<WriteResult>(*ids, [&](const std::string& id) { return client.remove(id, write_options(args)); });
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i]) {
      print_written(args.common, (*ids)[i], results[i], results[i].existed ? "removed" : "was not there");
    } else {
      report_failed(args.common, (*ids)[i], results[i]);
    }
  }
  return combined_exit(results);
}

}  // namespace fjord::cli
