#include "operations/replica_read.h"

#include <fmt/format.h>
#include <limits>

#include "fjord/common/retry.h"

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

}  // namespace fjord::distributor
