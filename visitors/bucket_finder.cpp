#include "bucket_finder.h"

#include <algorithm>
#include <map>

#include "fjord/common/callback_guard.h"
#include "fjord/rpc/cluster_news.h"

namespace fjord::visitors {
namespace {

constexpr Duration kRefreshInterval = milliseconds(200);
/// With more buckets than this it is cheaper to ask the distributors for all buckets.
constexpr std::size_t kLocatedMax = 1024;

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------
// Cluster information

void BucketFinder::refresh_info() {
  if (is_refreshing_ || context_.clock.now() - refreshed_ < kRefreshInterval) return;
  const rpc::Address address =
      rpc::any_distributor(context_.snapshot.get().get(), context_.options.bootstrap, context_.random);
  if (address.empty()) {
    context_.last_reason = Status(StatusCode::NotReady, "no distributor is known");
    return;
  }
  is_refreshing_ = true;
  rpc::call(context_.transport, address, rpc::question_for_news(context_.snapshot), context_.options.call_timeout,
            context_.executor, while_alive(self_, [](BucketFinder& self, Result<rpc::GetClusterInfoReply> reply) {
              self.is_refreshing_ = false;
              self.refreshed_ = self.context_.clock.now();
              const bool first = self.context_.snapshot.get() == nullptr;
              const Result<bool> changed = rpc::take_news(self.context_.snapshot, reply);
              if (!changed) {
                self.context_.last_reason = changed.error();
              } else if (*changed) {
                self.events_.nodes_changed();
              }
              if (first && reply && reply->status) self.events_.snapshot_came();
            }));
}

void BucketFinder::take_info(const rpc::ClusterInfo& info) {
  if (info.state_version == 0 && info.schema_version == 0) return;
  const auto changed = context_.snapshot.update(info);
  if (!changed) {
    context_.last_reason = changed.error();
  } else if (*changed) {
    events_.nodes_changed();
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// All buckets

void BucketFinder::tick() {
  if (!is_listed_) parse_selection();
  if (!is_listed_ && !locate()) {
    if (listing_ == 0 && context_.clock.now() >= next_listing_) list_all();
  } else {
    find_due();
  }
}

void BucketFinder::add_named(BucketId bucket) {
  if (buckets_.add(bucket, true)) due_.emplace(context_.clock.now(), bucket);
}

void BucketFinder::name_buckets(const std::vector<BucketId>& buckets) {
  is_listed_ = is_named_ = true;
  for (const BucketId bucket : buckets) add_named(bucket);
  buckets_known();
}

void BucketFinder::buckets_known() {
  context_.progress.buckets_total = buckets_.size();
  if (context_.callbacks.on_buckets_known) context_.callbacks.on_buckets_known(buckets_.size());
}

void BucketFinder::parse_selection() {
  const std::string& selection = context_.options.selection;
  if (selection.empty() || buckets_.selection()) return;
  auto parsed = Selection::parse(selection, *context_.snapshot.get()->types());
  if (parsed) buckets_.set_selection(std::move(*parsed));
}

bool BucketFinder::locate() {
  if (!buckets_.selection() || listing_ != 0 || !context_.options.follow_bits) return false;
  const std::vector<BucketId>* const possible = buckets_.selection()->possible_buckets();
  const unsigned bits = context_.snapshot.get()->distribution_bits();
  if (possible == nullptr || possible->size() > kLocatedMax) return false;
  if (std::any_of(possible->begin(), possible->end(), [&](BucketId one) { return one.used_bits() < bits; })) {
    return false;
  }
  std::set<BucketId> wholes;
  for (const BucketId one : *possible) wholes.insert(one.with_used_bits(bits));
  context_.progress.located = true;
  is_listed_ = is_named_ = true;
  for (const BucketId whole : wholes) add_named(whole);
  context_.progress.skipped_by_selection = (std::uint64_t{1} << bits) - wholes.size();
  buckets_known();
  if (!context_.finished && buckets_.empty()) context_.finish({});
  return true;
}

void BucketFinder::list_all() {
  const auto snapshot = context_.snapshot.get();
  const auto up = rpc::distributors_up(*snapshot);
  listing_ = ++last_listing_;
  listing_open_ = up.size();
  listing_found_.clear();
  if (up.empty()) {
    listing_failed(Status(StatusCode::NotReady, "no distributor is up"));
    return;
  }
  const rpc::GetBucketNodes request{.state_version = snapshot->state_version(),
                                    .all = true,
                                    .buckets = {},
                                    .cluster_id = snapshot->info().cluster_id};
  for (const std::uint16_t distributor : up) {
    rpc::call(context_.transport, snapshot->info().distributor_addresses[distributor], request,
              context_.options.call_timeout, context_.executor,
              while_alive(self_, [listing = listing_](BucketFinder& self, Result<rpc::GetBucketNodesReply> reply) {
                self.on_listed(listing, std::move(reply));
              }));
  }
}

void BucketFinder::on_listed(std::uint64_t listing, Result<rpc::GetBucketNodesReply> reply) {
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

void BucketFinder::listing_failed(const Status& reason) {
  listing_ = 0;
  context_.last_reason = reason;
  listing_backoff_ = std::clamp(listing_backoff_ * 2, context_.options.retry_first, context_.options.retry_max);
  next_listing_ = context_.clock.now() + listing_backoff_;
  refresh_info();
  context_.wake_at(next_listing_);
}

void BucketFinder::listing_complete() {
  listing_ = 0;
  is_listed_ = true;
  context_.moved();
  // Visits buckets in the order of the tree, so that the finished parts form few ranges.
  std::sort(listing_found_.begin(), listing_found_.end(), [](const rpc::BucketNode& a, const rpc::BucketNode& b) {
    return a.bucket.sort_key() < b.bucket.sort_key();
  });
  for (const rpc::BucketNode& found : listing_found_) buckets_.add(found.bucket, !found.status);
  buckets_known();
  if (context_.finished) return;
  const auto found_buckets = std::move(listing_found_);
  for (const rpc::BucketNode& found : found_buckets) {
    on_bucket_node(found);
    if (context_.finished) return;
  }
  events_.caught_up();
}

// ---------------------------------------------------------------------------------------------------------------------
// The nodes of single buckets

void BucketFinder::find_due() {
  const auto snapshot = context_.snapshot.get();
  std::map<std::uint16_t, std::vector<BucketId>> by_distributor;
  std::vector<BucketId> without;
  while (!due_.empty() && due_.begin()->first <= context_.clock.now()) {
    const BucketId bucket = due_.begin()->second;
    due_.erase(due_.begin());
    if (context_.options.follow_bits && bucket.used_bits() < snapshot->distribution_bits()) {
      for (const BucketId part : buckets_.cut(bucket, snapshot->distribution_bits())) {
        due_.emplace(context_.clock.now(), part);
      }
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
  for (auto& [distributor, buckets] : by_distributor) ask(distributor, std::move(buckets));
  if (!due_.empty()) context_.wake_at(due_.begin()->first);
  if (buckets_.empty()) context_.finish({});
}

void BucketFinder::ask(std::uint16_t distributor, std::vector<BucketId> buckets) {
  const auto snapshot = context_.snapshot.get();
  rpc::GetBucketNodes request{.state_version = snapshot->state_version(), .all = false, .buckets = buckets};
  std::set<std::uint16_t> avoid;
  for (const BucketId bucket : buckets) {
    if (const auto& node = buckets_.at(bucket).avoid) avoid.insert(*node);
  }
  request.avoid.assign(avoid.begin(), avoid.end());
  request.cluster_id = snapshot->info().cluster_id;
  rpc::call(
      context_.transport, snapshot->info().distributor_addresses[distributor], std::move(request),
      context_.options.call_timeout, context_.executor,
      while_alive(self_, [asked = std::move(buckets)](BucketFinder& self, Result<rpc::GetBucketNodesReply> reply) {
        self.on_answer(asked, std::move(reply));
      }));
}

void BucketFinder::on_answer(const std::vector<BucketId>& asked, Result<rpc::GetBucketNodesReply> reply) {
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
    if (context_.finished) return;
  }
  events_.caught_up();
}

void BucketFinder::on_bucket_node(const rpc::BucketNode& found) {
  if (!buckets_.contains(found.bucket)) return;
  if (found.status && !context_.node_up(found.node)) {
    // The distributor has another cluster state; a bucket queued for this node would wait for ever.
    refresh_info();
    const std::string name = "storage." + std::to_string(found.node);
    again_later(found.bucket, Status(StatusCode::NotReady, name + " is not up", {.node = name}));
  } else if (found.status) {
    buckets_.at(found.bucket).even_damaged = found.even_damaged;
    events_.found(found.bucket, found.node);
  } else if (found.status.code() == StatusCode::NotFound && buckets_.at(found.bucket).may_be_missing) {
    buckets_.complete(found.bucket, {});  // The bucket has never held a document.
  } else {
    if (found.status.code() == StatusCode::WrongDistribution) refresh_info();
    again_later(found.bucket, found.status.with_context(found.bucket.to_string()));
  }
}

void BucketFinder::again_later(BucketId bucket, const Status& reason) {
  context_.last_reason = reason;
  Duration& backoff = buckets_.at(bucket).backoff;
  backoff = std::clamp(backoff * 2, context_.options.retry_first, context_.options.retry_max);
  const auto limit = static_cast<std::uint64_t>(backoff.count());
  const auto jitter = Duration(static_cast<std::int64_t>(context_.random.below(limit)));
  const MonotonicTime due = context_.clock.now() + backoff / 2 + jitter / 2;
  due_.emplace(due, bucket);
  context_.wake_at(due);
}

}  // namespace fjord::visitors
