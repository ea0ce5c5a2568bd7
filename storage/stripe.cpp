#include "stripe.h"

#include <algorithm>

#include "bucket_merge.h"
#include "fjord/common/log.h"
#include "fjord/common/lost_pages.h"
#include "fjord/document/document_id.h"
#include "fjord/rpc/refusal.h"
#include "garbage_scan.h"

namespace fjord::storage {

namespace {

/// The shortest pause before the next maintenance step when the engine has nothing more to do at once.
constexpr Duration kMaintenanceLeast = std::chrono::milliseconds(1);

}  // namespace

StripeMetrics::StripeMetrics(MetricRegistry& registry)
    : puts(registry.counter("fjord_storage_operations_total", "Operations applied", {{"operation", "put"}})),
      gets(registry.counter("fjord_storage_operations_total", "Operations applied", {{"operation", "get"}})),
      removes(registry.counter("fjord_storage_operations_total", "Operations applied", {{"operation", "remove"}})),
      errors(registry.counter("fjord_storage_errors_total", "Operations that the storage engine could not do")),
      refused(registry.counter("fjord_storage_refused_total",
                               "Operations refused because sender or cluster state were not the current ones")),
      damaged(registry.counter("fjord_storage_damaged_total",
                               "Buckets in which the storage engine met damage, counted each time")),
      repaired(registry.counter("fjord_storage_repaired_total",
                                "Damaged buckets that hold again what their intact replicas hold")),
      merges(registry.counter("fjord_storage_merges_total", "Merges of a bucket from another replica")),
      splits(registry.counter("fjord_storage_bucket_splits_total", "Buckets split into halves")),
      joins(registry.counter("fjord_storage_bucket_joins_total", "Halves joined to buckets")),
      merged_entries(registry.counter("fjord_storage_merged_entries_total", "Entries fetched by merges")),
      dropped_entries(registry.counter("fjord_storage_merge_dropped_entries_total",
                                       "Entries that merges removed: their removes were dropped while the replica was "
                                       "away")),
      refilled(registry.counter("fjord_storage_merge_refilled_total",
                                "Replicas that merges filled from nothing: they had writes that nobody acknowledged, "
                                "from before what was dropped while the replica was away")),
      merge_entries_peak(registry.gauge("fjord_storage_merge_entries_peak",
                                        "Most entries of both replicas whose metadata a merge had in memory")),
      throttled(
          registry.counter("fjord_storage_throttled_total", "Puts answered BUSY because the disk is nearly full")),
      no_space(registry.counter("fjord_storage_no_space_total", "Puts and merges refused because the disk is full")),
      put_seconds(
          registry.histogram("fjord_storage_operation_seconds", "Time in the storage engine", {{"operation", "put"}})),
      get_seconds(
          registry.histogram("fjord_storage_operation_seconds", "Time in the storage engine", {{"operation", "get"}})),
      remove_seconds(registry.histogram("fjord_storage_operation_seconds", "Time in the storage engine",
                                        {{"operation", "remove"}})) {}

StorageNode::Stripe::Stripe(const StorageNodeOptions& options, Runtime& runtime, rpc::Transport& transport,
                            const rpc::SnapshotHolder& snapshots, MaintenanceBudget& budget,
                            std::unique_ptr<spi::PersistenceProvider> provider, unsigned index)
    : options_(options),
      clock_(runtime.clock),
      transport_(transport),
      snapshots_(snapshots),
      budget_(budget),
      metrics_(runtime.metrics),
      provider_(std::move(provider)),
      removed_(runtime.metrics, *provider_, options.count_removed_interval),
      executor_(runtime.scheduler.make_executor("stripe-" + std::to_string(index))) {
  executor_->post_after(kMaintenanceLeast, [this] { maintain(); });
}

Status StorageNode::Stripe::check_owner(std::uint64_t version, std::uint16_t distributor, BucketId bucket) const {
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot = snapshots_.get();
  if (snapshot == nullptr || snapshot->state_version() < version) {
    return {StatusCode::NotReady, "storage node has not got cluster state " + std::to_string(version) + " yet"};
  }
  if (snapshot->state_version() != version || snapshot->distributor_of(bucket) != distributor) {
    return {StatusCode::WrongDistribution, "distributor." + std::to_string(distributor) + " with cluster state " +
                                               std::to_string(version) + " does not own " + bucket.to_string() +
                                               " in cluster state " + std::to_string(snapshot->state_version())};
  }
  return Status::ok();
}

void StorageNode::Stripe::apply(const rpc::Apply& request, MonotonicTime posted,
                                const std::vector<std::uint32_t>& indexes, std::vector<rpc::OperationResult>& results) {
  if (request.in_background < request.operations.size()) budget_.note_foreground(clock_.now() - posted);
  // Operations on one bucket stay in order. Writes go to the engine as one batch over all buckets.
  std::vector<std::uint32_t> order = indexes;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return request.operations[a].bucket.raw() < request.operations[b].bucket.raw();
  });
  // A write of the first message may have been reported as not applied, so a duplicate must not apply it.
  const bool is_copy = refused_messages_.contains(request.state_version, request.distributor, request.number);
  for (std::size_t begin = 0; begin < order.size();) {
    BucketId bucket = request.operations[order[begin]].bucket;
    std::size_t end = begin + 1;
    while (end < order.size() && request.operations[order[end]].bucket == bucket) ++end;
    apply_bucket(request, is_copy, std::span(order).subspan(begin, end - begin), results);
    begin = end;
  }
  flush_writes(request, results);
  settle_refused(request, order, results);
}

