#include <charconv>
#include <condition_variable>
#include <fmt/format.h>
#include <functional>
#include <mutex>
#include <rapidjson/document.h>

#include "commands/commands.h"
#include "commands/json_argument.h"
#include "fjord/client/connect.h"
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

/// Returns the fields in `text`, which is an object of fields or {"put": id, "fields": {...}}, as `get` prints it.
/// `kind` is the name of the id's member, "put" or "update". Errors: InvalidId if the text has another id.
Result<std::string> fields_of(const std::string& text, const std::string& id, const char* kind = "put") {
  rapidjson::Document json;
  json.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseFullPrecisionFlag>(text.data(), text.size());
  // The document parser reports malformed texts, because its messages contain the position.
  if (json.HasParseError() || !json.IsObject()) return text;
  const auto put = json.FindMember(kind);
  const auto fields = json.FindMember("fields");
  if (put == json.MemberEnd() || fields == json.MemberEnd() || !put->value.IsString() || !fields->value.IsObject()) {
    return text;
  }
  if (id != put->value.GetString()) {
    return Status(StatusCode::InvalidId, fmt::format("the file holds the document \"{}\"", put->value.GetString()));
  }
  return dump(fields->value);
}

/// Returns the type of an id. It is valid until the connection receives newer schemas. Errors: UnknownType.
Result<const DocumentType*> type_of(Connection& connection, const DocumentId& id) {
  const DocumentType* type = connection.client().snapshot()->types()->find(id.type());
  if (type != nullptr) return type;
  return Status(StatusCode::UnknownType,
                fmt::format("there is no document type \"{}\", which the id \"{}\" names", id.type(), id.str()));
}

int outcome_exit(const OperationOutcome& outcome) {
  if (outcome.is_ok()) return kOk;
  return outcome.outcome == Outcome::InDoubt ? static_cast<int>(kInDoubt) : exit_code(outcome.status);
}

rpc::Durability durability_of(const std::string& text) {
  if (text == "process") return rpc::Durability::Process;
  return text == "sync" ? rpc::Durability::Sync : rpc::Durability::Default;
}

/// Copies the write options into the operation.
void add_options(const DocumentArgs& args, rpc::Operation& operation) {
  operation.condition = args.condition;
  operation.create = args.create;
  operation.required_version = args.if_version;
  operation.token = args.token;
  operation.durability = durability_of(args.durability);
}

/// Returns the field set of "title,year" with the id's type; returns a complete field set unchanged.
std::string field_set_of(const std::string& text, const DocumentId& id) {
  if (text.empty() || text.starts_with('[') || text.find(':') != std::string::npos) return text;
  return fmt::format("{}:{}", id.type(), text);
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
void print_refused(const Common& common, const std::string& id, const OperationOutcome& outcome) {
  if (!common.json() || outcome.status.code() != StatusCode::TestAndSetFailed) return;
  JsonText json;
  json.begin_object().key("id").text(id).key("outcome").text(to_string(outcome.outcome));
  json.key("reason").text(to_string(outcome.status.code()));
  print_line(json.key("version").number(outcome.version_us).end_object().str());
}

void report_failed(const Common& common, const std::string& id, const OperationOutcome& outcome) {
  const bool in_doubt = outcome.outcome == Outcome::InDoubt;
  print_refused(common, id, outcome);
  report(outcome.status.with_context(id + (in_doubt ? " (in doubt: it may have been applied)" : "")));
}

void print_written(const Common& common, const std::string& id, const OperationOutcome& outcome,
                   std::string_view what) {
  if (!common.json()) return print_line(fmt::format("{} {}", id, what));
  JsonText json;
  json.begin_object().key("id").text(id).key("outcome").text(to_string(outcome.outcome));
  json.key("existed").boolean(outcome.existed).key("timestamp_us").number(outcome.timestamp_us);
  json.key("version").number(outcome.timestamp_us).end_object();
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
    if (args.type.empty() || id.type() == args.type) return id;
    return Status(StatusCode::InvalidId,
                  fmt::format("document id \"{}\" is of type {}, and --type says {}", text, id.type(), args.type));
  }
  // The rest has a modifier, possibly empty, before a colon ("n=7:1", ":1"), or is the last part of the id alone.
  const std::string rest = text.substr(colon + 2);
  const bool has_modifier = rest.find(':') != std::string::npos;
  return DocumentId::parse(fmt::format("{}:{}:{}{}", text.substr(0, colon), args.type, has_modifier ? "" : ":", rest));
}

/// Checks that the cluster has this storage node. Errors: NotFound.
Status check_node(Connection& connection, std::uint16_t node) {
  const std::vector<std::string>& addresses = connection.client().snapshot()->info().storage_addresses;
  if (node < addresses.size() && !addresses[node].empty()) return Status::ok();
  return Status(StatusCode::NotFound, fmt::format("there is no storage.{} in this cluster", node));
}

