#include "read_operations.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "fjord/common/retry.h"
#include "replica_read.h"

namespace fjord::distributor {

void ReadOperations::dispatch(const OpRef& ref, BucketEntry& entry) {
  Op& op = ref.op();
  op.missing.clear();
  op.acknowledged = 0;
  op.corrupt = false;
  op.result = {};
  std::vector<std::uint16_t> candidates = entry.intact();
  if (entry.dirty || candidates.empty() || !context_.may_trust_one(op.bucket)) {
    op.missing = entry.set.nodes;
  } else {
    std::optional<std::uint16_t>* before = parts_.settler.locks().reader(op.gid);
    const bool is_lost = before != nullptr && *before && !std::count(candidates.begin(), candidates.end(), **before);
    if (is_lost) {
      op.missing = entry.set.nodes;
    } else {
      const std::uint16_t reader =
          before != nullptr && *before ? **before : parts_.messenger.choose_reader(ref, entry, candidates);
      if (before != nullptr) *before = reader;
      op.missing.push_back(reader);
    }
  }
  for (std::uint16_t node : op.missing) parts_.messenger.send(ref, node, entry.set.epoch);
}

void ReadOperations::dispatch_to_replica(const OpRef& ref, const BucketEntry* entry) {
  Op& op = ref.op();
  const std::uint16_t node = *ref.request().node;
  if (node >= context_.snapshot->info().storage_addresses.size()) {
    parts_.settler.settle(
        ref, Status(StatusCode::InvalidArgument, fmt::format("there is no storage.{} in this cluster", node)));
  } else if (entry == nullptr) {
    parts_.settler.settle(
        ref, Status(StatusCode::NotFound, fmt::format("there is no document {}, nor its bucket", ref.request().id)));
  } else if (!context_.snapshot->storage_serves(node)) {
    parts_.settler.refuse(ref, StatusCode::Unavailable, fmt::format("storage.{} is not up", node));
  } else {
    const ReplicaQuestion question{.node = node,
                                   .bucket = op.bucket,
                                   .gid = op.gid,
                                   .id = ref.request().id,
                                   .header_only = op.fields != nullptr && !op.fields->needs_body(),
                                   .timeout = std::max(op.deadline - context_.clock.now(), Duration(1))};
    read_replica(context_, question, [this, ref](rpc::OperationResult result) {
      if (ref.is_current()) on_replica_result(ref, std::move(result));
    });
  }
}

void ReadOperations::on_replica_result(const OpRef& ref, rpc::OperationResult result) {
  Op& op = ref.op();
  const std::uint16_t node = *ref.request().node;
  const BucketEntry* entry = context_.buckets.find(op.bucket);
  if (may_succeed_later(result.status.code())) {
    if (result.status.code() == StatusCode::NotReady && entry != nullptr && !entry->lists(node)) {
      parts_.settler.settle(
          ref, Status(StatusCode::InvalidArgument,
                      fmt::format("storage.{} has no replica of {}; `fjord bucket show {}` tells which nodes have",
                                  node, op.bucket.to_string(), ref.request().id)));
      return;
    }
    op.last_problem = std::move(result.status);
    context_.executor.post_after(context_.options.retry_delay, [this, ref] {
      if (ref.is_current()) parts_.messenger.dispatch_again(ref);
    });
    return;
  }
  Status status = std::move(result.status);
  if (status.code() == StatusCode::NotFound && entry != nullptr && entry->is_damaged(node)) {
    status = Status(StatusCode::Corruption,
                    fmt::format("the replica on storage.{} is damaged and may have lost the document", node));
  } else if (status.code() == StatusCode::NotFound) {
    status =
        Status(StatusCode::NotFound, result.timestamp_us == 0
                                         ? fmt::format("there is no document {} on storage.{}", ref.request().id, node)
                                         : fmt::format("the document {} is removed on storage.{}, at version {}",
                                                       ref.request().id, node, result.timestamp_us));
  }
  op.result = std::move(result);
  parts_.settler.settle(ref, std::move(status));
}

bool ReadOperations::take_result(const OpRef& ref, std::uint16_t node, rpc::OperationResult result) {
  Op& op = ref.op();
  auto place = std::find(op.missing.begin(), op.missing.end(), node);
  if (place == op.missing.end()) return false;
  op.missing.erase(place);
  if (result.status.code() == StatusCode::Corruption) {
    op.corrupt = true;
    op.last_problem = result.status.from_node("storage." + std::to_string(node));
  } else {
    bool newer = op.acknowledged == 0 || result.timestamp_us > op.result.timestamp_us;
    ++op.acknowledged;
    if (newer) op.result = std::move(result);
  }
  return op.missing.empty();
}

bool ReadOperations::reads_elsewhere(const OpRef& ref, std::uint16_t node) {
  BucketEntry* entry = context_.buckets.find(ref.op().bucket);
  if (entry == nullptr || ref.takes_rest) return false;
  parts_.maintainer.note_damaged(*entry, node);
  return true;
}

bool ReadOperations::is_known(const OpRef& ref) {
  Op& op = ref.op();
  const BucketEntry* entry = context_.buckets.find(op.bucket);
  // An intact member has every acknowledged write. Without an intact member, "not found" may be a consequence of
  // damage.
  const bool is_known = op.acknowledged > 0 && (op.result.status || (entry != nullptr && !entry->intact().empty()));
  op.acknowledged = 0;
  if (!op.corrupt || is_known) return true;
  const Status problem = op.last_problem;
  parts_.settler.refuse(ref, StatusCode::Corruption, problem.to_string());
  return false;
}

void ReadOperations::finish(const OpRef& ref) {
  Status status = std::move(ref.op().result.status);
  if (status.code() == StatusCode::NotFound) {
    status = Status(StatusCode::NotFound, "there is no document " + ref.request().id);
  }
  parts_.settler.settle(ref, std::move(status));
}

}  // namespace fjord::distributor