/// Settles writes that failed for lack of space, and remembers messages of which a write was refused. NO_SPACE promises
/// that the write is not stored and never will be. Both can be untrue: an earlier duplicate of the message may have
/// been applied, so the stored version is looked up; and a later duplicate may find space, so the message's number is
/// remembered. The number is also remembered after NOT_READY, because a later duplicate may find the bucket ready.
void StorageNode::Stripe::settle_refused(const rpc::Apply& request, std::span<const std::uint32_t> indexes,
                                         std::vector<rpc::OperationResult>& results) {
  bool is_refused = false;
  for (std::uint32_t i : indexes) {
    const rpc::StorageOperation& operation = request.operations[i];
    const StatusCode code = results[i].status.code();
    if (operation.kind == rpc::OperationKind::Get) continue;
    if (code == StatusCode::NotReady) is_refused = true;
    if (!rpc::is_lack_of_space(code)) continue;
    const Result<spi::StoredDocument> here = provider_->get(operation.bucket, operation.gid, spi::Parts::HeaderOnly);
    if (here && here->timestamp.us >= operation.timestamp_us) {
      results[i].status = Status::ok();
      results[i].existed = true;
      results[i].timestamp_us = operation.timestamp_us;
    } else {
      is_refused = true;
    }
  }
  if (!is_refused) return;
  if (const auto snapshot = snapshots_.get(); snapshot != nullptr) {
    refused_messages_.forget_before(snapshot->state_version());
    if (request.state_version < snapshot->state_version()) return;
  }
  refused_messages_.note(request.state_version, request.distributor, request.number);
}

void StorageNode::Stripe::flush_writes(const rpc::Apply& request, std::vector<rpc::OperationResult>& results) {
  if (!write_indexes_.empty()) write_run(request, write_indexes_, results);
  write_indexes_.clear();
}

/// Does one step of the engine's background work and schedules the next: behind the waiting requests if more work is
/// due at once, otherwise after a pause.
void StorageNode::Stripe::maintain() {
  const spi::Maintenance left = provider_->maintain(clock_.now());
  if (!health_reported_ && !provider_->health()) {
    health_reported_ = true;
    log::error("storage", "{}", provider_->health().to_string());
  }
  take_damaged();
  if (left.more) {
    executor_->post([this] { maintain(); });
  } else {
    executor_->post_after(std::max(left.next_in, kMaintenanceLeast), [this] { maintain(); });
  }
}

void StorageNode::Stripe::take_damaged() {
  for (const BucketId bucket : provider_->take_damaged()) {
    metrics_.damaged.add();
    damaged_.insert(bucket);
    log::error("storage", "{} is damaged: it may have lost documents until it was merged from an intact replica",
               bucket.to_string());
  }
}

bool StorageNode::Stripe::is_damaged(BucketId bucket) {
  take_damaged();
  return damaged_.contains(bucket);
}

