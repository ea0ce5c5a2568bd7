#include "operations/replica_read.h"

#include <fmt/format.h>
#include <limits>

#include "fjord/common/retry.h"
#include "operations/operation_engine.h"

namespace fjord::distributor {
namespace {

/// An epoch above all others. Storage nodes refuse requests under an older replica set than theirs, but a read of one
/// replica depends on no set.
constexpr std::uint64_t kAnyEpoch = std::numeric_limits<std::uint64_t>::max();

}  // namespace

void read_replica(Context& context, const ReplicaQuestion& question, UniqueFunction<void(rpc::OperationResult)> done) {
  rpc::StorageOperation get;
  get.kind = rpc::OperationKind::Get;
  get.bucket = question.bucket;
  get.epoch = kAnyEpoch;
  get.gid = question.gid;
  get.id = question.id;
  get.header_only = question.header_only;
  get.even_damaged = true;
  rpc::Apply request;
  request.state_version = context.snapshot->state_version();
  request.distributor = context.options.index;
  request.operations.push_back(std::move(get));
  const Duration timeout = std::min(question.timeout, context.options.storage_timeout);
  request.timeout_us = timeout.count();
  rpc::call(context.transport, context.storage_address(question.node), std::move(request), timeout, context.executor,
            [node = question.node, done = std::move(done)](Result<rpc::ApplyReply> reply) mutable {
              rpc::OperationResult result;
              if (reply && reply->status && reply->results.size() == 1) {
                result = std::move(reply->results.front());
              } else {
                const Status why = !reply ? reply.error() : reply->status;
                result.status = Status(StatusCode::Unavailable,
                                       fmt::format("storage.{} does not answer: {}", node, why.to_string()),
                                       {.node = fmt::format("storage.{}", node)});
              }
              done(std::move(result));
            });
}

void OperationEngine::dispatch_to_replica(const OpRef& ref) {
  Op& op = ref.op();
  const std::uint16_t node = *ref.request().node;
  const BucketEntry* entry = context_.buckets.find_for(op.gid);
  op.bucket = entry != nullptr ? entry->bucket : context_.buckets.missing_for(op.gid, context_.bucket_bits_min());
  if (entry == nullptr ? !context_.ready : entry->is<activity::Collecting>()) {
    op.last_problem = Status(StatusCode::NotReady, "the distributor is collecting bucket information");
    waiting_for_state_.push_back(ref);
    return;
  }
  if (node >= context_.snapshot->info().storage_addresses.size()) {
    settle(ref, Status(StatusCode::InvalidArgument, fmt::format("there is no storage.{} in this cluster", node)));
  } else if (entry == nullptr) {
    settle(ref, Status(StatusCode::NotFound, fmt::format("there is no document {}, nor its bucket", ref.request().id)));
  } else if (!context_.snapshot->storage_serves(node)) {
    refuse(ref, StatusCode::Unavailable, fmt::format("storage.{} is not up", node));
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

void OperationEngine::on_replica_result(const OpRef& ref, rpc::OperationResult result) {
  Op& op = ref.op();
  const std::uint16_t node = *ref.request().node;
  const BucketEntry* entry = context_.buckets.find(op.bucket);
  if (may_succeed_later(result.status.code())) {
    if (result.status.code() == StatusCode::NotReady && entry != nullptr && !entry->lists(node)) {
      settle(ref, Status(StatusCode::InvalidArgument,
                         fmt::format("storage.{} has no replica of {}; `fjord bucket show {}` tells which nodes have",
                                     node, op.bucket.to_string(), ref.request().id)));
      return;
    }
    op.last_problem = std::move(result.status);
    context_.executor.post_after(context_.options.retry_delay, [this, ref] {
      if (ref.is_current()) dispatch(ref);
      flush();
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
  settle(ref, std::move(status));
}

}  // namespace fjord::distributor
