#include "maintenance/state_transition.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "maintenance/need.h"

namespace fjord::distributor {
namespace {

// Number of buckets that are recovered before other tasks of the executor come in between.
constexpr std::size_t kBucketsInOneTurn = 512;

/// Returns true if the bucket cannot be served, by what is known before storage nodes have been asked.
bool is_unreachable(const BucketEntry& entry, const rpc::ClusterSnapshot& now) {
  if (entry.is<activity::Collecting>()) return entry.unreachable;
  if (entry.is<activity::Unavailable>()) return true;
  return std::none_of(entry.set.nodes.begin(), entry.set.nodes.end(),
                      [&](std::uint16_t node) { return now.storage_serves(node); });
}

}  // namespace

void StateTransition::forget_outdated(const rpc::ClusterSnapshot* before) {
  plan_ = plan_transition(before, *context_.snapshot, context_.ready ? nullptr : &plan_);
  if (context_.ready || before == nullptr) context_.collecting_since = context_.clock.now();
  context_.ready = false;
  outdated_.clear();
  std::vector<std::pair<BucketId, bool>> outdated;
  context_.buckets.erase_if([&](const BucketEntry& entry) {
    const bool owned = context_.snapshot->distributor_of(entry.bucket) == context_.options.index;
    if (owned && !plan_.forget_all && !is_affected(entry, *before, *context_.snapshot)) return false;
    parts_.merges.forget(entry);
    if (owned && !plan_.forget_all) outdated.push_back({entry.bucket, is_unreachable(entry, *context_.snapshot)});
    return true;
  });
  for (const auto& [bucket, unreachable] : outdated) {
    outdated_.push_back(bucket);
    context_.buckets.add(bucket).unreachable = unreachable;
  }
}

void StateTransition::collect() {
  std::map<std::uint16_t, ReportCollector::Question> questions;
  for (const DistributionGroup::Node& node : context_.snapshot->distribution().flat_nodes()) {
    if (!context_.snapshot->storage_serves(node.index)) continue;
    const bool all = plan_.ask_for_everything || plan_.restarted.contains(node.index);
    if (all || !outdated_.empty()) questions[node.index] = {all, all ? std::vector<BucketId>() : outdated_};
  }
  collector_.ask(std::move(questions), [this](ReportCollector::Reports reports) { collect_rest(std::move(reports)); });
}

/// Collects buckets again that were in service, if a restarted node also has a replica of them, perhaps with other
/// bits.
void StateTransition::collect_rest(ReportCollector::Reports reports) {
  std::set<BucketId> more;
  for (const auto& [raw, list] : reports) {
    const bool news = std::any_of(list.begin(), list.end(),
                                  [&](const ReplicaReport& report) { return plan_.restarted.contains(report.node); });
    if (!news) continue;
    for (BucketId bucket : context_.buckets.overlapping(BucketId(raw))) {
      if (!context_.buckets.find(bucket)->is<activity::Collecting>()) more.insert(bucket);
    }
  }
  if (more.empty()) {
    reconcile(std::move(reports));
    return;
  }
  for (BucketId bucket : more) {
    parts_.merges.forget(*context_.buckets.find(bucket));
    context_.buckets.add(bucket);
    std::erase_if(reports[bucket.raw()],
                  [&](const ReplicaReport& report) { return !plan_.restarted.contains(report.node); });
  }
  hooks_.buckets_forgotten();
  std::map<std::uint16_t, ReportCollector::Question> questions;
  for (const DistributionGroup::Node& node : context_.snapshot->distribution().flat_nodes()) {
    if (!context_.snapshot->storage_serves(node.index) || plan_.restarted.contains(node.index)) continue;
    questions[node.index].buckets.assign(more.begin(), more.end());
  }
  collector_.ask(std::move(questions), [this, first = std::move(reports)](ReportCollector::Reports second) mutable {
    for (auto& [raw, list] : second) {
      std::vector<ReplicaReport>& all = first[raw];
      all.insert(all.end(), std::make_move_iterator(list.begin()), std::make_move_iterator(list.end()));
    }
    reconcile(std::move(first));
  });
}

/// Splits replicas until all replicas of a bucket have the same bits. They differ after a split that did not reach
/// every replica, or after a join.
void StateTransition::reconcile(ReportCollector::Reports reports) {
  const std::vector<Undivided> undivided = find_undivided(reports);
  if (undivided.empty()) {
    build_database(std::move(reports));
    return;
  }
  for (const Undivided& replica : undivided) {
    std::erase_if(reports[replica.bucket.raw()], [&](const ReplicaReport& r) { return r.node == replica.node; });
  }
  std::erase_if(reports, [](const auto& item) { return item.second.empty(); });
  collector_.divide(undivided, [this, rest = std::move(reports)](ReportCollector::Reports halves) mutable {
    for (auto& [raw, list] : halves) {
      std::vector<ReplicaReport>& all = rest[raw];
      for (ReplicaReport& half : list) {
        std::erase_if(all, [&](const ReplicaReport& before) { return before.node == half.node; });
        all.push_back(std::move(half));
      }
    }
    reconcile(std::move(rest));
  });
}

void StateTransition::build_database(ReportCollector::Reports reports) {
  reports_ = std::move(reports);
  to_install_.clear();
  // Drops the buckets that no node has reported, or that were reported with other bits only.
  context_.buckets.erase_if([](const BucketEntry& entry) { return entry.is<activity::Collecting>(); });
  recover_next();
}

/// Makes entries from the next reports. Polls and operations on other buckets come in between.
void StateTransition::recover_next() {
  const std::size_t absent = context_.absent_nodes();
  for (std::size_t i = 0; i < kBucketsInOneTurn && !reports_.empty(); ++i) {
    const auto next = reports_.extract(reports_.begin());
    const BucketId bucket(next.key());
    if (next.mapped().empty() || context_.buckets.find(bucket) != nullptr) continue;
    if (recover(context_.buckets.add(bucket), next.mapped(), absent)) to_install_.push_back(bucket);
  }
  if (!reports_.empty()) {
    context_.executor.post([this, generation = context_.generation] {
      if (generation == context_.generation) recover_next();
    });
    return;
  }
  context_.ready = true;
  parts_.installer.send(std::exchange(to_install_, {}));
  hooks_.complete();
}

void StateTransition::collect_again(const std::vector<BucketId>& buckets) {
  context_.collecting_since = context_.clock.now();
  for (const BucketId bucket : buckets) {
    parts_.merges.forget(*context_.buckets.find(bucket));
    context_.buckets.add(bucket);
  }
  hooks_.buckets_forgotten();
  std::map<std::uint16_t, ReportCollector::Question> questions;
  for (const DistributionGroup::Node& node : context_.snapshot->distribution().flat_nodes()) {
    if (context_.snapshot->storage_serves(node.index)) questions[node.index].buckets = buckets;
  }
  again_.ask(std::move(questions),
             [this, buckets](const ReportCollector::Reports& reports) { recover_again(buckets, reports); });
}

void StateTransition::recover_again(const std::vector<BucketId>& buckets, const ReportCollector::Reports& reports) {
  std::vector<BucketId> to_install;
  for (const BucketId bucket : buckets) {
    BucketEntry& entry = *context_.buckets.find(bucket);
    const auto list = reports.find(bucket.raw());
    if (list == reports.end() || list->second.empty()) {
      entry.apply(event::NotAvailable{"its replicas are gone from the storage nodes that had them"});
    } else if (recover(entry, list->second, context_.absent_nodes(), true)) {
      to_install.push_back(bucket);
    }
  }
  parts_.installer.send(to_install);
  hooks_.collected_again();
}

bool StateTransition::recover(BucketEntry& entry, const std::vector<ReplicaReport>& reports, std::size_t absent,
                              bool under_same_state) {
  const rpc::ClusterSnapshot& snapshot = *context_.snapshot;
  const auto plan_with = [&](const NodeList& nodes) {
    return plan_recovery(reports, snapshot.state(), nodes, absent, context_.has_spare_nodes());
  };
  RecoveryPlan plan = plan_with(snapshot.ideal_nodes(entry.bucket));
  if (plan.unborn) plan = plan_with(snapshot.nodes_for_new(entry.bucket));
  entry.last_timestamp_us = plan.max_timestamp_us;
  const std::size_t replicas = context_.replicas_at_birth();
  if (plan.unborn && plan.members.size() < replicas) {
    plan.available = false;
    plan.reason = "it is about to be made, which needs " + std::to_string(replicas) + " storage nodes that are up";
  }
  if (!plan.available) {
    entry.apply(event::NotAvailable{std::move(plan.reason)});
    return false;
  }
  fill_in(entry, plan, reports);
  // Writes that were sent before under this state and this set may still be on their way; a new epoch refuses them.
  if (plan.install || under_same_state || !entry.obsolete.empty()) {
    entry.set.epoch = plan.unborn ? context_.birth_epoch(plan.newest.epoch) : context_.next_epoch(plan.newest.epoch);
    Installation work;
    work.removed = entry.obsolete;
    for (const ReplicaReport& report : reports) {
      // The replica still has an earlier set that names it as a member. If all present members were lost now, a
      // recovery would rely on it.
      const bool is_member_by_itself = report.set.epoch != 0 && report.set.contains(report.node);
      if (is_member_by_itself && entry.is_catching_up(report.node)) work.removed.push_back(report.node);
    }
    parts_.installer.begin(entry, std::move(work));
    return true;
  }
  entry.apply(event::SetConfirmed{});
  if (entry.wants_merge()) parts_.merges.enqueue(entry);
  return false;
}

void StateTransition::fill_in(BucketEntry& entry, RecoveryPlan& plan, const std::vector<ReplicaReport>& reports) {
  for (const std::uint16_t node : stand_ins(plan, plan.newest, entry.bucket, *context_.snapshot)) {
    std::erase(plan.obsolete, node);
    plan.catching_up.push_back(node);
    plan.install = true;
  }
  entry.set = {plan.newest.epoch, std::move(plan.members)};
  entry.catching_up = std::move(plan.catching_up);
  entry.obsolete = std::move(plan.obsolete);
  entry.dirty = plan.differ;
  for (const ReplicaReport& report : reports) {
    if (report.damaged) entry.damaged.push_back(report.node);
    if (!entry.is_catching_up(report.node)) continue;
    const Lack lack = lack_of(report, reports, entry.set.nodes);
    if (lack != Lack::Much) entry.nearly_filled.push_back({report.node, lack});
  }
  parts_.repair.count_damaged(entry.damaged.size());
  // Only reported replicas count: a replica that is still to be created holds nothing that the members lack.
  const bool non_member_reported = std::any_of(
      reports.begin(), reports.end(), [&](const ReplicaReport& report) { return !entry.set.contains(report.node); });
  entry.unsettled = entry.dirty || non_member_reported || entry.repairable();
  // All replicas were catching up, and there is no other node to ask: they become the members.
  if (entry.set.nodes.empty()) {
    entry.set.nodes.swap(entry.catching_up);
    plan.install = true;
  }
  entry.misplaced = is_misplaced(entry, *context_.snapshot);
}

}  // namespace fjord::distributor