void StorageNode::Stripe::apply_bucket(const rpc::Apply& request, bool is_copy, std::span<const std::uint32_t> indexes,
                                       std::vector<rpc::OperationResult>& results) {
  BucketId bucket = request.operations[indexes.front()].bucket;
  Status owner = check_owner(request.state_version, request.distributor, bucket);
  std::uint64_t epoch = 0;
  ReplicaSet replicas;
  if (owner) {
    Result<ReplicaSet> set = provider_->replica_set(bucket);
    if (set) {
      epoch = set->epoch;
      replicas = std::move(*set);
    } else {
      owner = Status(StatusCode::NotReady, bucket.to_string() + " is not on this storage node");
    }
  }
  if (!owner) {
    metrics_.refused.add(indexes.size());
    for (std::uint32_t i : indexes) results[i].status = owner;
    return;
  }
  for (std::uint32_t i : indexes) {
    const rpc::StorageOperation& operation = request.operations[i];
    if (operation.epoch < epoch) {
      // The replica set has changed since this was sent. A delayed message must not change a single replica.
      results[i].status = Status(StatusCode::WrongDistribution, "sent under an older replica set");
      metrics_.refused.add();
    } else if (operation.kind == rpc::OperationKind::Get) {
      // Operations are sorted by bucket, so only the last collected writes can be on this bucket.
      if (!write_indexes_.empty() && request.operations[write_indexes_.back()].bucket == bucket) {
        flush_writes(request, results);
      }
      read(operation, results[i]);
    } else if (is_copy) {
      // The outcome of the first message is no longer known, so the answer says only that this one is refused.
      results[i].status = Status(StatusCode::NotReady, "a copy of a message that was refused");
      metrics_.refused.add();
    } else if (operation.kind == rpc::OperationKind::Put || operation.kind == rpc::OperationKind::Remove) {
      Status same = operation.compare ? compare(operation, replicas) : Status::ok();
      if (same) same = check_space(operation);
      if (same) {
        write_indexes_.push_back(i);
      } else {
        results[i].status = std::move(same);
      }
    } else {
      results[i].status = Status(StatusCode::NotImplemented, "unknown kind of operation");
    }
  }
}

void StorageNode::Stripe::write_run(const rpc::Apply& request, std::span<const std::uint32_t> run,
                                    std::vector<rpc::OperationResult>& results) {
  MonotonicTime start = clock_.now();
  writes_.clear();
  std::uint64_t puts = 0;
  spi::Durability durability = spi::Durability::Process;
  const std::shared_ptr<const rpc::ClusterSnapshot> snapshot = snapshots_.get();
  for (std::uint32_t i : run) {
    const rpc::StorageOperation& operation = request.operations[i];
    bool remove = operation.kind == rpc::OperationKind::Remove;
    puts += remove ? 0 : 1;
    if (durability_of(operation) == spi::Durability::Sync) durability = spi::Durability::Sync;
    writes_.push_back({.bucket = operation.bucket,
                       .gid = operation.gid,
                       .timestamp = Timestamp{operation.timestamp_us},
                       .remove = remove,
                       .id = operation.id,
                       .header = operation.header,
                       .body = operation.body});
    if (!remove && snapshot != nullptr) spi::set_compression(writes_.back(), *snapshot->types());
    if (operation.token_entry.empty()) continue;
    writes_.push_back({.bucket = operation.bucket,
                       .gid = operation.token_gid,
                       .timestamp = Timestamp{operation.timestamp_us},
                       .remove = true,
                       .id = operation.token_entry,
                       .header = {},
                       .body = {}});
  }
  write_results_.assign(writes_.size(), {});
  provider_->apply(writes_, write_results_, durability);
  std::size_t at = 0;
  for (std::uint32_t i : run) {
    rpc::OperationResult& result = results[i];
    result.status = std::move(write_results_[at].status);
    result.existed = write_results_[at].existed;
    result.timestamp_us = request.operations[i].timestamp_us;
    ++at;
    if (!request.operations[i].token_entry.empty()) {
      if (result.status) result.status = std::move(write_results_[at].status);
      ++at;
    }
    if (!result.status) metrics_.errors.add();
  }
  Duration each = (clock_.now() - start) / static_cast<std::int64_t>(run.size());
  metrics_.puts.add(puts);
  metrics_.removes.add(run.size() - puts);
  metrics_.put_seconds.observe_many(each, puts);
  metrics_.remove_seconds.observe_many(each, run.size() - puts);
}

