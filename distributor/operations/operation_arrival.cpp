// Arrival of operations: admission, refusals, duplicates, and validation.

#include <algorithm>

#include "fjord/document/document.h"
#include "fjord/document/document_format.h"
#include "fjord/document/json.h"
#include "operation_engine.h"

namespace fjord::distributor {
namespace {

// After this time without a message a client has no duplicates of its operations in flight.
constexpr Duration kForgetClientAfter = seconds(600);

std::size_t bytes_of(const rpc::Operation& operation) {
  return operation.header.size() + operation.body.size() + operation.json.size() + operation.id.size() +
         operation.update.size() + operation.condition.size();
}

}  // namespace

void OperationEngine::arrive(rpc::Execute request, rpc::Responder respond) {
  if (request.rest != 0) {
    context_.executor.post([this, rest = request.rest, client = request.client_id,
                            respond = std::move(respond)]() mutable { answer_rest(rest, client, std::move(respond)); });
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
    arrival.refused[i] = admission_.admit(its, groups[i].operations, groups[i].bytes, timeout);
    if (arrival.refused[i]) continue;
    takes_any = true;
    arrival.bytes += groups[i].bytes;
  }
  if (!takes_any) {
    refuse_batch(std::move(request), std::move(respond), arrival);
    return;
  }
  context_.executor.post([this, request = std::move(request), respond = std::move(respond), arrival]() mutable {
    execute(std::move(request), std::move(respond), arrival);
  });
}

/// Answers without the executor, which may be what is overloaded. Only the numbers of the operations go there, so that
/// a later duplicate of this message stays refused.
void OperationEngine::refuse_batch(rpc::Execute request, rpc::Responder respond, const Arrival& arrival) {
  rpc::ExecuteReply reply;
  std::vector<Refused> refused;
  refused.reserve(request.operations.size());
  for (const rpc::Operation& operation : request.operations) {
    const Admission::Class its = Admission::class_of(operation);
    reply.retry_after_ms = admission_.count_refusal(its, *arrival.refused[static_cast<std::size_t>(its)], 1);
    refused.push_back({operation.kind, operation.sequence, operation.attempt});
  }
  reply.status = admission_.describe(Admission::class_of(request.operations.front()))
                     .from_node("distributor." + std::to_string(context_.options.index));
  context_.executor.post([this, refused = std::move(refused), client = request.client_id,
                          first_unsettled = request.first_unsettled, at = arrival.at] {
    if (client != 0) windows_.advance(client, first_unsettled, at);
    const Status busy(StatusCode::Busy, "");
    for (const Refused& one : refused) {
      remember_refusal(client, one.sequence, one.attempt);
      metrics_.count(one.kind, busy, Duration(0));
    }
  });
  respond(std::move(reply));
}

void OperationEngine::remember_refusal(std::uint64_t client, std::uint64_t sequence, std::uint32_t attempt) {
  if (client == 0 || sequence == 0 || windows_.is_settled_duplicate(client, sequence)) return;
  auto [record, added] = windows_.find_or_add(client, sequence);
  record->attempt = std::max(record->attempt, attempt);
  if (!added) return;  // The outcome of an earlier attempt stays.
  record->state = Windows::State::Refused;
  record->status = Status(StatusCode::Busy, "a duplicate of an attempt that was refused");
}

void OperationEngine::refuse_at_once(const OpRef& ref, Admission::Refusal why) {
  const Admission::Class its = Admission::class_of(ref.request());
  ref.op().result.retry_after_ms = admission_.count_refusal(its, why, 1);
  if (ref.is_write()) remember_refusal(ref.batch->request.client_id, ref.request().sequence, ref.request().attempt);
  Status busy = admission_.describe(its);
  if (why == Admission::Refusal::Expired) busy = busy.with_context("its time was over before it was its turn");
  if (why == Admission::Refusal::SlowNode) {
    busy = busy.with_context("too much waits for a slow storage node that has a replica");
  }
  settle(ref, busy.from_node("distributor." + std::to_string(context_.options.index)));
}

void OperationEngine::execute(rpc::Execute request, rpc::Responder respond, const Arrival& arrival) {
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
  metrics_.pending.set(static_cast<double>(admission_.operations()));
  if (batch->left == 0) {
    answer(*batch);
    return;
  }
  if (batch->request.client_id != 0) {
    windows_.advance(batch->request.client_id, batch->request.first_unsettled, batch->start);
    if (batch->start - last_forget_ > kForgetClientAfter) {
      last_forget_ = batch->start;
      windows_.forget_idle(batch->start - kForgetClientAfter);
    }
  }
  batch->number = next_batch_++;
  batches_.emplace(batch->number, batch);
  const MonotonicTime now = context_.clock.now();
  for (std::uint32_t i = 0; i < batch->ops.size(); ++i) {
    const rpc::Operation& operation = batch->request.operations[i];
    Op& op = batch->ops[i];
    op.deadline = deadline;
    if (operation.timeout_us > 0) op.deadline = std::min(op.deadline, batch->start + Duration(operation.timeout_us));
    const auto refusal = arrival.refused[static_cast<std::size_t>(Admission::class_of(operation))];
    op.admitted = !refusal;
    if (refusal) {
      refuse_at_once({batch, i, 0}, *refusal);
    } else if (now >= op.deadline) {
      refuse_at_once({batch, i, 0}, Admission::Refusal::Expired);
    } else {
      admit({batch, i, 0});
    }
  }
  flush();
  watch(batch);
}

void OperationEngine::admit(const OpRef& ref) {
  if (Status prepared = prepare(ref); !prepared) {
    settle(ref, std::move(prepared));
    return;
  }
  if (context_.snapshot == nullptr) {
    settle(ref, Status(StatusCode::NotReady,
                       "distributor." + std::to_string(context_.options.index) + " has no cluster state yet"));
    return;
  }
  if (ref.is_write() && recognise_duplicate(ref)) return;
  dispatch(ref);
}

Status OperationEngine::prepare(const OpRef& ref) {
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
  if (!operation.reads_first()) return Status::ok();
  FJORD_TRY_ASSIGN(ref.op().conditional, ConditionalWrite::parse(operation, id, types));
  return Status::ok();
}

Status OperationEngine::prepare_document(rpc::Operation& operation, const DocumentId& id) {
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
  return guard_rails_.check(operation.id, operation.header, operation.body);
}

/// True if the operation is a duplicate. It gets the outcome of the first.
bool OperationEngine::recognise_duplicate(const OpRef& ref) {
  std::uint64_t client = ref.batch->request.client_id;
  std::uint64_t sequence = ref.request().sequence;
  if (client == 0 || sequence == 0) return false;
  if (windows_.is_settled_duplicate(client, sequence)) {
    metrics_.duplicates.add();
    settle(ref, Status(StatusCode::InvalidArgument, "a late duplicate of an operation that its client has settled"));
    return true;
  }
  auto [record, added] = windows_.find_or_add(client, sequence);
  std::uint32_t attempt = ref.request().attempt;
  bool newer_attempt = attempt > record->attempt;
  record->attempt = std::max(record->attempt, attempt);
  if (added) return false;
  if (record->state == Windows::State::Refused && newer_attempt) {
    record->state = Windows::State::Pending;
    return false;
  }
  metrics_.duplicates.add();
  if (record->state == Windows::State::Pending) {
    record->waiters.push_back(ref);
    ref.op().possibly_applied = 1;  // The first may have been applied.
    return true;
  }
  if (record->state == Windows::State::InDoubt && !newer_attempt) {
    settle(ref, Status(StatusCode::Timeout, "a duplicate of an attempt that is in doubt"));
    return true;
  }
  if (record->state == Windows::State::InDoubt && !may_repeat(ref)) {
    settle(ref, Status(StatusCode::Timeout, "it is in doubt, and too late to settle that by a repetition"));
    return true;
  }
  if (record->state == Windows::State::InDoubt) {  // Repeats the same write, which settles the doubt.
    record->state = Windows::State::Pending;
    ref.op().timestamp_us = record->timestamp_us;
    ref.op().result.existed = record->existed;
    ref.op().possibly_applied = 1;
    return false;
  }
  ref.op().result.timestamp_us = record->timestamp_us;
  ref.op().result.existed = record->existed;
  ref.op().result.version_us = record->version_us;
  Status status = record->status;
  settle(ref, std::move(status));
  return true;
}

}  // namespace fjord::distributor
