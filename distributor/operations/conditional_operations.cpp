#include "conditional_operations.h"

#include <algorithm>
#include <utility>

namespace fjord::distributor {

/// Reads one intact replica; each intact replica has everything that earlier operations on the document wrote. Reads
/// all members if none is intact or the lease is over.
void ConditionalOperations::dispatch(const OpRef& ref, BucketEntry& entry) {
  Op& op = ref.op();
  WriteOperations::count(entry, op);
  op.reading = true;
  op.acknowledged = 0;
  op.corrupt = false;
  std::vector<std::uint16_t> candidates = entry.intact();
  if (candidates.empty() || !context_.may_trust_one(op.bucket)) {
    // Reads all members: if all are damaged, the newest version may be left on any of them.
    op.missing = entry.set.nodes;
  } else {
    op.missing.assign(1, parts_.messenger.choose_reader(ref, entry, candidates));
  }
  for (std::uint16_t node : op.missing) parts_.messenger.send(ref, node, entry.set.epoch);
}

void ConditionalOperations::decide(const OpRef& ref) {
  Op& op = ref.op();
  const rpc::OperationResult stored = std::exchange(op.result, {});
  op.result.existed = op.conditional->content().existed;
  const std::int64_t now = context_.clock.wall_now().us / 1'000'000;
  ConditionalWrite::Decision decision = op.conditional->decide(stored, op.timestamp_us, now);
  using Kind = ConditionalWrite::Decision::Kind;
  const ConditionalWrite::Content& content = op.conditional->content();
  BucketEntry& entry = *context_.buckets.find(op.bucket);
  if (decision.kind == Kind::Write && !content.remove) check_content(ref, entry, decision);
  if (decision.kind == Kind::Write) {
    op.reading = false;
    op.result.existed = content.existed;
    op.timestamp_us = context_.next_timestamp(std::max(entry.last_timestamp_us, content.newer_than_us));
    parts_.writes.dispatch(ref, entry);
    parts_.messenger.flush();
    return;
  }
  if (decision.kind == Kind::AlreadyApplied) {
    parts_.metrics.known_tokens.add();
    op.result.timestamp_us = decision.timestamp_us;
    op.result.existed = decision.existed;
  } else {
    op.result.version_us = decision.version_us;
  }
  parts_.settler.settle(ref, std::move(decision.status));
}

void ConditionalOperations::check_content(const OpRef& ref, const BucketEntry& entry,
                                          ConditionalWrite::Decision& decision) {
  const ConditionalWrite::Content& content = ref.op().conditional->content();
  Status status = parts_.guard_rails.check(ref.request().id, content.header, content.body);
  if (status && ref.op().possibly_applied == 0 && !is_job_record(ref.request())) {
    status = context_.space.check_put(entry.set.nodes);
  }
  if (status) return;
  decision.kind = ConditionalWrite::Decision::Kind::Fail;
  decision.status = std::move(status);
}

}  // namespace fjord::distributor