void StorageNode::Stripe::read(const rpc::StorageOperation& operation, rpc::OperationResult& result) {
  MonotonicTime start = clock_.now();
  Result<spi::StoredDocument> found =
      provider_->get(operation.bucket, operation.gid, operation.header_only ? spi::Parts::HeaderOnly : spi::Parts::All);
  if (!found) {
    result.status = found.error();
    if (found.error().code() != StatusCode::NotFound) metrics_.errors.add();
  } else {
    result.status = found->removed ? Status(StatusCode::NotFound, "removed") : Status::ok();
    result.timestamp_us = found->timestamp.us;
    const LostPages lost;
    result.header = std::move(found->header);
    result.body = std::move(found->body);
    if (lost.any()) {
      result = {};
      result.status = Status(StatusCode::Corruption, operation.gid.to_string() + " was cut off while it was read");
    }
  }
  if (operation.token_gid != GlobalId{} && (result.status || result.status.code() == StatusCode::NotFound)) {
    read_token(operation, result);
  }
  const bool removed = found && found->removed;
  if (is_damaged(operation.bucket) && (!operation.even_damaged || removed)) {
    // The newest version may be among the losses, so that an older version or an older remove is found instead.
    result = {};
    result.status =
        Status(StatusCode::Corruption, operation.bucket.to_string() + " is damaged here; another replica knows");
  }
  metrics_.gets.add();
  metrics_.get_seconds.observe(clock_.now() - start);
}

void StorageNode::Stripe::read_token(const rpc::StorageOperation& operation, rpc::OperationResult& result) {
  Result<spi::StoredDocument> found = provider_->get(operation.bucket, operation.token_gid, spi::Parts::HeaderOnly);
  if (!found) {
    if (found.error().code() != StatusCode::NotFound) result.status = found.error();
    return;
  }
  DocBlockBuilder block;  // A get does not return the id, which contains the other fields of the token entry.
  const GlobalId gids[] = {operation.token_gid};
  Result<std::size_t> done = provider_->read_entries(operation.bucket, gids, block, 1);
  if (!done) {
    result.status = done.error();
    return;
  }
  const std::string bytes = block.take();
  DocBlockReader reader(bytes);
  const std::optional<EntryView> entry = reader.next();
  if (!entry || !entry->removed) return;
  result.token_entry = entry->id;
  result.token_timestamp_us = entry->timestamp.us;
}

Status StorageNode::Stripe::compare(const rpc::StorageOperation& operation, const ReplicaSet& set) {
  const bool is_member = set.epoch == operation.epoch && set.contains(options_.index);
  Result<spi::StoredDocument> found = provider_->get(operation.bucket, operation.gid, spi::Parts::HeaderOnly);
  // The sender's retry would not help.
  if (!found && found.error().code() == StatusCode::Corruption) return found.error();
  if (!found && found.error().code() != StatusCode::NotFound) {
    return {StatusCode::NotReady, "the version here cannot be read: " + found.error().to_string()};
  }
  const std::uint64_t here = found ? found->timestamp.us : 0;
  const bool is_repetition = here == operation.timestamp_us;
  if (is_repetition || here == operation.read_us || (!is_member && here < operation.read_us)) return Status::ok();
  metrics_.refused.add();
  return {StatusCode::TestAndSetFailed, "version " + std::to_string(here) + " is here and not the one that was read, " +
                                            std::to_string(operation.read_us)};
}

Status StorageNode::Stripe::check_space(const rpc::StorageOperation& operation) {
  if (operation.kind == rpc::OperationKind::Remove) return Status::ok();
  // A merge would bring this write from another replica anyway, so the limits for merges apply.
  if (operation.is_elsewhere) return check_space_to_merge();
  const std::string node = "storage." + std::to_string(options_.index);
  if (Status status = space_.check_external(node); !status) {
    metrics_.no_space.add();
    return status;
  }
  const std::uint64_t bytes = operation.header.size() + operation.body.size();
  refused_share_ += space_.refused_percent;
  if (refused_share_ >= 100) {
    refused_share_ -= 100;
  } else if (put_bytes_ == 0 || put_bytes_ + bytes <= space_.budget_bytes) {
    put_bytes_ += bytes;
    return Status::ok();
  }
  metrics_.throttled.add();
  return {StatusCode::Busy, node + " takes fewer writes, for its disk is nearly full: " + space_.reason};
}

