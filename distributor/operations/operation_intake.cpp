#include "operation_intake.h"

#include <algorithm>
#include <utility>

#include "fjord/common/run_inline.h"
#include "fjord/document/document.h"
#include "fjord/document/document_format.h"
#include "fjord/document/json.h"
#include "fjord/rpc/short_work.h"

namespace fjord::distributor {
namespace {

std::size_t bytes_of(const rpc::Operation& operation) {
  return operation.header.size() + operation.body.size() + operation.json.size() + operation.id.size() +
         operation.update.size() + operation.condition.size();
}

}  // namespace

void OperationIntake::arrive(rpc::Execute request, rpc::Responder respond) {
  if (request.rest != 0) {
    context_.executor.post(
        [this, rest = request.rest, client = request.client_id, respond = std::move(respond)]() mutable {
          hooks_.answer_rest(rest, client, std::move(respond));
        });
    return;
  }
  struct Group {
    std::size_t operations = 0;
    std::size_t bytes = 0;
  };
  std::array<Group, Admission::kClasses> groups;
  for (const rpc::Operation& operation : request.operations) {
    Group& group = groups[static_cast<std::size_t>(Admission::class_of(operation))];
    ++group.operations;
    group.bytes += bytes_of(operation);
  }
  const Duration timeout = request.timeout_us > 0 ? Duration(request.timeout_us) : context_.options.default_timeout;
  Arrival arrival{context_.clock.now(), {}, 0};
  bool takes_any = request.operations.empty();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].operations == 0) continue;
    const auto its = static_cast<Admission::Class>(i);
    arrival.refused[i] = parts_.admission.admit(its, groups[i].operations, groups[i].bytes, timeout);
    if (arrival.refused[i]) continue;
    takes_any = true;
    arrival.bytes += groups[i].bytes;
  }
  if (!takes_any) {
    refuse_batch(std::move(request), std::move(respond), arrival);
    return;
  }
  const bool is_short = rpc::is_short(request);
  Task task = [this, request = std::move(request), respond = std::move(respond), arrival]() mutable {
    open(std::move(request), std::move(respond), arrival);
  };
  if (is_short) {
    run_or_post(context_.executor, std::move(task));
  } else {
    context_.executor.post(std::move(task));
  }
}

/// Answers without the executor, which may be overloaded. Only the numbers of the operations are posted to the
/// executor, so that a later duplicate of this message is refused too.
void OperationIntake::refuse_batch(rpc::Execute request, rpc::Responder respond, const Arrival& arrival) {
  rpc::ExecuteReply reply;
  std::vector<Refused> refused;
  refused.reserve(request.operations.size());
  for (const rpc::Operation& operation : request.operations) {
    const Admission::Class its = Admission::class_of(operation);
    reply.retry_after_ms = parts_.admission.count_refusal(its, *arrival.refused[static_cast<std::size_t>(its)], 1);
    refused.push_back({operation.kind, operation.sequence, operation.attempt});
  }
  reply.status = parts_.admission.describe(Admission::class_of(request.operations.front()))
                     .from_node("distributor." + std::to_string(context_.options.index));
  context_.executor.post([this, refused = std::move(refused), client = request.client_id,
                          first_unsettled = request.first_unsettled, at = arrival.at] {
    parts_.records.advance(client, first_unsettled, at);
    const Status busy(StatusCode::Busy, "");
    for (const Refused& one : refused) {
      parts_.records.remember_refusal(client, one.sequence, one.attempt);
      parts_.metrics.count(one.kind, busy, Duration(0));
    }
  });
  respond(std::move(reply));
}

void OperationIntake::open(rpc::Execute request, rpc::Responder respond, const Arrival& arrival) {
  auto batch = std::make_shared<Batch>();
  batch->start = arrival.at;
  batch->bytes = arrival.bytes;
  const MonotonicTime deadline =
      batch->start + (request.timeout_us > 0 ? Duration(request.timeout_us) : context_.options.default_timeout);
  batch->takes_parts = request.part_after_us > 0 && request.operations.size() > 1;
  batch->part_at = batch->start + Duration(request.part_after_us);
  batch->respond = std::move(respond);
  batch->request = std::move(request);
  batch->ops.resize(batch->request.operations.size());
  batch->left = batch->ops.size();
  for (std::size_t i = 0; i < batch->ops.size(); ++i) {
    const rpc::Operation& operation = batch->request.operations[i];
    Op& op = batch->ops[i];
    op.deadline = deadline;
    if (operation.timeout_us > 0) op.deadline = std::min(op.deadline, batch->start + Duration(operation.timeout_us));
    op.admitted = !arrival.refused[static_cast<std::size_t>(Admission::class_of(operation))];
  }
  if (batch->left > 0) parts_.records.advance(batch->request.client_id, batch->request.first_unsettled, batch->start);
  hooks_.begin(std::move(batch), arrival);
}

Status OperationIntake::prepare(const OpRef& ref) {
  rpc::Operation& operation = ref.batch->request.operations[ref.index];
  FJORD_TRY_ASSIGN(DocumentId id, DocumentId::parse(operation.id));
  ref.op().gid = id.gid();
  if (operation.kind == rpc::OperationKind::Unknown)
    return {StatusCode::InvalidArgument, "an operation without a kind"};
  const bool is_get = operation.kind == rpc::OperationKind::Get;
  if (is_get && operation.required_version)
    return {StatusCode::InvalidArgument, "a get with a required version; only put, update and remove take one"};
  if (!is_get && operation.node)
    return {StatusCode::InvalidArgument, "a write that names a storage node; only a get takes one"};
  if (context_.snapshot == nullptr) return Status::ok();
  const std::shared_ptr<const DocumentTypeRepo>& types = context_.snapshot->types();
  if (operation.kind == rpc::OperationKind::Get) {
    if (operation.field_set.empty()) return Status::ok();
    FJORD_TRY_ASSIGN(FieldSet fields, FieldSet::parse(*types, operation.field_set));
    if (fields.kind() != FieldSet::Kind::All) ref.op().fields = std::make_unique<FieldSet>(std::move(fields));
    return Status::ok();
  }
  if (operation.kind == rpc::OperationKind::Put) FJORD_TRY(prepare_document(operation, id));
  if (!rpc::reads_first(operation)) return Status::ok();
  FJORD_TRY_ASSIGN(ref.op().conditional, ConditionalWrite::parse(operation, id, types));
  return Status::ok();
}

Status OperationIntake::prepare_document(rpc::Operation& operation, const DocumentId& id) {
  const DocumentTypeRepo& types = *context_.snapshot->types();
  if (!operation.json.empty()) {
    const DocumentType* type = types.find(id.type());
    if (type == nullptr) {
      return {StatusCode::UnknownType, "there is no document type '" + std::string(id.type()) + "'"};
    }
    FJORD_TRY_ASSIGN(EncodedDocument document, fields_from_json(*type, id, operation.json));
    operation.header = std::move(document.header);
    operation.body = std::move(document.body);
    operation.json.clear();
  } else {
    FJORD_TRY(validate(types, operation.header, operation.body));
    if (document_id_of_header(operation.header) != operation.id) {
      return {StatusCode::InvalidId, "the document's header part names another id than the operation, " + operation.id};
    }
  }
  return parts_.guard_rails.check(operation.id, operation.header, operation.body);
}

}  // namespace fjord::distributor
