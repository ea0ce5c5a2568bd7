#include "write_operations.h"

#include <algorithm>
#include <utility>

#include "fjord/rpc/refusal.h"

namespace fjord::distributor {

Status WriteOperations::check_space(const OpRef& ref, const BucketEntry& entry) const {
  const Op& op = ref.op();
  // A write that may be on a replica already is completed in spite of lacking space. A conditional operation may have
  // been applied, or may be a remove.
  if (op.counted || op.possibly_applied > 0 || op.conditional != nullptr ||
      ref.request().kind != rpc::OperationKind::Put) {
    return Status::ok();
  }
  if (is_job_record(ref.request())) return Status::ok();
  return context_.space.check_put(entry.set.nodes);
}

bool WriteOperations::is_clogged(std::uint16_t node) const {
  return parts_.latencies.is_clogged(node, parts_.admission.slow_node_share());
}

bool WriteOperations::is_clogged(const BucketEntry& entry) const {
  return std::any_of(entry.set.nodes.begin(), entry.set.nodes.end(), [&](auto node) { return is_clogged(node); });
}

void WriteOperations::count(BucketEntry& entry, Op& op) {
  if (op.counted) return;
  op.counted = true;
  ++entry.writes_under_way;
}

void WriteOperations::dispatch(const OpRef& ref, BucketEntry& entry) {
  Op& op = ref.op();
  if (op.timestamp_us == 0) op.timestamp_us = context_.next_timestamp(entry.last_timestamp_us);
  entry.last_timestamp_us = std::max(entry.last_timestamp_us, op.timestamp_us);
  count(entry, op);
  op.missing = entry.set.nodes;
  op.refused.clear();
  op.completing = false;
  op.acknowledged = 0;
  op.partial = false;
  // A conditional operation has read whether it was applied, unless a node that is absent now has it and comes back
  // with it.
  op.doubtful = op.possibly_applied > 0 && (op.conditional == nullptr || context_.absent_nodes() > 0);
  // The loop is safe: `missing` changes only with answers, which come later.
  for (std::uint16_t node : op.missing) parts_.messenger.send(ref, node, entry.set.epoch);
}

void WriteOperations::on_result(const OpRef& ref, std::uint16_t node, rpc::OperationResult result) {
  Op& op = ref.op();
  auto place = std::find(op.missing.begin(), op.missing.end(), node);
  if (place == op.missing.end()) return;
  op.missing.erase(place);
  if (result.status.code() == StatusCode::NoSpace) {
    context_.space.note_refusal(node, op.completing ? StorageSpace::kRefuseAll : StorageSpace::kRefuseExternal,
                                result.status);
  }
  if (result.status) {
    ++op.acknowledged;
    // A conditional operation has set `existed` by its own read.
    if (op.conditional == nullptr) op.result.existed = op.result.existed || result.existed;
  } else {
    // A lack of space is temporary, so any other refusal replaces it as the reported problem.
    if ((!op.partial && op.refused.empty()) || rpc::is_lack_of_space(op.last_problem.code()))
      op.last_problem = result.status.from_node("storage." + std::to_string(node));
    if (result.status.code() == StatusCode::NoSpace && !op.completing) {
      op.refused.push_back(node);
    } else {
      op.partial = true;
    }
  }
  if (op.missing.empty()) on_all_answered(ref);
}

/// Completes a put that some members have, or may have, and for which others have no space. The others are asked again
/// and then use the space reserved for merges, since a merge would bring them the put anyway.
void WriteOperations::on_all_answered(const OpRef& ref) {
  Op& op = ref.op();
  if (!op.refused.empty() && !op.partial && (op.acknowledged > 0 || op.doubtful)) {
    op.completing = true;
    op.missing = std::exchange(op.refused, {});
    const std::uint64_t epoch = context_.buckets.find(op.bucket)->set.epoch;
    for (std::uint16_t node : op.missing) parts_.messenger.send(ref, node, epoch);
    return;
  }
  op.partial = op.partial || !op.refused.empty();
  finish(ref);
}

/// Sends a write to the replicas that are catching up, once all members have it. The client does not wait for them: a
/// replica that does not answer, is full or slow will be filled again.
void WriteOperations::send_to_catching_up(const OpRef& ref) {
  Op& op = ref.op();
  BucketEntry* entry = op.counted ? context_.buckets.find(op.bucket) : nullptr;
  if (entry == nullptr) return;
  for (std::uint16_t node : entry->catching_up) {
    if (is_clogged(node) || !context_.space.takes_merges(node)) {
      parts_.maintainer.note_missed(*entry);
      continue;
    }
    op.missing.push_back(node);
    parts_.messenger.send(ref, node, entry->set.epoch);
  }
  if (!op.missing.empty()) op.trailing = entry->serial;
}

void WriteOperations::on_catching_up_result(const OpRef& ref, std::uint16_t node, const Status& status) {
  Op& op = ref.op();
  std::erase(op.missing, node);
  BucketEntry* entry = context_.buckets.find(BucketTicket{op.bucket, op.trailing});
  if (entry != nullptr && !status) parts_.maintainer.note_missed(*entry);
  if (!op.missing.empty()) return;
  op.trailing = 0;
  if (entry != nullptr) parts_.settler.uncount(*entry);
}

void WriteOperations::finish(const OpRef& ref) {
  Op& op = ref.op();
  op.result.timestamp_us = op.timestamp_us;
  if (!op.partial) {
    send_to_catching_up(ref);
    parts_.settler.settle(ref, Status::ok());
  } else if (op.acknowledged == 0 && op.conditional != nullptr &&
             op.last_problem.code() == StatusCode::TestAndSetFailed) {
    // A version that was in flight during the read was applied first on all replicas, so the operation reads again.
    op.reading = true;
    parts_.messenger.dispatch_again(ref);
  } else if (op.acknowledged == 0 && !op.doubtful) {
    parts_.settler.settle(ref, op.last_problem);
  } else {
    // Some replicas have the write and some refused it: a merge brings it to all that can take it.
    if (BucketEntry* entry = context_.buckets.find(op.bucket)) parts_.maintainer.repair(*entry);
    parts_.settler.settle(ref, Status(StatusCode::Timeout, "not every replica took it: " + op.last_problem.to_string(),
                                      op.last_problem.details()));
  }
}

}  // namespace fjord::distributor