Status StorageNode::Stripe::check_space_to_merge() {
  Status status = space_.check_merge("storage." + std::to_string(options_.index));
  if (!status) metrics_.no_space.add();
  return status;
}

spi::Durability StorageNode::Stripe::durability_of(const rpc::StorageOperation& operation) const {
  switch (operation.durability) {
    case rpc::Durability::Process:
      return spi::Durability::Process;
    case rpc::Durability::Sync:
      return spi::Durability::Sync;
    case rpc::Durability::Default:
      break;
  }
  return options_.durability;
}

Result<std::vector<rpc::BucketReport>> StorageNode::Stripe::bucket_info(const rpc::GetBucketInfo& request) {
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot = snapshots_.get();
  if (snapshot == nullptr || snapshot->state_version() < request.state_version) {
    return Status(StatusCode::NotReady, "storage node has not got that cluster state yet");
  }
  if (snapshot->state_version() > request.state_version) {
    return Status(StatusCode::WrongDistribution, "the cluster state is newer");
  }
  FJORD_TRY(split_to(snapshot->distribution_bits()));
  std::vector<rpc::BucketReport> reports;
  const bool all = request.all || request.census;
  for (BucketId bucket : all ? provider_->list_buckets() : present_parts(request.buckets)) {
    if (!request.census && snapshot->distributor_of(bucket) != request.distributor) continue;
    Result<BucketInfo> info = provider_->bucket_info(bucket);
    Result<ReplicaSet> set = provider_->replica_set(bucket);
    if (!info || !set) continue;
    const bool damaged = is_damaged(bucket);
    const bool large = (request.entries_limit != 0 && info->entries > request.entries_limit) ||
                       (request.bytes_limit != 0 && info->bytes > request.bytes_limit);
    rpc::BucketReport report{.bucket = bucket, .info = *info, .replica_set = *set, .damaged = damaged};
    add_forgotten(report);
    if (request.removes_before_us != 0 || request.tokens_before_us != 0) {
      removed_.judge(request, clock_.now(), report);
    }
    if (damaged || large || report.may_forget || !request.only_damaged) reports.push_back(std::move(report));
  }
  if (all && request.only_damaged) removed_.end_pass(provider_->list_buckets());
  return reports;
}

Status StorageNode::Stripe::set_replica_set(const rpc::SetReplicaSets& request, const rpc::BucketReplicaSet& entry) {
  FJORD_TRY(check_owner(request.state_version, request.distributor, entry.bucket));
  if (is_deleted_since(request, entry)) return Status::ok();
  // A set without this node is stored only if the replica exists; it is no reason to create one.
  bool left_out = entry.replica_set.epoch != 0 && !entry.replica_set.contains(options_.index);
  const auto is_here = static_cast<bool>(provider_->replica_set(entry.bucket));
  if (left_out && !is_here) return Status::ok();
  if (!is_here && overlaps_another(entry.bucket)) {
    return {StatusCode::NotReady, entry.bucket.to_string() + " is here with more or fewer bits"};
  }
  FJORD_TRY(provider_->create_bucket(entry.bucket));
  FJORD_TRY_ASSIGN(ReplicaSet old, provider_->replica_set(entry.bucket));
  // A replica that is catching up (epoch 0) keeps its earlier set. A duplicate that arrives late changes nothing.
  if (entry.replica_set.epoch <= old.epoch) return Status::ok();
  if (old.epoch == 0 && !entry.replica_set.contains(options_.index)) return Status::ok();
  if (entry.repaired) mark_if_repaired(entry);
  FJORD_TRY(provider_->set_replica_set(entry.bucket, entry.replica_set));
  forget(entry);
  return Status::ok();
}

/// Drops remove entries as `entry` says. A replica that fails to do so reports more entries than the others; the owner
/// notices this and merges it.
void StorageNode::Stripe::forget(const rpc::BucketReplicaSet& entry) {
  if (entry.forget_removes_before_us == 0 && entry.forget_tokens_before_us == 0) return;
  const Status done = provider_->forget(entry.bucket, Timestamp{entry.forget_removes_before_us},
                                        Timestamp{entry.forget_tokens_before_us});
  if (!done) log::warning("storage", "{} keeps its removed entries: {}", entry.bucket.to_string(), done.to_string());
  removed_.count_again(entry.bucket);
}

BucketInfo StorageNode::Stripe::content_of(BucketId bucket) {
  const Result<BucketInfo> info = provider_->bucket_info(bucket);
  return info ? *info : BucketInfo{};
}

