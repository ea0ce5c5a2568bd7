#include "operation_settler.h"

#include <utility>

namespace fjord::distributor {

void OperationSettler::settle(const OpRef& ref, Status status) {
  Op& op = ref.op();
  op.settled = true;
  if (op.counted) {
    op.counted = false;
    BucketEntry* entry = op.trailing == 0 ? context_.buckets.find(op.bucket) : nullptr;
    if (entry != nullptr) uncount(*entry);
  }
  release_lock(ref);
  const MonotonicTime now = context_.clock.now();
  if (ref.is_write()) {
    for (const OpRef& duplicate : parts_.records.settle(ref, status, now)) settle(duplicate, status);
  }
  op.result.status = std::move(status);
  if (op.result.status && !ref.is_write()) shape_document(ref, *context_.snapshot->types());
  const Duration took = now - ref.batch->start;
  parts_.metrics.count(ref.request().kind, op.result.status, took);
  if (ref.request().priority != rpc::Priority::Background) parts_.metrics.foreground_seconds.observe(took);
  if (op.admitted) {
    const StatusCode code = op.result.status.code();
    parts_.admission.ended(now, took, code == StatusCode::Ok || code == StatusCode::NotFound);
  }
  parts_.answers.ended(ref.batch);
}

void OperationSettler::uncount(BucketEntry& entry) {
  if (--entry.writes_under_way == 0) parts_.maintainer.drained(entry);
}

void OperationSettler::release_lock(const OpRef& ref) {
  Op& op = ref.op();
  if (!std::exchange(op.has_lock, false)) return;
  std::vector<OpRef> next = locks_.release(op.gid, [](const OpRef& waiting) { return waiting.is_current(); });
  if (next.empty()) return;
  for (const OpRef& waiting : next) waiting.op().has_lock = true;
  // Posted to avoid recursion: the next operation may end at once, release its lock, and call this again.
  context_.executor.post([this, next = std::move(next)] { next_(next); });
}

void OperationSettler::refuse(const OpRef& ref, StatusCode code, const std::string& why) {
  const bool in_doubt = ref.op().possibly_applied > 0 && ref.is_write();
  settle(ref, Status(in_doubt ? StatusCode::Timeout : code, why));
}

void OperationSettler::refuse_at_once(const OpRef& ref, Admission::Refusal why) {
  const Admission::Class its = Admission::class_of(ref.request());
  ref.op().result.retry_after_ms = parts_.admission.count_refusal(its, why, 1);
  if (ref.is_write()) {
    parts_.records.remember_refusal(ref.batch->request.client_id, ref.request().sequence, ref.request().attempt);
  }
  Status busy = parts_.admission.describe(its);
  if (why == Admission::Refusal::Expired) busy = busy.with_context("its time was over before it was its turn");
  if (why == Admission::Refusal::SlowNode) {
    busy = busy.with_context("too much waits for a slow storage node that has a replica");
  }
  settle(ref, busy.from_node("distributor." + std::to_string(context_.options.index)));
}

void OperationSettler::expire(const OpRef& ref) {
  const Op& op = ref.op();
  const std::string why = op.last_problem.is_ok() ? "no answer from storage in time" : op.last_problem.to_string();
  BucketEntry* entry = op.counted && op.possibly_applied > 0 ? context_.buckets.find(op.bucket) : nullptr;
  if (entry != nullptr) parts_.maintainer.repair(*entry);
  refuse(ref, StatusCode::Unavailable, "not served in time: " + why);
}

}  // namespace fjord::distributor
