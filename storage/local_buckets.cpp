#include "local_buckets.h"

#include <algorithm>
#include <utility>

#include "fjord/common/log.h"

namespace fjord::storage {

BucketIndex& LocalBuckets::index() {
  if (!index_) {
    index_.emplace();
    for (const BucketId bucket : context_.provider->list_buckets()) index_->add(bucket);
  }
  return *index_;
}

Status LocalBuckets::check_version(const rpc::GetBucketInfo& request) const {
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot = context_.snapshots.get();
  if (snapshot == nullptr || snapshot->state_version() < request.state_version) {
    return {StatusCode::NotReady, "storage node has not got that cluster state yet"};
  }
  if (snapshot->state_version() > request.state_version) {
    return {StatusCode::WrongDistribution, "the cluster state is newer"};
  }
  return Status::ok();
}

Result<std::vector<BucketId>> LocalBuckets::asked_buckets(const rpc::GetBucketInfo& request) {
  FJORD_TRY(check_version(request));
  FJORD_TRY(split_to(context_.snapshots.get()->distribution_bits()));
  const bool all = request.all || request.of_all_owners;
  return all ? context_.provider->list_buckets() : present_parts(request.buckets);
}

Status LocalBuckets::report(const rpc::GetBucketInfo& request, std::span<const BucketId> buckets,
                            std::vector<rpc::BucketReport>& reports) {
  FJORD_TRY(check_version(request));
  const std::shared_ptr<const rpc::ClusterSnapshot> snapshot = context_.snapshots.get();
  for (BucketId bucket : buckets) {
    if (!request.of_all_owners && snapshot->distributor_of(bucket) != request.distributor) continue;
    Result<BucketInfo> info = context_.provider->bucket_info(bucket);
    Result<ReplicaSet> set = context_.provider->replica_set(bucket);
    if (!info || !set) continue;
    const bool damaged = damaged_.contains(bucket);
    const bool large = (request.entries_limit != 0 && info->entries > request.entries_limit) ||
                       (request.bytes_limit != 0 && info->bytes > request.bytes_limit);
    rpc::BucketReport report{.bucket = bucket, .info = *info, .replica_set = *set, .damaged = damaged};
    add_forgotten(report);
    if (request.removes_before_us != 0 || request.tokens_before_us != 0) {
      removed_.judge(request, context_.clock.now(), report);
    }
    if (damaged || large || report.may_forget || !request.only_damaged) reports.push_back(std::move(report));
  }
  return Status::ok();
}

void LocalBuckets::end_reports(const rpc::GetBucketInfo& request) {
  if ((request.all || request.of_all_owners) && request.only_damaged) {
    removed_.end_pass(context_.provider->list_buckets());
  }
}

/// Notes in the index what a call of the engine has replaced. After a call that failed it is not known what is here, so
/// the index is made again from the list of the engine.
Status LocalBuckets::note_change(Status done, std::initializer_list<BucketId> before,
                                 std::initializer_list<BucketId> after) {
  if (!done) index_.reset();
  if (index_) {
    for (const BucketId bucket : before) index_->remove(bucket);
    for (const BucketId bucket : after) index_->add(bucket);
  }
  return done;
}

Status LocalBuckets::create(BucketId bucket) {
  return note_change(context_.provider->create_bucket(bucket), {}, {bucket});
}

Status LocalBuckets::set_replica_set(const rpc::SetReplicaSets& request, const rpc::BucketReplicaSet& entry) {
  FJORD_TRY(context_.check_owner(request.state_version, request.distributor, entry.bucket));
  if (is_deleted_since(request, entry)) return Status::ok();
  // A set that does not name this node is stored only if the replica exists; it is no reason to create a replica.
  bool left_out = entry.replica_set.epoch != 0 && !entry.replica_set.contains(context_.options.index);
  const auto is_here = static_cast<bool>(context_.provider->replica_set(entry.bucket));
  if (left_out && !is_here) return Status::ok();
  if (!is_here && !index().overlapping(entry.bucket).empty()) {
    return {StatusCode::NotReady, entry.bucket.to_string() + " is here with more or fewer bits"};
  }
  FJORD_TRY(create(entry.bucket));
  FJORD_TRY_ASSIGN(ReplicaSet old, context_.provider->replica_set(entry.bucket));
  // A message with epoch 0 says that the replica is catching up: the replica keeps its earlier set. A late duplicate
  // changes nothing.
  if (entry.replica_set.epoch <= old.epoch) return Status::ok();
  if (old.epoch == 0 && !entry.replica_set.contains(context_.options.index)) return Status::ok();
  if (entry.repaired) FJORD_TRY(damaged_.mark_if_repaired(entry));
  FJORD_TRY(context_.provider->set_replica_set(entry.bucket, entry.replica_set));
  forget(entry);
  return Status::ok();
}

/// Drops remove entries up to the times in `entry`. A replica that fails to do so reports more entries than the others;
/// the owner notices this and merges it.
void LocalBuckets::forget(const rpc::BucketReplicaSet& entry) {
  if (entry.forget_removes_before_us == 0 && entry.forget_tokens_before_us == 0) return;
  const Status done = context_.provider->forget(entry.bucket, Timestamp{entry.forget_removes_before_us},
                                                Timestamp{entry.forget_tokens_before_us});
  if (!done) log::warning("storage", "{} keeps its removed entries: {}", entry.bucket.to_string(), done.to_string());
  removed_.count_again(entry.bucket);
}

BucketInfo LocalBuckets::content_of(BucketId bucket) {
  const Result<BucketInfo> info = context_.provider->bucket_info(bucket);
  return info ? *info : BucketInfo{};
}

bool LocalBuckets::is_deleted_since(const rpc::SetReplicaSets& request, const rpc::BucketReplicaSet& entry) const {
  auto deleted = deleted_.find(entry.bucket);
  return request.state_version == deleted_version_ && deleted != deleted_.end() &&
         entry.replica_set.epoch <= deleted->second;
}

Status LocalBuckets::delete_bucket(const rpc::DeleteBuckets& request, BucketId bucket) {
  FJORD_TRY(context_.check_owner(request.state_version, request.distributor, bucket));
  return delete_replica(request.state_version, bucket);
}

Status LocalBuckets::delete_replica(std::uint64_t state_version, BucketId bucket) {
  if (deleted_version_ != state_version) {
    deleted_version_ = state_version;
    deleted_.clear();
  }
  // Before it is deleted, the bucket receives a set that does not name this node, so no earlier message has a higher
  // epoch.
  if (Result<ReplicaSet> set = context_.provider->replica_set(bucket)) deleted_[bucket] = set->epoch;
  FJORD_TRY(note_change(context_.provider->delete_bucket(bucket), {bucket}, {}));
  damaged_.forget(bucket);
  return Status::ok();
}

/// Splits buckets that use too few bits. Placement and ownership require buckets of at least `bits` bits. Distributors
/// split buckets before a state with more distribution bits comes into force, but they cannot reach a node that is away
/// at that time.
Status LocalBuckets::split_to(unsigned bits) {
  if (split_to_ >= bits) return Status::ok();
  for (bool found = true; found;) {
    found = false;
    for (BucketId bucket : context_.provider->list_buckets()) {
      if (bucket.used_bits() >= bits) continue;
      found = true;
      FJORD_TRY(split_in_two(bucket));
    }
  }
  split_to_ = bits;
  return Status::ok();
}

Status LocalBuckets::split_in_two(BucketId bucket) {
  const auto [low, high] = halves_of(bucket);
  FJORD_TRY(note_change(context_.provider->split_bucket(bucket), {bucket}, {low, high}));
  damaged_.inherit({bucket}, {low, high});
  context_.metrics.splits.add();
  return Status::ok();
}

std::vector<BucketId> LocalBuckets::present_parts(const std::vector<BucketId>& asked) {
  std::vector<BucketId> found;
  for (BucketId bucket : asked) {
    if (index().contains(bucket)) {
      found.push_back(bucket);
    } else {
      const std::vector<BucketId> others = index().overlapping(bucket);
      found.insert(found.end(), others.begin(), others.end());
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

rpc::BucketReport LocalBuckets::report_of(BucketId bucket) {
  rpc::BucketReport report;
  report.bucket = bucket;
  if (Result<BucketInfo> info = context_.provider->bucket_info(bucket)) report.info = *info;
  if (Result<ReplicaSet> set = context_.provider->replica_set(bucket)) report.replica_set = std::move(*set);
  report.damaged = damaged_.contains(bucket);
  add_forgotten(report);
  return report;
}

/// Adds to the report the times up to which entries were dropped. The newest entry may be among the dropped ones, so
/// `max_timestamp_us` covers these times: later writes have to be newer than they are.
void LocalBuckets::add_forgotten(rpc::BucketReport& report) const {
  const Result<spi::Forgotten> forgotten = context_.provider->forgotten(report.bucket);
  if (!forgotten) return;
  report.forgotten_removes_us = forgotten->removes.us;
  report.forgotten_tokens_us = forgotten->tokens.us;
  const std::uint64_t newest = std::max(forgotten->removes, forgotten->tokens).us;
  if (newest > 0) report.info.max_timestamp_us = std::max(report.info.max_timestamp_us, newest - 1);
}

rpc::SplitBucketReply LocalBuckets::split(const rpc::SplitBucket& request) {
  rpc::SplitBucketReply reply;
  const auto run = [&]() -> Status {
    FJORD_TRY(context_.check_owner(request.state_version, request.distributor, request.bucket));
    FJORD_TRY(context_.check_epoch(request.bucket, request.epoch));
    if (request.bucket.used_bits() == BucketId::kUsedBitsMax) {
      return {StatusCode::InvalidArgument, request.bucket.to_string() + " has no bit left"};
    }
    const auto [low, high] = halves_of(request.bucket);
    if (context_.provider->replica_set(request.bucket)) {
      FJORD_TRY(split_in_two(request.bucket));
    }
    for (BucketId half : {low, high}) {
      if (context_.provider->replica_set(half)) reply.reports.push_back(report_of(half));
    }
    if (reply.reports.empty())
      return {StatusCode::NotFound, request.bucket.to_string() + " is not on this storage node"};
    return Status::ok();
  };
  reply.status = run();
  return reply;
}

rpc::JoinBucketsReply LocalBuckets::join(const rpc::JoinBuckets& request) {
  rpc::JoinBucketsReply reply;
  const auto run = [&]() -> Status {
    FJORD_TRY(context_.check_owner(request.state_version, request.distributor, request.parent));
    FJORD_TRY(context_.check_epoch(request.parent, request.epoch));
    const auto [low, high] = halves_of(request.parent);
    const Result<ReplicaSet> low_set = context_.provider->replica_set(low);
    const Result<ReplicaSet> high_set = context_.provider->replica_set(high);
    if (low_set && high_set) {
      // Refused: if the sets of the halves differ, one set could not describe the content of the joined bucket.
      if (*low_set != *high_set || low_set->epoch > request.epoch) {
        return {StatusCode::WrongDistribution, "the halves of " + request.parent.to_string() +
                                                   " have other replica sets than the one this was sent under"};
      }
      FJORD_TRY(note_change(context_.provider->join_buckets(request.parent), {low, high}, {request.parent}));
      damaged_.inherit({low, high}, {request.parent});
      context_.metrics.joins.add();
    }
    if (!context_.provider->replica_set(request.parent)) {
      return {StatusCode::NotFound, "not both halves of " + request.parent.to_string() + " are on this storage node"};
    }
    reply.report = report_of(request.parent);
    return Status::ok();
  };
  reply.status = run();
  return reply;
}

LocalBuckets::Totals LocalBuckets::totals() {
  damaged_.take_new();
  Totals totals;
  totals.damaged = damaged_.size();
  for (BucketId bucket : context_.provider->list_buckets()) {
    Result<BucketInfo> info = context_.provider->bucket_info(bucket);
    if (!info) continue;
    ++totals.buckets;
    totals.min_bits = totals.min_bits == 0 ? bucket.used_bits() : std::min(totals.min_bits, bucket.used_bits());
    totals.documents += info->documents;
    totals.bytes += info->bytes;
  }
  return totals;
}

}  // namespace fjord::storage