void StorageNode::Stripe::mark_if_repaired(const rpc::BucketReplicaSet& entry) {
  if (!is_damaged(entry.bucket)) return;
  const Result<BucketInfo> info = provider_->bucket_info(entry.bucket);
  if (!info || !info->same_content(entry.intact)) {
    log::warning("storage", "{} is still damaged: it has lost something again", entry.bucket.to_string());
    return;
  }
  if (const Status marked = provider_->mark_repaired(entry.bucket); !marked) {
    log::error("storage", "{} cannot be marked as repaired: {}", entry.bucket.to_string(), marked.to_string());
    return;
  }
  damaged_.erase(entry.bucket);
  metrics_.repaired.add();
  log::info("storage", "{} is repaired: it holds {} entries, as its intact replica", entry.bucket.to_string(),
            info->entries);
}

bool StorageNode::Stripe::is_deleted_since(const rpc::SetReplicaSets& request,
                                           const rpc::BucketReplicaSet& entry) const {
  auto deleted = deleted_.find(entry.bucket);
  return request.state_version == deleted_version_ && deleted != deleted_.end() &&
         entry.replica_set.epoch <= deleted->second;
}

Status StorageNode::Stripe::delete_bucket(const rpc::DeleteBuckets& request, BucketId bucket) {
  FJORD_TRY(check_owner(request.state_version, request.distributor, bucket));
  return delete_replica(request.state_version, bucket);
}

Status StorageNode::Stripe::delete_replica(std::uint64_t state_version, BucketId bucket) {
  if (deleted_version_ != state_version) {
    deleted_version_ = state_version;
    deleted_.clear();
  }
  // The bucket receives the set that leaves it out before it is deleted, so no earlier message has a higher epoch.
  if (Result<ReplicaSet> set = provider_->replica_set(bucket)) deleted_[bucket] = set->epoch;
  FJORD_TRY(provider_->delete_bucket(bucket));
  take_damaged();
  damaged_.erase(bucket);
  return Status::ok();
}

Status StorageNode::Stripe::check_epoch(BucketId bucket, std::uint64_t epoch) const {
  const Result<ReplicaSet> set = provider_->replica_set(bucket);
  if (!set || set->epoch <= epoch) return Status::ok();
  return {StatusCode::WrongDistribution, "sent under an older replica set of " + bucket.to_string()};
}

/// Placement and ownership require buckets of at least `bits` bits. Distributors split buckets before a state with more
/// distribution bits comes into force, but they cannot reach a node that is away at that time.
Status StorageNode::Stripe::split_to(unsigned bits) {
  if (split_to_ >= bits) return Status::ok();
  for (bool found = true; found;) {
    found = false;
    for (BucketId bucket : provider_->list_buckets()) {
      if (bucket.used_bits() >= bits) continue;
      found = true;
      FJORD_TRY(provider_->split_bucket(bucket));
      const auto [low, high] = halves_of(bucket);
      inherit_damage({bucket}, {low, high});
      metrics_.splits.add();
    }
  }
  split_to_ = bits;
  return Status::ok();
}

std::vector<BucketId> StorageNode::Stripe::present_parts(const std::vector<BucketId>& asked) const {
  std::set<BucketId> found;
  std::vector<BucketId> others;
  for (BucketId bucket : asked) {
    if (provider_->replica_set(bucket)) {
      found.insert(bucket);
    } else {
      others.push_back(bucket);
    }
  }
  if (!others.empty()) {
    for (BucketId here : provider_->list_buckets()) {
      if (std::any_of(others.begin(), others.end(),
                      [&](BucketId bucket) { return here.contains(bucket) || bucket.contains(here); }))
        found.insert(here);
    }
  }
  return {found.begin(), found.end()};
}

bool StorageNode::Stripe::overlaps_another(BucketId bucket) const {
  const std::vector<BucketId> all = provider_->list_buckets();
  return std::any_of(all.begin(), all.end(),
                     [&](BucketId here) { return here != bucket && (here.contains(bucket) || bucket.contains(here)); });
}

void StorageNode::Stripe::inherit_damage(std::initializer_list<BucketId> before,
                                         std::initializer_list<BucketId> after) {
  take_damaged();
  std::size_t damaged = 0;
  for (BucketId bucket : before) damaged += damaged_.erase(bucket);
  if (damaged > 0) damaged_.insert(after);
}

