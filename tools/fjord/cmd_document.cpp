#include <condition_variable>
#include <fmt/format.h>
#include <functional>
#include <mutex>
#include <rapidjson/document.h>

#include "commands.h"
#include "fjord/client/connect.h"
#include "fjord/document/json.h"
#include "input_file.h"
#include "json_text.h"

namespace fjord::cli {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{64} << 20;

std::string dump(const rapidjson::Value& value) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  value.Accept(writer);
  return std::string(buffer.GetString(), buffer.GetSize());
}

/// The fields of a file that is either an object of fields or {"put": id, "fields": {...}}, as `get` prints it; with
/// `kind` "update" a line of a feed in the same way.
Result<std::string> fields_of(const std::string& text, const std::string& id, const char* kind = "put") {
  rapidjson::Document json;
  json.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseFullPrecisionFlag>(text.data(), text.size());
  // What is no JSON or no object is left to the parser of documents, whose messages say where.
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

/// Lives as long as the connection's schemas stay as they are.
Result<const DocumentType*> type_of(Connection& connection, const DocumentId& id) {
  const DocumentType* type = connection.client().snapshot()->types()->find(id.type());
  if (type != nullptr) return type;
  return Status(StatusCode::UnknownType,
                fmt::format("there is no document type \"{}\", which the id \"{}\" names", id.type(), id.str()));
}

Result<EncodedDocument> encode_fields(Connection& connection, const DocumentId& id, const std::string& fields) {
  FJORD_TRY_ASSIGN(const DocumentType* type, type_of(connection, id));
  return fields_from_json(*type, id, fields);
}

int outcome_exit(const OperationOutcome& outcome) {
  if (outcome.is_ok()) return kOk;
  return outcome.outcome == Outcome::InDoubt ? static_cast<int>(kInDoubt) : exit_code(outcome.status);
}

rpc::Durability durability_of(const std::string& text) {
  if (text == "process") return rpc::Durability::Process;
  return text == "sync" ? rpc::Durability::Sync : rpc::Durability::Default;
}

/// What the options of writes say.
void add_options(const DocumentArgs& args, rpc::Operation& operation) {
  operation.condition = args.condition;
  operation.create = args.create;
  operation.token = args.token;
  operation.durability = durability_of(args.durability);
}

/// "title,year" for the fields of the id's type, or a whole field set as it is.
std::string field_set_of(const std::string& text, const DocumentId& id) {
  if (text.empty() || text.starts_with('[') || text.find(':') != std::string::npos) return text;
  return fmt::format("{}:{}", id.type(), text);
}

void report_failed(const std::string& id, const OperationOutcome& outcome) {
  const bool in_doubt = outcome.outcome == Outcome::InDoubt;
  report(outcome.status.with_context(id + (in_doubt ? " (in doubt: it may have been applied)" : "")));
}

void print_written(const Common& common, const std::string& id, const OperationOutcome& outcome,
                   std::string_view what) {
  if (!common.json()) return print_line(fmt::format("{} {}", id, what));
  JsonText json;
  json.begin_object().key("id").text(id).key("outcome").text(to_string(outcome.outcome));
  json.key("existed").boolean(outcome.existed).key("timestamp_us").number(outcome.timestamp_us).end_object();
  print_line(json.str());
}

/// Sends all operations at once and waits for their ends.
std::vector<OperationOutcome> execute_all(Client& client, std::vector<rpc::Operation> operations) {
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

/// The exit code for several: that of the only kind of failure, 1 for several kinds or 5 if some worked.
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
    FJORD_TRY_ASSIGN(const DocumentId parsed, DocumentId::parse(id));
    if (kind == rpc::OperationKind::Get) {
      operations.push_back(get_json_operation(parsed.str(), field_set_of(args.fields, parsed)));
      if (args.consistency == "session") operations.back().consistency = rpc::Consistency::Session;
    } else {
      operations.push_back(remove_operation(parsed.str()));
      add_options(args, operations.back());
    }
  }
  return operations;
}

/// Reads the file and sends what `make` makes of id and fields.
int write_one(const DocumentArgs& args, const char* kind, std::string_view existed, std::string_view made,
              const std::function<Result<rpc::Operation>(Connection&, const DocumentId&, std::string)>& make) {
  const auto id = DocumentId::parse(args.id);
  if (!id) return report(id.error());
  const auto file = InputFile::open(args.file);
  if (!file) return report(file.error());
  const auto text = (*file)->read_all(kFileBytesMax);
  if (!text) return report(text.error().with_context((*file)->name()));
  auto fields = fields_of(*text, id->str(), kind);
  if (!fields) return report(fields.error().with_context((*file)->name()));
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  SyncClient client = (*connection)->sync();
  if (Status status = client.refresh_schemas(); !status) return report(status);
  auto operation = make(**connection, *id, std::move(*fields));
  if (!operation) return report(operation.error().with_context((*file)->name()));
  add_options(args, *operation);
  const OperationOutcome outcome = client.execute(std::move(*operation));
  if (!outcome.is_ok()) {
    report_failed(id->str(), outcome);
    return outcome_exit(outcome);
  }
  print_written(args.common, id->str(), outcome, outcome.existed ? existed : made);
  return kOk;
}

}  // namespace

int run_put(const DocumentArgs& args) {
  return write_one(args, "put", "replaced", "stored",
                   [](Connection& connection, const DocumentId& id, std::string fields) -> Result<rpc::Operation> {
                     FJORD_TRY_ASSIGN(EncodedDocument document, encode_fields(connection, id, fields));
                     return put_operation(id.str(), std::move(document));
                   });
}

int run_update(const DocumentArgs& args) {
  return write_one(args, "update", "updated", "made",
                   [](Connection& connection, const DocumentId& id, std::string changes) -> Result<rpc::Operation> {
                     FJORD_TRY_ASSIGN(const DocumentType* type, type_of(connection, id));
                     FJORD_TRY_ASSIGN(const DocumentUpdate update,
                                      DocumentUpdate::from_json_fields(*type, id, changes));
                     return update_operation(update);
                   });
}

int run_get(const DocumentArgs& args) {
  auto operations = operations_on(args, rpc::OperationKind::Get);
  if (!operations) return report(operations.error());
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  const auto outcomes = execute_all((*connection)->client(), std::move(*operations));
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].is_ok()) {
      if (!outcomes[i].json.empty()) print_line(outcomes[i].json);  // Empty for the field set [none].
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
  const auto outcomes = execute_all((*connection)->client(), std::move(*operations));
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].is_ok()) {
      print_written(args.common, args.ids[i], outcomes[i], outcomes[i].existed ? "removed" : "was not there");
    } else {
      report_failed(args.ids[i], outcomes[i]);
    }
  }
  return combined_exit(outcomes);
}

}  // namespace fjord::cli
