#include "fjord/library/client.h"

#include <fmt/format.h>

#include "fjord/client/operations.h"
#include "fjord/client/own_types.h"
#include "fjord/common/retry.h"
#include "fjord/document/json.h"
#include "fjord/library/admin.h"
#include "fjord/library/bulk.h"
#include "fjord/library/detail/bulk_run.h"
#include "fjord/library/detail/client_core.h"
#include "fjord/library/detail/own_documents.h"
#include "fjord/library/detail/transfers.h"
#include "fjord/library/jobs.h"
#include "fjord/library/subscription.h"
#include "fjord/library/visit.h"
#include "pending_writer.h"

namespace fjord {

namespace {

rpc::Priority wire(ClientPriority priority) { return static_cast<rpc::Priority>(priority); }
static_assert(static_cast<int>(ClientPriority::Background) == static_cast<int>(rpc::Priority::Background));
rpc::Durability wire(WriteDurability durability) { return static_cast<rpc::Durability>(durability); }
static_assert(static_cast<int>(WriteDurability::Sync) == static_cast<int>(rpc::Durability::Sync));
rpc::Consistency wire(ReadConsistency consistency) { return static_cast<rpc::Consistency>(consistency); }
static_assert(static_cast<int>(ReadConsistency::Linearizable) == static_cast<int>(rpc::Consistency::Session));

/// `may_be_repeat`: the caller gave the key, so that an earlier attempt may have been applied.
WriteResult write_result(OperationOutcome outcome, bool may_be_repeat) {
  WriteResult result;
  result.outcome = static_cast<WriteOutcome>(outcome.outcome);
  result.status = std::move(outcome.status);
  result.version = Timestamp{outcome.timestamp_us};
  result.existed = outcome.existed;
  result.current_version = Timestamp{outcome.version_us};
  result.idempotency_key = std::move(outcome.token);
  // This attempt had no effect. After a transient error nothing is known about earlier attempts with the same key.
  const StatusCode code = result.status.code();
  const bool says_nothing = may_succeed_later(code) || code == StatusCode::NoSpace;
  if (may_be_repeat && says_nothing && result.outcome == WriteOutcome::NotApplied) {
    result.outcome = WriteOutcome::InDoubt;
    result.status = std::move(result.status).with_details({.idempotency_key = result.idempotency_key});
  }
  return result;
}
static_assert(static_cast<int>(WriteOutcome::InDoubt) == static_cast<int>(Outcome::InDoubt));

/// Writes a document of any type.
Pending<WriteResult> write_any(ClientCore& core, rpc::Operation operation, WriteOptions options) {
  if (!core.settings_error()) return failed<WriteResult>(core.settings_error());
  operation.condition = std::move(options.condition);
  if (options.required_version) operation.required_version = options.required_version->us;
  operation.create = operation.create || options.create;
  operation.durability = wire(options.durability);
  operation.priority = wire(options.priority);
  const bool may_be_repeat = !options.idempotency_key.empty();
  operation.token = std::move(options.idempotency_key);
  auto state = core.new_pending<WriteResult>();
  core.client().execute(std::move(operation), options.timeout,
                        [done = PendingWriter<WriteResult>(state), may_be_repeat](OperationOutcome outcome) mutable {
                          done(write_result(std::move(outcome), may_be_repeat));
                        });
  return Pending<WriteResult>(std::move(state));
}

Pending<WriteResult> write(ClientCore& core, rpc::Operation operation, WriteOptions options) {
  if (const Status refused = check_users_write(operation); !refused) return failed<WriteResult>(refused);
  return write_any(core, std::move(operation), std::move(options));
}

/// Returns a field set for `fields`; prepends the id's type to plain field names.
std::string field_set_of(const std::string& id, const std::string& fields) {
  if (fields.empty() || fields.starts_with('[') || fields.find(':') != std::string::npos) return fields;
  const auto parsed = DocumentId::parse(id);
  return parsed ? fmt::format("{}:{}", parsed->type(), fields) : fields;
}

rpc::Operation read_operation(std::string id, const ReadOptions& options) {
  std::string fields = field_set_of(id, options.fields);
  rpc::Operation operation = get_operation(std::move(id), std::move(fields));
  operation.consistency = wire(options.consistency);
  operation.priority = wire(options.priority);
  operation.node = options.node;
  return operation;
}

/// Returns the error in a read's options or in the client's settings. A client that has not connected yet does not know
/// the nodes; then the distributor's answer says what is wrong.
Status check_read(ClientCore& core, const ReadOptions& options) {
  if (!core.settings_error()) return core.settings_error();
  const auto snapshot = options.node ? core.client().snapshot() : nullptr;
  if (snapshot == nullptr) return Status::ok();
  const std::vector<std::string>& addresses = snapshot->info().storage_addresses;
  if (*options.node < addresses.size() && !addresses[*options.node].empty()) return Status::ok();
  return {StatusCode::NotFound, fmt::format("there is no storage.{} in this cluster", *options.node)};
}

using Types = std::shared_ptr<const DocumentTypeRepo>;

Status decode(const Types& types, const OperationOutcome& outcome, ReadResult& result) {
  FJORD_TRY_ASSIGN(const DocumentView view, DocumentView::open(*types, outcome.header, outcome.body));
  FJORD_TRY_ASSIGN(result.document, view.document());
  result.document->keep(types);
  return Status::ok();
}

Status decode(const Types& types, const OperationOutcome& outcome, JsonResult& result) {
  // With the field set [none] there is neither header nor body.
  if (outcome.header.empty()) return result.json = "{}", Status::ok();
  FJORD_TRY_ASSIGN(const DocumentView view, DocumentView::open(*types, outcome.header, outcome.body));
  if (view.type() == nullptr) return {StatusCode::UnknownType, fmt::format("the type of {} is not known", view.id())};
  thread_local JsonLines text;  // A thread reads many documents, and the memory is used again.
  FJORD_TRY(text.append_content(view));
  result.json = text.take();
  return Status::ok();
}

/// Decodes the answer of a get into a T. Fetches the schemas first if the client does not know the document's type.
template <typename T>
class DocumentReader {
 public:
  DocumentReader(AsyncClient& client, Duration timeout, PendingWriter<T> done)
      : client_(client), timeout_(timeout), done_(std::move(done)) {}