rpc::BucketReport StorageNode::Stripe::report_of(BucketId bucket) {
  rpc::BucketReport report;
  report.bucket = bucket;
  if (Result<BucketInfo> info = provider_->bucket_info(bucket)) report.info = *info;
  if (Result<ReplicaSet> set = provider_->replica_set(bucket)) report.replica_set = std::move(*set);
  report.damaged = is_damaged(bucket);
  add_forgotten(report);
  return report;
}

/// Adds the dropped times to the report. The newest entry may be among the dropped ones, so `max_timestamp_us` covers
/// them: later writes have to be newer than these too.
void StorageNode::Stripe::add_forgotten(rpc::BucketReport& report) const {
  const Result<spi::Forgotten> forgotten = provider_->forgotten(report.bucket);
  if (!forgotten) return;
  report.forgotten_removes_us = forgotten->removes.us;
  report.forgotten_tokens_us = forgotten->tokens.us;
  const std::uint64_t newest = std::max(forgotten->removes, forgotten->tokens).us;
  if (newest > 0) report.info.max_timestamp_us = std::max(report.info.max_timestamp_us, newest - 1);
}

rpc::SplitBucketReply StorageNode::Stripe::split(const rpc::SplitBucket& request) {
  rpc::SplitBucketReply reply;
  const auto run = [&]() -> Status {
    FJORD_TRY(check_owner(request.state_version, request.distributor, request.bucket));
    FJORD_TRY(check_epoch(request.bucket, request.epoch));
    if (request.bucket.used_bits() == BucketId::kUsedBitsMax) {
      return {StatusCode::InvalidArgument, request.bucket.to_string() + " has no bit left"};
    }
    const auto [low, high] = halves_of(request.bucket);
    if (provider_->replica_set(request.bucket)) {
      FJORD_TRY(provider_->split_bucket(request.bucket));
      inherit_damage({request.bucket}, {low, high});
      metrics_.splits.add();
    }
    for (BucketId half : {low, high}) {
      if (provider_->replica_set(half)) reply.reports.push_back(report_of(half));
    }
    if (reply.reports.empty())
      return {StatusCode::NotFound, request.bucket.to_string() + " is not on this storage node"};
    return Status::ok();
  };
  reply.status = run();
  return reply;
}

rpc::JoinBucketsReply StorageNode::Stripe::join(const rpc::JoinBuckets& request) {
  rpc::JoinBucketsReply reply;
  const auto run = [&]() -> Status {
    FJORD_TRY(check_owner(request.state_version, request.distributor, request.parent));
    FJORD_TRY(check_epoch(request.parent, request.epoch));
    const auto [low, high] = halves_of(request.parent);
    const Result<ReplicaSet> low_set = provider_->replica_set(low);
    const Result<ReplicaSet> high_set = provider_->replica_set(high);
    if (low_set && high_set) {
      // If the sets of the halves differ, the content of the joined bucket could not be described by one set.
      if (*low_set != *high_set || low_set->epoch > request.epoch) {
        return {StatusCode::WrongDistribution, "the halves of " + request.parent.to_string() +
                                                   " have other replica sets than the one this was sent under"};
      }
      FJORD_TRY(provider_->join_buckets(request.parent));
      inherit_damage({low, high}, {request.parent});
      metrics_.joins.add();
    }
    if (!provider_->replica_set(request.parent)) {
      return {StatusCode::NotFound, "not both halves of " + request.parent.to_string() + " are on this storage node"};
    }
    reply.report = report_of(request.parent);
    return Status::ok();
  };
  reply.status = run();
  return reply;
}

void StorageNode::Stripe::merge(rpc::MergeBucket request, rpc::Responder respond) {
  // The space is checked only when there is something to write: a full replica that lacks nothing is in sync.
  Status owner = check_owner(request.state_version, request.distributor, request.bucket);
  if (owner && request.epoch != 0) owner = check_epoch(request.bucket, request.epoch);
  if (!owner) {
    rpc::MergeBucketReply reply;
    reply.status = std::move(owner);
    respond(std::move(reply));
    return;
  }
  BucketMerge::start(*this, std::move(request), std::move(respond));
}

