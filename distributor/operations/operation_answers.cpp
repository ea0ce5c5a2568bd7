// The end of operations: deadlines, outcomes, and answers to clients, as a whole or in parts (docs/design/0015).

#include <algorithm>

#include "fjord/document/document.h"
#include "fjord/document/json.h"
#include "operation_engine.h"

namespace fjord::distributor {
namespace {

/// Time in which a write in doubt may be repeated. Clients repeat at once, or when an attempt has timed out.
constexpr Duration kRepeatWithin = seconds(10);
/// How long the rest of an answer is kept after its operations have ended, if the client does not ask for it.
constexpr Duration kKeepRest = seconds(1);

}  // namespace

void OperationEngine::watch(const std::shared_ptr<Batch>& batch) {
  std::optional<MonotonicTime> next;
  for (const Op& op : batch->ops) {
    if (!op.settled && (!next || op.deadline < *next)) next = op.deadline;
  }
  if (!next) return;
  if (batch->takes_parts && !batch->is_part_due) next = std::min(*next, batch->part_at);
  context_.executor.post_after(std::max(*next - context_.clock.now(), Duration(0)),
                               [this, weak = std::weak_ptr<Batch>(batch)] {
                                 if (auto alive = weak.lock()) on_time(alive);
                               });
}

void OperationEngine::on_time(const std::shared_ptr<Batch>& batch) {
  const MonotonicTime now = context_.clock.now();
  for (std::uint32_t i = 0; i < batch->ops.size(); ++i) {
    const Op& op = batch->ops[i];
    if (!op.settled && op.deadline <= now) expire({batch, i, op.attempt});
  }
  flush();
  if (batch->left == 0) return;
  batch->is_part_due = batch->takes_parts && now >= batch->part_at;
  answer_part(batch);
  watch(batch);
}

void OperationEngine::expire(const OpRef& ref) {
  Op& op = ref.op();
  const std::string why = op.last_problem.is_ok() ? "no answer from storage in time" : op.last_problem.to_string();
  if (BucketEntry* entry = op.counted && op.possibly_applied > 0 ? context_.buckets.find(op.bucket) : nullptr)
    maintainer_.repair(*entry);
  refuse(ref, StatusCode::Unavailable, "not served in time: " + why);
}

std::map<std::uint64_t, std::uint64_t> OperationEngine::oldest_under_way() {
  std::map<std::uint64_t, std::uint64_t> oldest;
  const auto add = [&](GlobalId gid, std::uint64_t timestamp_us) {
    const auto [place, is_new] = oldest.emplace(bucket_of(gid, BucketId::kUsedBitsMax).position(), timestamp_us);
    if (!is_new) place->second = std::min(place->second, timestamp_us);
  };
  for (const auto& [number, batch] : batches_) {
    for (const Op& op : batch->ops) {
      // A write that waits for its bucket to be known again is included: it keeps its timestamp.
      if (op.settled || op.timestamp_us == 0) continue;
      add(op.gid, op.timestamp_us);
    }
  }
  const MonotonicTime now = context_.clock.now();
  std::erase_if(doubts_, [&](const auto& doubt) {
    return doubt.second.until <= now || windows_.find(doubt.first.first, doubt.first.second) == nullptr;
  });
  for (const auto& [operation, doubt] : doubts_) add(doubt.gid, doubt.timestamp_us);
  return oldest;
}

bool OperationEngine::may_repeat(const OpRef& ref) {
  if (ref.op().conditional != nullptr) return true;  // A conditional one reads first and gets another timestamp.
  const auto doubt = doubts_.extract(ClientSequence{ref.batch->request.client_id, ref.request().sequence});
  return !doubt.empty() && context_.clock.now() < doubt.mapped().until;
}

void OperationEngine::settle(const OpRef& ref, Status status) {
  Op& op = ref.op();
  op.settled = true;
  if (op.counted) {
    op.counted = false;
    BucketEntry* entry = op.trailing == 0 ? context_.buckets.find(op.bucket) : nullptr;
    if (entry != nullptr && --entry->writes_under_way == 0) maintainer_.drained(*entry);
  }
  release_lock(ref);
  if (ref.is_write()) settle_record(ref, status);
  op.result.status = std::move(status);
  if (op.result.status && !ref.is_write()) shape_document(ref);
  const MonotonicTime now = context_.clock.now();
  const Duration took = now - ref.batch->start;
  metrics_.count(ref.request().kind, op.result.status, took);
  if (ref.request().priority != rpc::Priority::Background) metrics_.foreground_seconds.observe(took);
  if (op.admitted) {
    const StatusCode code = op.result.status.code();
    admission_.ended(now, took, code == StatusCode::Ok || code == StatusCode::NotFound);
  }
  ++ref.batch->undelivered;
  if (--ref.batch->left == 0) {
    answer(*ref.batch);
  } else {
    answer_part_soon(ref.batch);
  }
}

void OperationEngine::settle_record(const OpRef& ref, const Status& status) {
  std::uint64_t client = ref.batch->request.client_id;
  std::uint64_t sequence = ref.request().sequence;
  if (client == 0 || sequence == 0 || ref.op().attempt == 0) return;
  Windows::RequestRecord* record = windows_.find(client, sequence);
  if (record == nullptr) return;
  std::vector<OpRef> waiters = std::exchange(record->waiters, {});
  if (status.code() == StatusCode::Timeout) {
    record->state = Windows::State::InDoubt;
    record->timestamp_us = ref.op().timestamp_us;
    if (ref.op().timestamp_us != 0 && ref.op().conditional == nullptr && !ref.op().ownership_uncertain) {
      doubts_[{client, sequence}] = {ref.op().gid, ref.op().timestamp_us, context_.clock.now() + kRepeatWithin};
    }
    record->existed = ref.op().result.existed;
  } else {
    record->state = is_transient(status.code()) ? Windows::State::Refused : Windows::State::Settled;
    record->timestamp_us = ref.op().result.timestamp_us;
    record->status = status;
    record->version_us = ref.op().result.version_us;
    record->existed = ref.op().result.existed;
  }
  for (const OpRef& waiter : waiters) {
    if (waiter.op().settled) continue;
    waiter.op().result.timestamp_us = ref.op().result.timestamp_us;
    waiter.op().result.existed = ref.op().result.existed;
    waiter.op().result.version_us = ref.op().result.version_us;
    settle(waiter, status);
  }
}

/// Reduces the answer to a get to the wanted fields, and converts it to JSON if that is wanted.
void OperationEngine::shape_document(const OpRef& ref) {
  rpc::OperationResult& result = ref.op().result;
  if (ref.op().fields != nullptr) {
    EncodedDocument buffer;
    Result<ProjectedDocument> projected = ref.op().fields->project(result.header, result.body, buffer);
    if (!projected) {
      result.status = projected.error();
      return;
    }
    EncodedDocument kept{std::string(projected->header), std::string(projected->body)};
    result.header = std::move(kept.header);
    result.body = std::move(kept.body);
  }
  if (!ref.request().want_json || result.header.empty()) return;
  Result<DocumentView> view = DocumentView::open(*context_.snapshot->types(), result.header, result.body);
  Result<std::string> json = view ? to_json_document(*view) : Result<std::string>(view.error());
  if (json) {
    result.json = std::move(*json);
  } else {
    result.status = json.error();
  }
  result.header.clear();
  result.body.clear();
}

void OperationEngine::answer(Batch& batch) {
  admission_.released(batch.bytes);
  metrics_.pending.set(static_cast<double>(admission_.operations()));
  if (batch.rest != 0) {  // The client has a part; its request for the rest is in flight or lost.
    context_.executor.post_after(kKeepRest, [this, rest = batch.rest] { unclaimed_.drop(rest); });
    batches_.erase(batch.number);
    return;
  }
  rpc::ExecuteReply reply = take_results(batch);
  rpc::Responder respond = std::move(batch.respond);
  batches_.erase(batch.number);  // This may be the last reference to the batch.
  respond(std::move(reply));
}

rpc::ExecuteReply OperationEngine::take_results(Batch& batch) {
  rpc::ExecuteReply reply;
  reply.results.reserve(batch.ops.size());
  for (Op& op : batch.ops) {
    if (op.delivered) continue;
    op.delivered = op.settled;
    if (op.settled) {
      reply.results.push_back(std::move(op.result));
    } else {
      reply.results.emplace_back().status = Status(StatusCode::Unknown, {});
    }
  }
  batch.undelivered = 0;
  if (context_.snapshot != nullptr && context_.snapshot->state_version() > batch.request.state_version) {
    reply.newer_info = context_.snapshot->info_newer_than(batch.request.state_version, 0);
  }
  return reply;
}

/// Posted, so that all outcomes from one message of a storage node go into one answer.
void OperationEngine::answer_part_soon(const std::shared_ptr<Batch>& batch) {
  if (!batch->is_part_due || batch->rest != 0 || std::exchange(batch->is_part_posted, true)) return;
  context_.executor.post([this, weak = std::weak_ptr<Batch>(batch)] {
    const auto alive = weak.lock();
    if (alive == nullptr) return;
    alive->is_part_posted = false;
    answer_part(alive);
  });
}

void OperationEngine::answer_part(const std::shared_ptr<Batch>& batch) {
  if (!batch->is_part_due || batch->rest != 0 || batch->undelivered == 0 || batch->left == 0) return;
  rpc::ExecuteReply reply = take_results(*batch);
  batch->rest = unclaimed_.add(batch);
  reply.rest = batch->rest;
  metrics_.parts.add();
  std::exchange(batch->respond, {})(std::move(reply));
}

void OperationEngine::answer_rest(std::uint64_t number, std::uint64_t client, rpc::Responder respond) {
  const std::shared_ptr<Batch> batch = unclaimed_.take(number, client);
  if (batch == nullptr) {
    rpc::ExecuteReply reply;
    const std::string name = "distributor." + std::to_string(context_.options.index);
    reply.status =
        Status(StatusCode::Timeout, name + " does not know the rest of this answer any more", {.node = name});
    respond(std::move(reply));
    return;
  }
  batch->rest = 0;
  if (batch->left == 0) {
    respond(take_results(*batch));
    return;
  }
  batch->respond = std::move(respond);
  answer_part(batch);
}

void OperationEngine::refuse(const OpRef& ref, StatusCode code, const std::string& why) {
  bool in_doubt = ref.op().possibly_applied > 0 && ref.is_write();
  settle(ref, Status(in_doubt ? StatusCode::Timeout : code, why));
}

}  // namespace fjord::distributor
