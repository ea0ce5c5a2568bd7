// The part of a session that reads buckets elsewhere when a node keeps the whole visit waiting.

#include <algorithm>
#include <cmath>

#include "fjord/common/log.h"
#include "visitor_session_impl.h"

namespace fjord::visitors {
namespace {

constexpr int kSlowerThanMean = 3;

}  // namespace

/// If a node is idle, takes buckets from nodes that are behind, whether they have begun them or not.
void VisitorSession::Impl::relieve_stragglers() {
  if (options_.backup_after <= Duration(0) || !listed_ || paused_ || held_back_ || !due_.empty()) return;
  if (!has_idle_node()) return;
  const Duration patience = std::max(options_.backup_after, kSlowerThanMean * mean_bucket_time());
  for (auto& [index, node] : nodes_) take_from_queue(index, node, patience);
  const MonotonicTime now = clock_.now();
  std::vector<std::uint64_t> stuck;
  for (const auto& [id, run] : runs_) {
    const bool has_new = std::any_of(run.unfinished.begin(), run.unfinished.end(),
                                     [&](BucketId bucket) { return !buckets_.at(bucket).avoid.has_value(); });
    if (has_new && now - run.last_event > patience) stuck.push_back(id);
  }
  const std::uint64_t before = progress_.buckets_relieved;
  for (const std::uint64_t id : stuck) {
    const Run& run = runs_.at(id);
    for (const BucketId bucket : run.unfinished) buckets_.at(bucket).avoid = run.node;
    progress_.buckets_relieved += run.unfinished.size();
    drop_run(id, Status(StatusCode::Busy, "storage." + std::to_string(run.node) + " keeps the others waiting"));
  }
  if (progress_.buckets_relieved > before) {
    log::info("visit", "{} buckets are begun again elsewhere, as their nodes keep the others waiting",
              progress_.buckets_relieved - before);
  }
}

bool VisitorSession::Impl::has_idle_node() const {
  const std::size_t nodes = snapshot_.get()->info().storage_addresses.size();
  for (std::size_t i = 0; i < nodes; ++i) {
    const auto index = static_cast<std::uint16_t>(i);
    const auto node = nodes_.find(index);
    if (node_up(index) && (node == nodes_.end() || (node->second.queue.empty() && node->second.runs == 0))) return true;
  }
  return false;
}

/// Takes from the queue all buckets that the node will not begin within `patience` at its rate so far. Each bucket
/// once.
void VisitorSession::Impl::take_from_queue(std::uint16_t index, Node& node, Duration patience) {
  if (node.queue.empty()) return;
  const auto done = progress_.buckets_by_node.find(index);
  const double count = done == progress_.buckets_by_node.end() ? 0 : static_cast<double>(done->second);
  const auto elapsed = static_cast<double>((clock_.now() - node.first_begun).count());
  if (elapsed < static_cast<double>(patience.count())) return;  // Too early to estimate the rate.
  const auto keeps = static_cast<std::size_t>(std::floor(count / elapsed * static_cast<double>(patience.count())));
  std::deque<BucketId> kept;
  const Status reason(StatusCode::Busy, "storage." + std::to_string(index) + " has more to do than others");
  for (const BucketId bucket : node.queue) {
    Bucket& known = buckets_.at(bucket);
    if (kept.size() < keeps || known.avoid) {
      kept.push_back(bucket);
      continue;
    }
    known.avoid = index;
    ++progress_.buckets_relieved;
    again_later(bucket, reason);
  }
  node.queue = std::move(kept);
}

Duration VisitorSession::Impl::mean_bucket_time() const {
  return progress_.buckets_done == 0 ? Duration(0) : bucket_time_ / static_cast<std::int64_t>(progress_.buckets_done);
}

}  // namespace fjord::visitors