/// Sends all operations at once and waits for all results.
std::vector<OperationOutcome> execute_all(AsyncClient& client, std::vector<rpc::Operation> operations) {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t missing = operations.size();
  std::vector<OperationOutcome> outcomes(operations.size());
  for (std::size_t i = 0; i < operations.size(); ++i) {
    client.execute(std::move(operations[i]), Duration(0), [&, i](OperationOutcome outcome) {
      const std::lock_guard lock(mutex);
      outcomes[i] = std::move(outcome);
      --missing;
      changed.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return missing == 0; });
  return outcomes;
}

/// Returns the exit code of several operations: that of the only kind of failure, kFailed for several kinds, or
/// kPartial if some operations succeeded. NotFound counts only without other failures. kNotFound and kInDoubt never
/// become kPartial.
int combined_exit(const std::vector<OperationOutcome>& outcomes) {
  int code = kOk;
  bool any_ok = false;
  for (const OperationOutcome& outcome : outcomes) {
    const int one = outcome_exit(outcome);
    any_ok = any_ok || one == kOk;
    if (one == kNotFound && code == kOk) code = kNotFound;
    if (one != kOk && one != kNotFound) code = code == kOk || code == kNotFound || code == one ? one : kFailed;
  }
  if (any_ok && code != kOk && code != kNotFound && code != kInDoubt) return kPartial;
  return code;
}

Result<std::vector<rpc::Operation>> operations_on(const DocumentArgs& args, rpc::OperationKind kind) {
  std::vector<rpc::Operation> operations;
  for (const std::string& id : args.ids) {
    FJORD_TRY_ASSIGN(const DocumentId parsed, id_of(args, id));
    if (kind == rpc::OperationKind::Get) {
      operations.push_back(get_json_operation(parsed.str(), field_set_of(args.fields, parsed)));
      if (args.consistency == "session") operations.back().consistency = rpc::Consistency::Session;
      if (!args.node.empty()) {
        FJORD_TRY_ASSIGN(operations.back().node, storage_node_named(args.node));
      }
    } else {
      operations.push_back(remove_operation(parsed.str()));
      add_options(args, operations.back());
    }
  }
  return operations;
}

/// Reads the file and sends the operation that `make` returns for its id and fields.
int write_one(const DocumentArgs& args, const char* kind, std::string_view existed, std::string_view made,
              const std::function<Result<rpc::Operation>(const DocumentType&, const DocumentId&, std::string)>& make) {
  const auto id = id_of(args, args.id);
  if (!id) return report(id.error());
  const auto json = json_argument(args.json, kFileBytesMax);
  if (!json) return report(json.error());
  auto fields = fields_of(json->text, id->str(), kind);
  if (!fields) return report_failure(fields.error().with_context(json->source));
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  SyncClient client = (*connection)->sync();
  if (Status status = client.refresh_schemas(); !status) return report(status);
  const auto type = type_of(**connection, *id);
  if (!type) return report(type.error());
  auto operation = make(**type, *id, std::move(*fields));
  if (!operation) return report_failure(operation.error().with_context(json->source));
  add_options(args, *operation);
  const OperationOutcome outcome = client.execute(std::move(*operation));
  if (!outcome.is_ok()) {
    report_failed(args.common, id->str(), outcome);
    return outcome_exit(outcome);
  }
  print_written(args.common, id->str(), outcome, outcome.existed ? existed : made);
  return kOk;
}

}  // namespace

int run_put(const DocumentArgs& args) {
  return write_one(args, "put", "replaced", "stored",
                   [](const DocumentType& type, const DocumentId& id, std::string fields) -> Result<rpc::Operation> {
                     FJORD_TRY_ASSIGN(EncodedDocument document, fields_from_json(type, id, fields));
                     return put_operation(id.str(), std::move(document));
                   });
}

int run_update(const DocumentArgs& args) {
  return write_one(args, "update", "updated", "made",
                   [](const DocumentType& type, const DocumentId& id, std::string changes) -> Result<rpc::Operation> {
                     FJORD_TRY_ASSIGN(const DocumentUpdate update, DocumentUpdate::from_json_fields(type, id, changes));
                     return update_operation(update);
                   });
}

int run_get(const DocumentArgs& args) {
  auto operations = operations_on(args, rpc::OperationKind::Get);
  if (!operations) return report(operations.error());
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  if (!operations->empty() && operations->front().node) {
    const Status status = check_node(**connection, *operations->front().node);
    if (!status) return report(status);
  }
  const auto outcomes = execute_all((*connection)->client(), std::move(*operations));
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].is_ok()) {
      if (outcomes[i].json.empty()) continue;  // The field set is [none], so there is no result.
      print_line(args.versions ? with_version(outcomes[i].json, outcomes[i].timestamp_us) : outcomes[i].json);
    } else {
      report(outcomes[i].status.with_context(args.ids[i]));
    }
  }
  return combined_exit(outcomes);
}

int run_remove(const DocumentArgs& args) {
  auto operations = operations_on(args, rpc::OperationKind::Remove);
  if (!operations) return report(operations.error());
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  if (Status status = (*connection)->sync().refresh_schemas(); !status) return report(status);
  std::vector<std::string> ids;
  for (const rpc::Operation& operation : *operations) {
    const auto id = DocumentId::parse(ids.emplace_back(operation.id));
    const auto type = id ? type_of(**connection, *id) : Result<const DocumentType*>(id.error());
    if (!type) return report(type.error());
  }
  const auto outcomes = execute_all((*connection)->client(), std::move(*operations));
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].is_ok()) {
      print_written(args.common, ids[i], outcomes[i], outcomes[i].existed ? "removed" : "was not there");
    } else {
      report_failed(args.common, ids[i], outcomes[i]);
    }
  }
  return combined_exit(outcomes);
}

}  // namespace fjord::cli
