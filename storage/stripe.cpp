#include "stripe.h"

#include <algorithm>

#include "bucket_merge.h"
#include "fjord/common/log.h"
#include "garbage_scan.h"

namespace fjord::storage {

namespace {

/// The shortest pause before the next maintenance step when the engine has nothing more to do at once.
constexpr Duration kMaintenanceLeast = std::chrono::milliseconds(1);

}  // namespace

StorageNode::Stripe::Stripe(const StorageNodeOptions& options, Runtime& runtime, rpc::Transport& transport,
                            const rpc::SnapshotHolder& snapshots, MaintenanceBudget& budget,
                            std::unique_ptr<spi::PersistenceProvider> provider, unsigned index)
    : context_{options,
               runtime.clock,
               transport,
               snapshots,
               budget,
               StripeMetrics(runtime.metrics),
               std::move(provider)},
      damaged_(context_),
      removed_(runtime.metrics, *context_.provider, options.count_removed_interval),
      space_(context_),
      buckets_(context_, damaged_, removed_),
      operations_(context_, damaged_, space_, loads_),
      merge_source_(context_, damaged_),
      parts_{context_, damaged_, removed_, space_, buckets_},
      executor_(runtime.scheduler.make_executor("stripe-" + std::to_string(index))) {
  executor_->post_after(kMaintenanceLeast, [this] { maintain(); });
}

/// Does one step of the engine's background work and schedules the next: behind the waiting requests if more work is
/// due at once, otherwise after a pause.
void StorageNode::Stripe::maintain() {
  if (!context_.failure) return;  // Another folder is at the place of the files: nothing is written to it.
  const spi::Maintenance left = context_.provider->maintain(context_.clock.now());
  if (!health_reported_ && !context_.provider->health()) {
    health_reported_ = true;
    log::error("storage", "{}", context_.provider->health().to_string());
  }
  damaged_.take_new();
  if (left.more) {
    executor_->post([this] { maintain(); });
  } else {
    executor_->post_after(std::max(left.next_in, kMaintenanceLeast), [this] { maintain(); });
  }
}

void StorageNode::Stripe::merge(rpc::MergeBucket request, rpc::Responder respond) {
  // Space is checked only when there is something to write, so that a merge succeeds on a full replica that lacks
  // nothing.
  Status owner = context_.check_owner(request.state_version, request.distributor, request.bucket);
  if (owner && request.epoch != 0) owner = context_.check_epoch(request.bucket, request.epoch);
  if (!owner) {
    rpc::MergeBucketReply reply;
    reply.status = std::move(owner);
    respond(std::move(reply));
    return;
  }
  BucketMerge::start(parts_, *executor_, std::move(request), std::move(respond));
}

void StorageNode::Stripe::follow_bits() {
  if (const auto snapshot = context_.snapshots.get()) loads_.set_bits(snapshot->distribution_bits());
}

std::vector<rpc::BucketLoad> StorageNode::Stripe::loads() {
  follow_bits();
  std::vector<rpc::BucketLoad> loads = loads_.counts();
  loads.push_back(loads_.total());
  for (const BucketId bucket : context_.provider->list_buckets()) {
    const Result<BucketInfo> info = context_.provider->bucket_info(bucket);
    if (!info) continue;
    loads[bucket.with_used_bits(loads_.bits()).bits()].stored_bytes += info->bytes;
    loads.back().stored_bytes += info->bytes;
  }
  return loads;
}

void StorageNode::Stripe::find_garbage(const rpc::FindGarbage& request, rpc::Responder respond) {
  if (Status owner = context_.check_owner(request.state_version, request.distributor, request.bucket); !owner) {
    rpc::FindGarbageReply reply;
    reply.status = std::move(owner);
    respond(std::move(reply));
    return;
  }
  GarbageScan::start(context_, *executor_, request, std::move(respond));
}

}  // namespace fjord::storage
