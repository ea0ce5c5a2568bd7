// The part of a session that finds the buckets and the node to read each from.

#include <algorithm>
#include <utility>

#include "visitor_session_impl.h"

namespace fjord::visitors {
namespace {

constexpr Duration kRefreshInterval = milliseconds(200);
/// With more buckets than this it is cheaper to ask the distributors for all buckets.
constexpr std::size_t kLocatedMax = 1024;

std::vector<std::uint16_t> distributors_up(const rpc::ClusterSnapshot& snapshot) {
  std::vector<std::uint16_t> up;
  for (std::size_t i = 0; i < snapshot.info().distributor_addresses.size(); ++i) {
    const auto index = static_cast<std::uint16_t>(i);
    if (snapshot.state().is_up({NodeType::Distributor, index})) up.push_back(index);
  }
  return up;
}

}  // namespace

rpc::Address VisitorSession::Impl::any_distributor() {
  if (const auto snapshot = snapshot_.get()) {
    const auto up = distributors_up(*snapshot);
    if (!up.empty()) return snapshot->info().distributor_addresses[up[random_.below(up.size())]];
    const auto& all = snapshot->info().distributor_addresses;
    if (!all.empty()) return all[random_.below(all.size())];
  }
  if (options_.bootstrap.empty()) return {};
  return options_.bootstrap[random_.below(options_.bootstrap.size())];
}

void VisitorSession::Impl::refresh_info() {
  if (refreshing_ || clock_.now() - refreshed_ < kRefreshInterval) return;
  const rpc::Address address = any_distributor();
  if (address.empty()) {
    last_reason_ = Status(StatusCode::NotReady, "no distributor is known");
    return;
  }
  refreshing_ = true;
  rpc::GetClusterInfo request;
  if (const auto snapshot = snapshot_.get()) {
    request.known_state_version = snapshot->state_version();
    request.known_schema_version = snapshot->schema_version();
  }
  rpc::call(transport_, address, request, options_.call_timeout, executor_,
            guarded([](Impl& self, Result<rpc::GetClusterInfoReply> reply) {
              self.refreshing_ = false;
              self.refreshed_ = self.clock_.now();
              if (!reply || !reply->status) {
                self.last_reason_ = reply ? reply->status : reply.error();
                return;
              }
              const bool first = self.snapshot_.get() == nullptr;
              self.take_info(reply->info);
              if (first) self.tick();
            }));
}

void VisitorSession::Impl::take_info(const rpc::ClusterInfo& info) {
  if (info.state_version == 0 && info.schema_version == 0) return;
  const auto changed = snapshot_.update(info);
  if (!changed) {
    last_reason_ = changed.error();
  } else if (*changed) {
    drop_runs_of_dead_nodes();
  }
}

void VisitorSession::Impl::look_at_selection() {
  if (options_.selection.empty() || selection_) return;
  auto parsed = Selection::parse(options_.selection, *snapshot_.get()->types());
  if (parsed) selection_ = std::move(*parsed);
}

bool VisitorSession::Impl::locate() {
  if (!selection_ || listing_ != 0 || !options_.follow_bits) return false;
  const std::vector<BucketId>* const possible = selection_->possible_buckets();
  const unsigned bits = snapshot_.get()->distribution_bits();
  if (possible == nullptr || possible->size() > kLocatedMax) return false;
  if (std::any_of(possible->begin(), possible->end(), [&](BucketId one) { return one.used_bits() < bits; })) {
    return false;
  }
  listed_ = named_ = true;
  progress_.located = true;
  std::set<BucketId> wholes;
  for (const BucketId one : *possible) wholes.insert(one.with_used_bits(bits));
  for (const BucketId whole : wholes) add_bucket(whole);
  progress_.skipped_by_selection = (std::uint64_t{1} << bits) - wholes.size();
  buckets_known();
  if (!finished_) finish_if_done();
  return true;
}

void VisitorSession::Impl::cut_bucket(BucketId bucket, unsigned bits) {
  const Bucket whole = std::move(buckets_.at(bucket));
  buckets_.erase(bucket);
  --progress_.buckets_total;
  if (callbacks_.on_bucket_dropped) callbacks_.on_bucket_dropped(bucket);
  const std::uint64_t parts = std::uint64_t{1} << (bits - bucket.used_bits());
  for (std::uint64_t i = 0; i < parts; ++i) {
    const BucketId part(bits, bucket.bits() | (i << bucket.used_bits()));
    add_bucket(part);
    const auto added = buckets_.find(part);
    if (added == buckets_.end()) continue;
    ++progress_.buckets_total;
    added->second.may_be_missing = true;
    if (!named_) due_.emplace(clock_.now(), part);
    if (callbacks_.on_bucket_dropped) continue;
    for (const GlobalId& gid : whole.given) {
      if (bucket_of(gid, bits) == part) added->second.given.insert(gid);
    }
  }
}

void VisitorSession::Impl::list_all() {
  const auto snapshot = snapshot_.get();
  const auto up = distributors_up(*snapshot);
  listing_ = ++listings_;
  listing_open_ = up.size();
  listing_found_.clear();
  if (up.empty()) {
    listing_failed(Status(StatusCode::NotReady, "no distributor is up"));
    return;
  }
  const rpc::GetBucketNodes request{.state_version = snapshot->state_version(), .all = true, .buckets = {}};
  for (const std::uint16_t distributor : up) {
    rpc::call(transport_, snapshot->info().distributor_addresses[distributor], request, options_.call_timeout,
              executor_, guarded([listing = listing_](Impl& self, Result<rpc::GetBucketNodesReply> reply) {
                self.on_listed(listing, std::move(reply));
              }));
  }
}

void VisitorSession::Impl::on_listed(std::uint64_t listing, Result<rpc::GetBucketNodesReply> reply) {
  if (listing != listing_) return;
  if (reply) take_info(reply->newer_info);
  if (!reply || !reply->status) {
    listing_failed(reply ? reply->status : reply.error());
    return;
  }
  // The answers fit together only under one cluster state, in which each bucket has one owner. A single bucket with
  // WrongDistribution shows that the distributor has another state.
  for (const rpc::BucketNode& found : reply->buckets) {
    if (found.status.code() == StatusCode::WrongDistribution) {
      listing_failed(found.status);
      return;
    }
  }
  std::move(reply->buckets.begin(), reply->buckets.end(), std::back_inserter(listing_found_));
  if (--listing_open_ == 0) listing_complete();
}

void VisitorSession::Impl::listing_failed(const Status& reason) {
  listing_ = 0;
  last_reason_ = reason;
  listing_backoff_ = std::clamp(listing_backoff_ * 2, options_.retry_first, options_.retry_max);
  next_listing_ = clock_.now() + listing_backoff_;
  refresh_info();
  wake_at(next_listing_);
}

void VisitorSession::Impl::listing_complete() {
  listing_ = 0;
  listed_ = true;
  moved();
  // Visits buckets in the order of the tree, so that the finished parts form few ranges.
  std::sort(listing_found_.begin(), listing_found_.end(), [](const rpc::BucketNode& a, const rpc::BucketNode& b) {
    return a.bucket.sort_key() < b.bucket.sort_key();
  });
  for (const rpc::BucketNode& found : listing_found_) add_bucket(found.bucket);
  buckets_known();
  if (finished_) return;
  const auto found_buckets = std::move(listing_found_);
  for (const rpc::BucketNode& found : found_buckets) {
    on_bucket_node(found);
    if (finished_) return;
  }
  create_visitors();
  finish_if_done();
}

void VisitorSession::Impl::resolve_due() {
  const auto snapshot = snapshot_.get();
  std::map<std::uint16_t, std::vector<BucketId>> by_distributor;
  std::vector<BucketId> without;
  while (!due_.empty() && due_.begin()->first <= clock_.now()) {
    const BucketId bucket = due_.begin()->second;
    due_.erase(due_.begin());
    if (options_.follow_bits && bucket.used_bits() < snapshot->distribution_bits()) {
      cut_bucket(bucket, snapshot->distribution_bits());
      continue;
    }
    if (const auto distributor = snapshot->distributor_of(bucket);
        distributor && *distributor < snapshot->info().distributor_addresses.size()) {
      by_distributor[*distributor].push_back(bucket);
    } else {
      without.push_back(bucket);
    }
  }
  if (!without.empty()) refresh_info();
  for (const BucketId bucket : without) {
    again_later(bucket, Status(StatusCode::Unavailable, "no distributor is up for " + bucket.to_string()));
  }
  for (auto& [distributor, buckets] : by_distributor) resolve(distributor, std::move(buckets));
  if (!due_.empty()) wake_at(due_.begin()->first);
  finish_if_done();
}

void VisitorSession::Impl::resolve(std::uint16_t distributor, std::vector<BucketId> buckets) {
  const auto snapshot = snapshot_.get();
  rpc::GetBucketNodes request{.state_version = snapshot->state_version(), .all = false, .buckets = buckets};
  std::set<std::uint16_t> avoid;
  for (const BucketId bucket : buckets) {
    if (const auto& node = buckets_.at(bucket).avoid) avoid.insert(*node);
  }
  request.avoid.assign(avoid.begin(), avoid.end());
  rpc::call(transport_, snapshot->info().distributor_addresses[distributor], std::move(request), options_.call_timeout,
            executor_, guarded([asked = std::move(buckets)](Impl& self, Result<rpc::GetBucketNodesReply> reply) {
              self.on_resolved(asked, std::move(reply));
            }));
}

void VisitorSession::Impl::on_resolved(const std::vector<BucketId>& asked, Result<rpc::GetBucketNodesReply> reply) {
  if (reply) take_info(reply->newer_info);
  if (!reply || !reply->status) {
    const Status reason = reply ? reply->status : reply.error();
    refresh_info();
    for (const BucketId bucket : asked) again_later(bucket, reason);
    return;
  }
  std::map<BucketId, const rpc::BucketNode*> answers;
  for (const rpc::BucketNode& found : reply->buckets) answers[found.bucket] = &found;
  for (const BucketId bucket : asked) {
    const auto it = answers.find(bucket);
    if (it == answers.end()) {
      again_later(bucket, Status(StatusCode::Unknown, "the distributor did not answer for " + bucket.to_string()));
    } else {
      on_bucket_node(*it->second);
    }
    if (finished_) return;
  }
  create_visitors();
  finish_if_done();
}

void VisitorSession::Impl::on_bucket_node(const rpc::BucketNode& found) {
  if (!buckets_.contains(found.bucket)) return;
  if (found.status && !node_up(found.node)) {
    // The distributor has another cluster state; a bucket queued for this node would wait for ever.
    refresh_info();
    again_later(found.bucket, Status(StatusCode::NotReady, "storage." + std::to_string(found.node) + " is not up",
                                     {.node = "storage." + std::to_string(found.node)}));
  } else if (found.status) {
    buckets_.at(found.bucket).even_damaged = found.even_damaged;
    nodes_[found.node].queue.push_back(found.bucket);
  } else if (found.status.code() == StatusCode::NotFound && buckets_.at(found.bucket).may_be_missing) {
    bucket_complete(found.bucket, {});  // the bucket has never held a document
  } else {
    if (found.status.code() == StatusCode::WrongDistribution) refresh_info();
    again_later(found.bucket, found.status);
  }
}

void VisitorSession::Impl::again_later(BucketId bucket, const Status& reason) {
  last_reason_ = reason;
  Duration& backoff = buckets_.at(bucket).backoff;
  backoff = std::clamp(backoff * 2, options_.retry_first, options_.retry_max);
  const auto jitter = Duration(static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(backoff.count()))));
  const MonotonicTime due = clock_.now() + backoff / 2 + jitter / 2;
  due_.emplace(due, bucket);
  wake_at(due);
}

}  // namespace fjord::visitors