void StorageNode::Stripe::find_garbage(const rpc::FindGarbage& request, rpc::Responder respond) {
  if (Status owner = check_owner(request.state_version, request.distributor, request.bucket); !owner) {
    rpc::FindGarbageReply reply;
    reply.status = std::move(owner);
    respond(std::move(reply));
    return;
  }
  GarbageScan::start(*this, request, std::move(respond));
}

rpc::ListEntriesReply StorageNode::Stripe::list_entries(const rpc::ListEntries& request) {
  rpc::ListEntriesReply reply;
  const std::size_t limit = request.max_entries == 0 ? options_.merge_page_entries : request.max_entries;
  const spi::GroupRange range{
      .from_start = request.from_start, .after = request.after_group, .last = request.last_group};
  const Result<spi::EntryWindow> window =
      request.by_group ? spi::list_window(*provider_, request.bucket, range, limit) : list_by_gid(request, limit);
  reply.damaged = is_damaged(request.bucket);
  if (!window) {
    reply.status = window.error();
    return reply;
  }
  if (const Result<spi::Forgotten> forgotten = provider_->forgotten(request.bucket)) {
    reply.forgotten_removes_us = forgotten->removes.us;
    reply.forgotten_tokens_us = forgotten->tokens.us;
    reply.forgotten_checksum = forgotten->checksum;
  }
  if (const Result<ReplicaSet> set = provider_->replica_set(request.bucket)) reply.epoch = set->epoch;
  reply.entries.reserve(window->entries.size());
  for (const spi::EntryMeta& entry : window->entries) {
    reply.entries.push_back({entry.gid, entry.timestamp.us, entry.removed});
  }
  reply.more = window->more;
  reply.by_group = request.by_group;
  return reply;
}

/// Lists by gid, for nodes of an earlier version.
Result<spi::EntryWindow> StorageNode::Stripe::list_by_gid(const rpc::ListEntries& request, std::size_t limit) {
  FJORD_TRY_ASSIGN(const std::vector<spi::EntryMeta> all, provider_->list_entries(request.bucket));
  auto begin = all.begin();
  if (!request.from_start) {
    begin = std::upper_bound(all.begin(), all.end(), request.after,
                             [](const GlobalId& after, const spi::EntryMeta& entry) { return after < entry.gid; });
  }
  const auto left = static_cast<std::size_t>(all.end() - begin);
  const auto end = begin + static_cast<std::ptrdiff_t>(std::min(limit, left));
  return spi::EntryWindow{.entries = {begin, end}, .more = limit < left};
}

rpc::FetchEntriesReply StorageNode::Stripe::fetch_entries(const rpc::FetchEntries& request) {
  rpc::FetchEntriesReply reply;
  const auto purpose = MaintenanceBudget::purpose_of(request.only_moves);
  if (const Duration wait = budget_.wait(clock_.now(), purpose); wait > Duration(0)) {
    const std::string name = "storage." + std::to_string(options_.index);
    reply.status = Status(StatusCode::Busy, name + " moves as much as it may (maintenance.bytes_per_s)",
                          {.node = name, .setting = "maintenance.bytes_per_s"});
    reply.wait_us = static_cast<std::uint64_t>(wait.count());
    return reply;
  }
  DocBlockBuilder block;
  std::size_t max_bytes = request.max_bytes == 0 ? options_.merge_block_bytes : request.max_bytes;
  Result<std::size_t> done = provider_->read_entries(request.bucket, request.gids, block, max_bytes);
  reply.damaged = is_damaged(request.bucket);
  if (!done) {
    reply.status = done.error();
    return reply;
  }
  reply.done = static_cast<std::uint32_t>(*done);
  reply.docblock = block.take();
  budget_.charge(clock_.now(), reply.docblock.size(), MaintenanceBudget::Direction::Out, purpose);
  return reply;
}

StorageNode::Stripe::Totals StorageNode::Stripe::totals() {
  take_damaged();
  Totals totals;
  totals.damaged = damaged_.size();
  for (BucketId bucket : provider_->list_buckets()) {
    Result<BucketInfo> info = provider_->bucket_info(bucket);
    if (!info) continue;
    ++totals.buckets;
    totals.min_bits = totals.min_bits == 0 ? bucket.used_bits() : std::min(totals.min_bits, bucket.used_bits());
    totals.documents += info->documents;
    totals.bytes += info->bytes;
  }
  return totals;
}

}  // namespace fjord::storage
