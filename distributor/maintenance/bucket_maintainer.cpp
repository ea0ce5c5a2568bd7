#include "bucket_maintainer.h"

namespace fjord::distributor {
namespace {

/// Most distribution bits with which all buckets are made ahead.
constexpr unsigned kBitsMadeAhead = 16;

}  // namespace

BucketMaintainer::BucketMaintainer(Context& context, TunableRegistry& tunables, Callbacks callbacks)
    : context_(context),
      callbacks_(std::move(callbacks)),
      installer_(context, [this](BucketEntry& entry, const Installation& done) { on_in_force(entry, done); }),
      merges_(context, tunables,
              {[this](BucketId bucket) { callbacks_.bucket_ready(bucket); },
               [this](BucketEntry& entry, std::uint16_t node) { repair_.note_damaged(entry, node); },
               [this](BucketEntry& entry) { repair_.finish_merge(entry); }}),
      repair_(context, merges_, installer_),
      reshaper_(context, tunables,
                {[this](BucketEntry& entry) { installer_.install(entry); },
                 [this](BucketId bucket) { callbacks_.bucket_ready(bucket); }}),
      retention_(context, tunables,
                 {[this](BucketEntry& entry, Installation work) { installer_.install(entry, std::move(work)); },
                  [this](BucketId bucket) { callbacks_.bucket_ready(bucket); },
                  [this](const BucketEntry& entry) { return callbacks_.stable_us(entry); }}),
      transition_(
          context, {installer_, merges_, repair_},
          {[this] { callbacks_.buckets_forgotten(); }, [this] { on_complete(); }, [this] { on_collected_again(); }}),
      census_(context, [this](const std::vector<BucketId>& missing) { transition_.collect_again(missing); }) {}

void BucketMaintainer::forget_outdated(const rpc::ClusterSnapshot* before) {
  reshaper_.forget();
  retention_.forget();
  transition_.forget_outdated(before);
  census_.forget();
}

void BucketMaintainer::on_collected_again() {
  callbacks_.state_ready();
  census_.forget();
  merges_.start();
}

void BucketMaintainer::on_complete() {
  create_all();
  callbacks_.state_ready();
  merges_.start();
  look_around_later();
  look_for_joins_later();
}

void BucketMaintainer::create_all() {
  const unsigned bits = context_.bucket_bits_min();
  if (context_.has_spare_nodes() && bits > kBitsMadeAhead) return;
  if (context_.unreported_buckets_may_exist()) return;
  std::vector<BucketId> made;
  for (std::uint64_t i = 0; i < std::uint64_t{1} << bits; ++i) {
    const BucketId bucket(bits, i);
    if (context_.snapshot->distributor_of(bucket) == context_.options.index) add_missing(bucket, made);
  }
  installer_.send(made);
}

bool BucketMaintainer::create_missing(BucketId bucket) {
  std::vector<BucketId> made;
  add_missing(bucket, made);
  installer_.send(made);
  return !made.empty();
}

void BucketMaintainer::add_missing(BucketId bucket, std::vector<BucketId>& made) {
  const std::vector<BucketId> parts = context_.buckets.overlapping(bucket);
  if (parts.empty() && context_.has_nodes_for_new(bucket)) {
    begin_creation(bucket);
    made.push_back(bucket);
  } else if (!parts.empty() && !parts.front().contains(bucket)) {
    for (const BucketId half : halves_of(bucket)) add_missing(half, made);
  }
}

BucketEntry& BucketMaintainer::create(BucketId bucket) {
  BucketEntry& entry = begin_creation(bucket);
  installer_.send({bucket});
  return entry;
}

BucketEntry& BucketMaintainer::begin_creation(BucketId bucket) {
  BucketEntry& entry = context_.buckets.add(bucket);
  entry.set = {context_.birth_epoch(0), context_.snapshot->nodes_for_new(bucket).to_vector()};
  installer_.begin(entry, {});
  return entry;
}

void BucketMaintainer::on_in_force(BucketEntry& entry, const Installation& done) {
  if (done.forget) retention_.order_done();
  callbacks_.bucket_ready(entry.bucket);
  if (entry.wants_merge()) merges_.enqueue(entry);
  merges_.start();
}

void BucketMaintainer::repair(BucketEntry& entry) {
  entry.dirty = true;
  entry.disturb_merge();
  merges_.enqueue_and_start(entry);
}

void BucketMaintainer::drained(BucketEntry& entry) {
  if (entry.is<activity::Reshaping>()) {
    reshaper_.drained(entry);
  } else if (entry.is<activity::Forgetting>()) {
    retention_.drained(entry);
  } else if (entry.is<activity::Draining>()) {
    merges_.drained(entry);
  }
}

// --- polls of storage nodes ------------------------------------------------------------------------------------------

void BucketMaintainer::look_around_later() {
  context_.executor.post_after(context_.options.damage_poll_interval, [this, generation = context_.generation] {
    if (generation == context_.generation) look_around();
  });
}

void BucketMaintainer::look_for_joins_later() {
  context_.executor.post_after(context_.options.join_interval, [this, generation = context_.generation] {
    if (generation != context_.generation) return;
    if (!merges_.is_paused()) reshaper_.look_for_joins();
    look_for_joins_later();
  });
}

/// Asks storage nodes for damaged buckets, for large ones, and for those with old remove entries. A storage node
/// reports its damaged buckets until they are repaired, so a lost answer does no harm.
void BucketMaintainer::look_around() {
  for (const DistributionGroup::Node& node : context_.snapshot->distribution().flat_nodes()) {
    if (!context_.snapshot->storage_serves(node.index)) continue;
    rpc::GetBucketInfo request;
    request.state_version = context_.snapshot->state_version();
    request.distributor = context_.options.index;
    request.all = true;
    request.only_damaged = true;
    request.entries_limit = reshaper_.entries_limit();
    request.bytes_limit = reshaper_.bytes_limit();
    retention_.ask(request);
    rpc::call(context_.transport, context_.storage_address(node.index), std::move(request),
              context_.options.storage_timeout, context_.executor,
              [this, index = node.index, generation = context_.generation](Result<rpc::GetBucketInfoReply> reply) {
                if (generation == context_.generation && reply) note_report(index, *reply);
              });
  }
  if (!merges_.is_paused()) reshaper_.look_for_few_bits();
  census_.look();
  merges_.retry_held_back();
  merges_.start();  // The settings may have changed, so that more merges may begin now.
  look_around_later();
}

void BucketMaintainer::note_report(std::uint16_t node, const rpc::GetBucketInfoReply& reply) {
  context_.space.update(node, reply.space_stage, reply.space_reason);
  for (const rpc::BucketReport& report : reply.reports) {
    BucketEntry* entry = context_.buckets.find(report.bucket);
    if (entry == nullptr || entry->set.epoch == 0) continue;
    if (report.damaged) repair_.note_damaged(*entry, node);
    if (!merges_.is_paused()) reshaper_.note_size(*entry, node, report.info);
    retention_.note(*entry, report);
  }
  retention_.go_on();
}

}  // namespace fjord::distributor