  void operator()(OperationOutcome outcome) {
    T result{};
    if (!outcome.is_ok()) return finish(outcome, outcome.status, result);
    const Status decoded = decode(client_.snapshot()->types(), outcome, result);
    if (decoded.code() != StatusCode::UnknownType) return finish(outcome, decoded, result);
    AsyncClient& client = client_;
    const Duration timeout = timeout_;
    client.refresh_schemas(timeout,
                           [self = std::move(*this), outcome = std::move(outcome)](const Status& status) mutable {
                             T again{};
                             if (!status) return self.finish(outcome, status, again);
                             const Status read = decode(self.client_.snapshot()->types(), outcome, again);
                             self.finish(outcome, read, again);
                           });
  }

 private:
  void finish(const OperationOutcome& outcome, const Status& status, T& result) {
    result.version = Timestamp{outcome.timestamp_us};
    result.status = status;
    done_(std::move(result));
  }

  AsyncClient& client_;
  Duration timeout_;
  PendingWriter<T> done_;
};

template <typename T>
Pending<T> read_document(ClientCore& core, std::string id, const ReadOptions& options) {
  auto state = core.new_pending<T>();
  DocumentReader<T> reader(core.client(), core.timeout(options.timeout), PendingWriter<T>(state));
  core.client().execute(read_operation(std::move(id), options), options.timeout, std::move(reader));
  return Pending<T>(std::move(state));
}

}  // namespace

std::string_view to_string(WriteOutcome outcome) { return to_string(static_cast<Outcome>(outcome)); }

Client::Client(std::unique_ptr<ClientCore> core) : core_(std::move(core)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Client connect(std::string_view addresses, ClientSettings settings) {
  return Client(std::make_unique<ClientCore>(addresses, settings));
}

Status Client::ping() { return core_->wait_ready(); }

Pending<ReadResult> Client::get(std::string id, ReadOptions options) {
  if (const Status wrong = check_read(*core_, options); !wrong) return failed<ReadResult>(wrong);
  return read_document<ReadResult>(*core_, std::move(id), options);
}

Pending<JsonResult> Client::get_fields_json(std::string id, ReadOptions options) {
  if (const Status wrong = check_read(*core_, options); !wrong) return failed<JsonResult>(wrong);
  return read_document<JsonResult>(*core_, std::move(id), options);
}

Pending<JsonResult> Client::get_json(std::string id, ReadOptions options) {
  if (const Status wrong = check_read(*core_, options); !wrong) return failed<JsonResult>(wrong);
  rpc::Operation operation = read_operation(std::move(id), options);
  operation.want_json = true;
  auto state = core_->new_pending<JsonResult>();
  core_->client().execute(std::move(operation), options.timeout,
                          [done = PendingWriter<JsonResult>(state)](OperationOutcome outcome) mutable {
                            done({std::move(outcome.status), std::move(outcome.json), Timestamp{outcome.timestamp_us}});
                          });
  return Pending<JsonResult>(std::move(state));
}

Pending<WriteResult> Client::put(const Document& document, WriteOptions options) {
  return write(*core_, put_operation(document.id().str(), encode(document)), std::move(options));
}
Pending<WriteResult> Client::put_json(std::string id, std::string fields, WriteOptions options) {
  return write(*core_, put_json_operation(std::move(id), std::move(fields)), std::move(options));
}
Pending<WriteResult> Client::update(const DocumentUpdate& update, WriteOptions options) {
  return write(*core_, update_operation(update), std::move(options));
}
Pending<WriteResult> Client::update_json(std::string id, std::string changes, WriteOptions options) {
  return write(*core_, update_json_operation(std::move(id), std::move(changes)), std::move(options));
}
Pending<WriteResult> Client::remove(std::string id, WriteOptions options) {
  return write(*core_, remove_operation(std::move(id)), std::move(options));
}

Pending<WriteResult> put_own(Client& client, const Document& document, WriteOptions options) {
  return write_any(client.core(), put_operation(document.id().str(), encode(document)), std::move(options));
}

Result<std::shared_ptr<const DocumentTypeRepo>> Client::types() {
  FJORD_TRY(core_->wait_ready());
  return core_->types();
}

Result<Document> Client::new_document(std::string_view id) {
  FJORD_TRY_ASSIGN(DocumentId parsed, DocumentId::parse(id));
  FJORD_TRY_ASSIGN(const auto types, core_->types_with(parsed.type()));
  const DocumentType& type = *types->find(parsed.type());
  Document document(type, std::move(parsed));
  document.keep(types);
  return document;
}

Result<Document> Client::new_document(std::string_view id, std::string_view fields) {
  FJORD_TRY_ASSIGN(const DocumentId parsed, DocumentId::parse(id));
  FJORD_TRY_ASSIGN(const auto types, core_->types_with(parsed.type()));
  FJORD_TRY_ASSIGN(const EncodedDocument encoded, fields_from_json(*types->find(parsed.type()), parsed, fields));
  FJORD_TRY_ASSIGN(const DocumentView view, DocumentView::open(*types, encoded.header, encoded.body));
  FJORD_TRY_ASSIGN(Document document, view.document());
  document.keep(types);
  return document;
}

Result<DocumentUpdate> Client::new_update(std::string_view id) {
  FJORD_TRY_ASSIGN(DocumentId parsed, DocumentId::parse(id));
  FJORD_TRY_ASSIGN(const auto types, core_->types_with(parsed.type()));
  const DocumentType& type = *types->find(parsed.type());
  DocumentUpdate update(type, std::move(parsed));
  update.keep(types);
  return update;
}

Result<DocumentUpdate> Client::new_update(std::string_view id, std::string_view changes) {
  FJORD_TRY_ASSIGN(const DocumentId parsed, DocumentId::parse(id));
  FJORD_TRY_ASSIGN(const auto types, core_->types_with(parsed.type()));
  FJORD_TRY_ASSIGN(DocumentUpdate update,
                   DocumentUpdate::from_json_fields(*types->find(parsed.type()), parsed, changes));
  update.keep(types);
  return update;
}

Visit Client::visit(VisitOptions options) { return Visit(*core_, std::move(options)); }
ExportSummary Client::export_to(const std::string& path, const ExportOptions& options) {
  return export_documents(*core_, path, options);
}

ImportSummary Client::import_from(const std::vector<std::string>& paths, const ImportOptions& options) {
  return import_documents(*core_, paths, options);
}

Subscription Client::subscribe(SubscribeOptions options) { return Subscription(*core_, std::move(options)); }
BulkSummary Client::update_where(std::string selection, std::string changes, BulkOptions options) {
  return run_bulk(*core_, BulkChange{std::move(selection), std::move(changes)}, std::move(options));
}
BulkSummary Client::remove_where(std::string selection, BulkOptions options) {
  return run_bulk(*core_, BulkChange{std::move(selection), std::nullopt}, std::move(options));
}
Jobs Client::jobs() { return Jobs(*core_); }
Admin Client::admin() { return Admin(*core_); }

}  // namespace fjord
