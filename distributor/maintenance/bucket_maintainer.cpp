#include "bucket_maintainer.h"

#include <algorithm>

#include "fjord/common/log.h"

namespace fjord::distributor {
namespace {

// Pause before a failed merge is tried again.
constexpr Duration kMergeRetryDelay = milliseconds(100);
// The same pause if no member is intact: only another cluster state can help then.
constexpr Duration kDamagedRetryDelay = seconds(5);

}  // namespace

BucketMaintainer::BucketMaintainer(Context& context, TunableRegistry& tunables, Callbacks callbacks)
    : context_(context),
      callbacks_(std::move(callbacks)),
      merges_max_(tunables.declare("distributor.merges_max", context.options.merges_max)),
      paused_(tunables.declare("maintenance.paused")),
      collector_(context),
      reshaper_(context, tunables,
                {[this](BucketId bucket) { install({bucket}); },
                 [this](BucketId bucket) { callbacks_.bucket_ready(bucket); }}),
      retention_(
          context, tunables,
          {[this](BucketId bucket) { install({bucket}); }, [this](BucketId bucket) { callbacks_.bucket_ready(bucket); },
           [this](const BucketEntry& entry) { return callbacks_.stable_us(entry); }}),
      merges_(context.metrics.counter("fjord_distributor_merges_total", "Buckets merged to the end")),
      merge_failures_(context.metrics.counter("fjord_distributor_merge_failures_total", "Merges to be repeated")),
      damaged_replicas_(
          context.metrics.counter("fjord_distributor_damaged_replicas_total", "Replicas found to have lost something")),
      repaired_replicas_(context.metrics.counter("fjord_distributor_repaired_replicas_total",
                                                 "Damaged replicas that were made equal to an intact one")),
      unsafely_recovered_(context_.metrics.counter("fjord_distributor_accepted_losses_total",
                                                   "Damaged replicas of which an operator accepted what they lost")) {}

void BucketMaintainer::later(const BucketEntry& entry, Duration delay, UniqueFunction<void(BucketEntry&)> task) {
  context_.executor.post_after(delay, [this, ticket = entry.ticket(), task = std::move(task)] {
    if (BucketEntry* known = context_.buckets.find(ticket)) task(*known);
  });
}

// --- collecting reports ----------------------------------------------------------------------------------------------

void BucketMaintainer::forget_outdated(const rpc::ClusterSnapshot* before) {
  transition_ = plan_transition(before, *context_.snapshot, context_.ready ? nullptr : &transition_);
  context_.ready = false;
  reshaper_.forget();
  retention_.forget();
  outdated_.clear();
  context_.buckets.erase_if([&](const BucketEntry& entry) {
    const bool owned = context_.snapshot->distributor_of(entry.bucket) == context_.options.index;
    if (owned && !transition_.forget_all && !is_affected(entry, *before, *context_.snapshot)) return false;
    forget_work(entry);
    if (owned && !transition_.forget_all) outdated_.push_back(entry.bucket);
    return true;
  });
  for (BucketId bucket : outdated_) context_.buckets.add(bucket).phase = BucketPhase::Collecting;
}

void BucketMaintainer::forget_work(const BucketEntry& entry) {
  merges_under_way_ -= entry.merge_started ? 1 : 0;
  installs_.erase(entry.bucket.raw());
  surplus_.erase(entry.bucket.raw());
  repairs_.erase(entry.bucket.raw());
  failures_.forget(entry.bucket);
}

void BucketMaintainer::collect() {
  std::map<std::uint16_t, ReportCollector::Question> questions;
  for (const DistributionGroup::Node& node : context_.snapshot->distribution().flat_nodes()) {
    if (!context_.snapshot->storage_serves(node.index)) continue;
    const bool all = transition_.ask_for_everything || transition_.restarted.contains(node.index);
    if (all || !outdated_.empty()) questions[node.index] = {all, all ? std::vector<BucketId>() : outdated_};
  }
  collector_.ask(std::move(questions), [this](ReportCollector::Reports reports) { collect_rest(std::move(reports)); });
}

/// Collects buckets again that were in service, if a restarted node has a replica of them too, perhaps with other bits.
void BucketMaintainer::collect_rest(ReportCollector::Reports reports) {
  std::set<BucketId> more;
  for (const auto& [raw, list] : reports) {
    const bool news = std::any_of(list.begin(), list.end(), [&](const ReplicaReport& report) {
      return transition_.restarted.contains(report.node);
    });
    if (!news) continue;
    for (BucketId bucket : context_.buckets.overlapping(BucketId(raw))) {
      if (context_.buckets.find(bucket)->phase != BucketPhase::Collecting) more.insert(bucket);
    }
  }
  if (more.empty()) {
    reconcile(std::move(reports));
    return;
  }
  for (BucketId bucket : more) {
    forget_work(*context_.buckets.find(bucket));
    context_.buckets.add(bucket).phase = BucketPhase::Collecting;
    std::erase_if(reports[bucket.raw()],
                  [&](const ReplicaReport& report) { return !transition_.restarted.contains(report.node); });
  }
  callbacks_.buckets_forgotten();
  std::map<std::uint16_t, ReportCollector::Question> questions;
  for (const DistributionGroup::Node& node : context_.snapshot->distribution().flat_nodes()) {
    if (!context_.snapshot->storage_serves(node.index) || transition_.restarted.contains(node.index)) continue;
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

/// Splits replicas until all of a bucket have the same bits, after a split that did not reach every replica, or a join.
void BucketMaintainer::reconcile(ReportCollector::Reports reports) {
  const std::vector<Undivided> undivided = find_undivided(reports);
  if (undivided.empty()) {
    build_database(reports);
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

void BucketMaintainer::build_database(const ReportCollector::Reports& reports) {
  std::vector<BucketId> to_install;
  const std::size_t absent = context_.absent_nodes();
  // Drops the buckets that no node has reported, or that were reported with other bits only.
  context_.buckets.erase_if([](const BucketEntry& entry) { return entry.phase == BucketPhase::Collecting; });
  for (const auto& [raw, list] : reports) {
    if (list.empty() || context_.buckets.find(BucketId(raw)) != nullptr) continue;
    if (recover(context_.buckets.add(BucketId(raw)), list, absent)) to_install.push_back(BucketId(raw));
  }
  context_.ready = true;
  install(to_install);
  if (absent == 0 && context_.nodes() <= context_.snapshot->distribution().redundancy()) create_all();
  callbacks_.state_ready();
  start_merges();
  look_around_later();
  look_for_joins_later();
}

bool BucketMaintainer::recover(BucketEntry& entry, const std::vector<ReplicaReport>& reports, std::size_t absent) {
  const rpc::ClusterSnapshot& snapshot = *context_.snapshot;
  RecoveryPlan plan = plan_recovery(reports, snapshot.state(), snapshot.ideal_nodes(entry.bucket), absent);
  if (plan.unborn) plan = plan_recovery(reports, snapshot.state(), snapshot.nodes_for_new(entry.bucket), absent);
  entry.last_timestamp_us = plan.max_timestamp_us;
  const std::size_t replicas = context_.replicas_at_birth();
  if (plan.unborn && plan.members.size() < replicas) {
    plan.available = false;
    plan.reason = "it is about to be made, which needs " + std::to_string(replicas) + " storage nodes that are up";
  }
  if (!plan.available) {
    entry.phase = BucketPhase::Unavailable;
    entry.reason = std::move(plan.reason);
    return false;
  }
  for (const std::uint16_t node : stand_ins(plan, plan.newest, entry.bucket, snapshot)) {
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
  }
  damaged_replicas_.add(entry.damaged.size());
  // Only reported replicas count: one that is still to be created holds nothing that the members lack.
  const bool non_member_reported = std::any_of(reports.begin(), reports.end(), [&](const ReplicaReport& report) {
    return std::find(entry.set.nodes.begin(), entry.set.nodes.end(), report.node) == entry.set.nodes.end();
  });
  entry.unsettled = entry.dirty || non_member_reported || entry.repairable();
  // There are only replicas that were catching up, and no other node to ask: they become the members.
  if (entry.set.nodes.empty()) {
    entry.set.nodes.swap(entry.catching_up);
    plan.install = true;
  }
  entry.removed = entry.obsolete;
  entry.misplaced = is_misplaced(entry, *context_.snapshot);
  if (plan.install || !entry.removed.empty()) {
    entry.set.epoch = context_.next_epoch(plan.newest.epoch);
    return true;
  }
  entry.phase = BucketPhase::Active;
  if (entry.wants_merge()) enqueue_merge(entry);
  return false;
}

void BucketMaintainer::look_around_later() {
  context_.executor.post_after(context_.options.damage_poll_interval, [this, generation = context_.generation] {
    if (generation == context_.generation) look_around();
  });
}

void BucketMaintainer::look_for_joins_later() {
  context_.executor.post_after(context_.options.join_interval, [this, generation = context_.generation] {
    if (generation != context_.generation) return;
    if (!is_paused()) reshaper_.look_for_joins();
    look_for_joins_later();
  });
}

/// Asks for damaged buckets, large ones, and those with old removed entries. A storage node remembers its damaged
/// buckets until they are repaired, so a lost answer does no harm.
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
                if (generation != context_.generation || !reply) return;
                context_.space.update(index, reply->space_stage, reply->space_reason);
                for (const rpc::BucketReport& report : reply->reports) {
                  BucketEntry* entry = context_.buckets.find(report.bucket);
                  if (entry == nullptr || entry->set.epoch == 0) continue;
                  if (report.damaged) note_damaged(*entry, index);
                  if (!is_paused()) reshaper_.note_size(*entry, index, report.info);
                  retention_.note(*entry, report);
                }
                retention_.note_node(index, *reply);
              });
  }
  if (!is_paused()) reshaper_.look_for_few_bits();
  for (const BucketTicket& ticket : std::exchange(held_back_, {})) {
    BucketEntry* entry = context_.buckets.find(ticket);
    if (entry != nullptr && !entry->merging && entry->wants_merge()) enqueue_merge(*entry);
  }
  start_merges();  // The settings may have changed.
  look_around_later();
}

void BucketMaintainer::create_all() {
  const unsigned bits = context_.bucket_bits_min();
  for (std::uint64_t i = 0; i < std::uint64_t{1} << bits; ++i) {
    BucketId bucket(bits, i);
    if (context_.snapshot->distributor_of(bucket) != context_.options.index) continue;
    if (context_.buckets.overlapping(bucket).empty()) create(bucket);
  }
}

BucketEntry& BucketMaintainer::create(BucketId bucket) {
  BucketEntry& entry = context_.buckets.add(bucket);
  entry.set = {context_.next_epoch(0), context_.snapshot->nodes_for_new(bucket).to_vector()};
  install({bucket});
  return entry;
}

// --- replica sets ----------------------------------------------------------------------------------------------------

void BucketMaintainer::install(const std::vector<BucketId>& buckets) {
  std::map<std::uint16_t, std::vector<BucketId>> by_node;
  for (BucketId bucket : buckets) {
    BucketEntry& entry = *context_.buckets.find(bucket);
    entry.phase = BucketPhase::Installing;
    join_damaged_late(entry);
    Install& install = installs_[bucket.raw()];
    install = {};
    std::set<std::uint16_t>& missing = install.missing;
    missing.insert(entry.set.nodes.begin(), entry.set.nodes.end());
    for (std::uint16_t node : entry.joining) missing.erase(node);
    for (std::uint16_t node : missing) by_node[node].push_back(bucket);
    for (std::uint16_t node : entry.catching_up) by_node[node].push_back(bucket);
  }
  for (const auto& [node, list] : by_node) send_install(node, list);
}

/// Has damaged members join late. One that alone knew of the set would be believed, with no member to repair it from.
void BucketMaintainer::join_damaged_late(BucketEntry& entry) {
  const auto repair = repairs_.find(entry.bucket.raw());
  const std::vector<std::uint16_t>& damaged = repair == repairs_.end() ? entry.damaged : repair->second.nodes;
  const auto contains = [](const std::vector<std::uint16_t>& nodes, std::uint16_t node) {
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  };
  std::vector<std::uint16_t> late = entry.joining;
  for (std::uint16_t node : entry.set.nodes) {
    if (contains(damaged, node) && !contains(late, node)) late.push_back(node);
  }
  if (late.size() < entry.set.nodes.size()) entry.joining = std::move(late);
}

void BucketMaintainer::send_install(std::uint16_t node, const std::vector<BucketId>& buckets) {
  rpc::SetReplicaSets request;
  request.state_version = context_.snapshot->state_version();
  request.distributor = context_.options.index;
  std::vector<SentSet> sent;
  for (BucketId bucket : buckets) {
    const BucketEntry& entry = *context_.buckets.find(bucket);
    bool is_catching_up =
        std::find(entry.catching_up.begin(), entry.catching_up.end(), node) != entry.catching_up.end();
    request.buckets.push_back({bucket, is_catching_up ? ReplicaSet{} : entry.set});
    sent.push_back({entry.ticket(), request.buckets.back().replica_set.epoch});
    retention_.add_times(request.buckets.back());
    const auto repair = repairs_.find(bucket.raw());
    if (repair == repairs_.end()) continue;
    const std::vector<std::uint16_t>& repaired = repair->second.nodes;
    if (std::find(repaired.begin(), repaired.end(), node) == repaired.end()) continue;
    request.buckets.back().repaired = true;
    request.buckets.back().intact = repair->second.intact;
  }
  rpc::call(context_.transport, context_.storage_address(node), std::move(request), context_.options.storage_timeout,
            context_.executor, [this, node, sent = std::move(sent)](Result<rpc::SetReplicaSetsReply> reply) {
              on_installed(node, sent, std::move(reply));
            });
}

/// An answer counts only for the set that was sent: the answer to an earlier set, or to "you are catching up", may
/// arrive while the node is asked to confirm the present one.
void BucketMaintainer::on_installed(std::uint16_t node, const std::vector<SentSet>& sent,
                                    Result<rpc::SetReplicaSetsReply> reply) {
  const bool answered = reply && reply->status && reply->statuses.size() == sent.size();
  const bool has_contents = answered && reply->contents.size() == sent.size();
  std::vector<BucketTicket> again;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    BucketEntry* entry = context_.buckets.find(sent[i].ticket);
    if (entry == nullptr) continue;
    const auto install = installs_.find(entry->bucket.raw());
    const bool is_awaited =
        install != installs_.end() && install->second.missing.contains(node) && sent[i].epoch == entry->set.epoch;
    const bool is_catching_up = sent[i].epoch == 0 && std::find(entry->catching_up.begin(), entry->catching_up.end(),
                                                                node) != entry->catching_up.end();
    if (!answered || !reply->statuses[i]) {
      if (is_awaited || is_catching_up) again.push_back(sent[i].ticket);
    } else if (is_awaited) {
      if (has_contents) compare_content(*entry, node, reply->contents[i], install->second);
      install->second.missing.erase(node);
      if (install->second.missing.empty()) installed_on_all(*entry);
    }
  }
  if (again.empty()) return;
  context_.executor.post_after(context_.options.retry_delay, [this, node, again = std::move(again)] {
    std::vector<BucketId> buckets;
    for (const BucketTicket& ticket : again) {
      if (context_.buckets.find(ticket) != nullptr) buckets.push_back(ticket.bucket);
    }
    if (!buckets.empty()) send_install(node, buckets);
  });
}

/// Compares the contents of members. An abandoned write may land after a merge has looked at a member and before the
/// member has the new set. Under the new set none can land and none is in flight.
void BucketMaintainer::compare_content(BucketEntry& entry, std::uint16_t node, const BucketInfo& content,
                                       Install& install) {
  if (!entry.set.contains(node) || entry.is_damaged(node) || context_.options.sabotage.repair_unmerged) return;
  if (!install.content) {
    install.content = content;
  } else if (!install.content->same_content(content) && !entry.dirty) {
    log::info("distributor", "{}: a write that was given up has reached some members only", entry.bucket.to_string());
    entry.dirty = true;
  }
}

/// All nodes that were asked have the set. Older members get it first. If new ones alone knew of it, they could go on
/// without an older one, which would come back and be believed. The replicas that the set leaves out get it last: a
/// distributor that takes over would look for members that do not know that they are members.
void BucketMaintainer::installed_on_all(BucketEntry& entry) {
  std::vector<std::uint16_t> next = std::exchange(entry.joining, {});
  if (next.empty()) next = std::exchange(entry.removed, {});
  if (next.empty()) {
    installs_.erase(entry.bucket.raw());
    installed(entry);
    return;
  }
  installs_[entry.bucket.raw()].missing.insert(next.begin(), next.end());
  for (std::uint16_t node : next) send_install(node, {entry.bucket});
}

void BucketMaintainer::installed(BucketEntry& entry) {
  entry.phase = BucketPhase::Active;
  entry.paused = false;
  repairs_.erase(entry.bucket.raw());
  retention_.installed(entry);
  auto surplus = surplus_.find(entry.bucket.raw());
  if (surplus != surplus_.end()) {
    entry.deletes_under_way += static_cast<std::uint32_t>(surplus->second.size());
    for (std::uint16_t node : surplus->second) delete_surplus(entry, node);
    surplus_.erase(surplus);
  }
  callbacks_.bucket_ready(entry.bucket);
  if (entry.wants_merge()) enqueue_merge(entry);
  start_merges();
}

// --- merges ----------------------------------------------------------------------------------------------------------

void BucketMaintainer::repair(BucketEntry& entry) {
  entry.dirty = true;
  entry.disturbed = true;
  enqueue_merge(entry);
  start_merges();
}

void BucketMaintainer::note_damaged(BucketEntry& entry, std::uint16_t node) {
  if (entry.is_damaged(node)) return;
  entry.damaged.push_back(node);
  damaged_replicas_.add();
  log::warning("distributor", "the replica of {} on storage.{} has lost something{}", entry.bucket.to_string(), node,
               entry.repairable() ? "" : ", and no member is intact");
  entry.disturbed = true;  // A merge under way may fetch too little from there.
  if (!entry.wants_merge()) return;
  enqueue_merge(entry);
  start_merges();
}

Status BucketMaintainer::recover_unsafely(BucketId bucket) {
  if (!context_.ready) return {StatusCode::NotReady, "this distributor does not know its buckets yet"};
  BucketEntry* entry = context_.buckets.find(bucket);
  if (entry == nullptr) return {StatusCode::NotFound, bucket.to_string() + " is not one of this distributor's buckets"};
  if (entry->damaged.empty() || !entry->intact().empty()) {
    return {StatusCode::InvalidArgument, bucket.to_string() + " has an intact replica: nothing is lost"};
  }
  if (std::exchange(entry->unsafe_recovery, true)) return Status::ok();
  log::warning("distributor", "{}: what all its replicas have lost is given up, as an operator says",
               bucket.to_string());
  enqueue_merge(*entry);
  start_merges();
  return Status::ok();
}

void BucketMaintainer::merge_primary(BucketId bucket) {
  BucketEntry& entry = *context_.buckets.find(bucket);
  if (entry.phase != BucketPhase::Active || entry.reshaping != 0 || entry.forgetting) {
    merge_done(bucket, false);
    return;
  }
  entry.disturbed = false;
  entry.fill_deferred = false;
  entry.filled.clear();
  std::vector<std::uint16_t> non_members = entry.catching_up;
  non_members.insert(non_members.end(), entry.obsolete.begin(), entry.obsolete.end());
  const std::uint16_t primary = entry.merge_primary = merge_source(entry);
  std::vector<std::uint16_t> sources = entry.set.nodes;
  std::erase(sources, primary);
  sources.insert(sources.end(), non_members.begin(), non_members.end());
  if (sources.empty()) {
    merge_members(bucket);
    return;
  }
  send_merge(bucket, primary, std::move(sources), std::move(non_members), [this, bucket](bool ok) {
    if (ok) {
      merge_members(bucket);
    } else {
      merge_done(bucket, false);
    }
  });
}

/// Merges the members first: once they have what non-member replicas held, conditional operations may go on.
void BucketMaintainer::merge_members(BucketId bucket) {
  BucketEntry& entry = *context_.buckets.find(bucket);
  std::vector<std::uint16_t> targets = entry.set.nodes;
  std::erase(targets, entry.merge_primary);
  // A full member that is to leave is only a source of the merge: what it lacks is on the others.
  const std::vector<std::uint16_t> wanted = wanted_members(entry, *context_.snapshot);
  const std::size_t skipped = std::erase_if(targets, [&](std::uint16_t node) {
    return !context_.space.takes_merges(node) && std::find(wanted.begin(), wanted.end(), node) == wanted.end();
  });
  merge_from_primary(bucket, std::move(targets), [this, bucket, skipped](bool ok) {
    if (!ok) {
      merge_done(bucket, false);
      return;
    }
    BucketEntry& merged = *context_.buckets.find(bucket);
    if (skipped == 0 && !merged.disturbed && std::exchange(merged.unsettled, false) && !merged.dirty &&
        merged.serves()) {
      callbacks_.bucket_ready(bucket);
    }
    merge_catching_up(bucket);
  });
}

void BucketMaintainer::merge_catching_up(BucketId bucket) {
  BucketEntry& entry = *context_.buckets.find(bucket);
  entry.filled = fillable(entry);
  // Operations wait until a new set confirms that the members are equal. Filling comes after that.
  if (entry.awaited && entry.dirty) entry.filled.clear();
  entry.fill_deferred = entry.filled.size() < entry.catching_up.size();
  merge_from_primary(bucket, entry.filled, [this, bucket](bool ok) { merge_done(bucket, ok); });
}

void BucketMaintainer::merge_from_primary(BucketId bucket, std::vector<std::uint16_t> targets,
                                          UniqueFunction<void(bool)> done) {
  if (targets.empty()) {
    done(true);
    return;
  }
  struct Count {
    std::size_t left;
    UniqueFunction<void(bool)> done;
    bool ok = true;
  };
  auto count = std::make_shared<Count>(Count{targets.size(), std::move(done)});
  const std::uint16_t primary = context_.buckets.find(bucket)->merge_primary;
  for (std::uint16_t target : targets) {
    send_merge(bucket, target, {primary}, {}, [count](bool ok) {
      count->ok = count->ok && ok;
      if (--count->left == 0) count->done(count->ok);
    });
  }
}

void BucketMaintainer::send_merge(BucketId bucket, std::uint16_t target, std::vector<std::uint16_t> sources,
                                  std::vector<std::uint16_t> non_members, UniqueFunction<void(bool)> done) {
  const bool skip = context_.options.sabotage.repair_unmerged && context_.buckets.find(bucket)->is_damaged(target);
  if (skip) {
    done(true);
    return;
  }
  rpc::MergeBucket request;
  request.state_version = context_.snapshot->state_version();
  request.distributor = context_.options.index;
  request.bucket = bucket;
  request.epoch = context_.buckets.find(bucket)->set.epoch;
  request.sources = std::move(sources);
  request.outsiders = std::move(non_members);
  request.decides = target == context_.buckets.find(bucket)->merge_primary;
  // The node answers before this distributor gives up and asks again.
  request.time_limit_ms =
      static_cast<std::uint32_t>(std::chrono::duration_cast<milliseconds>(context_.options.merge_timeout / 2).count());
  const BucketEntry& to_merge = *context_.buckets.find(bucket);
  request.only_moves = need_of(to_merge, *context_.snapshot) == Need::Move;
  const BucketTicket ticket = to_merge.ticket();
  const std::uint32_t run = to_merge.merge_run;
  rpc::call(context_.transport, context_.storage_address(target), std::move(request), context_.options.merge_timeout,
            context_.executor,
            [this, ticket, run, target, done = std::move(done)](Result<rpc::MergeBucketReply> reply) {
              BucketEntry* entry = context_.buckets.find(ticket);
              if (entry == nullptr) return;
              if (reply) {
                for (std::uint16_t node : reply->damaged_sources) note_damaged(*entry, node);
              }
              if (entry->merge_run != run) return;
              const Status status = reply ? reply->status : reply.error();
              if (!status) {
                entry->merge_problem = NodeId::storage(target).to_string() + ": " + status.to_string();
                failures_.note(ticket.bucket, entry->merge_problem);
              }
              // A large bucket takes several commands; each makes progress.
              if (status.code() == StatusCode::Busy) failures_.forget(ticket.bucket);
              done(status.is_ok());
            });
}

void BucketMaintainer::merge_done(BucketId bucket, bool ok) {
  BucketEntry& entry = *context_.buckets.find(bucket);
  --merges_under_way_;
  entry.merge_started = false;
  if (ok) {
    failures_.forget(bucket);
  } else {
    failures_.failed(bucket, context_.clock.now());
  }
  if (ok && !entry.disturbed) {
    // No write starts before the new set is installed, so none can reach one replica only.
    entry.paused = true;
    if (entry.writes_under_way == 0) finish_merge(entry);
  } else {
    merge_failures_.add();
    merge_later(entry, kMergeRetryDelay);
  }
  start_merges();
}

void BucketMaintainer::merge_later(const BucketEntry& entry, Duration delay) {
  later(entry, delay, [this](BucketEntry& again) {
    again.merging = false;
    enqueue_merge(again);
    start_merges();
  });
}

void BucketMaintainer::drained(BucketEntry& entry) {
  if (!entry.paused || entry.phase != BucketPhase::Active) return;
  if (entry.reshaping != 0) {
    reshaper_.drained(entry);
    return;
  }
  if (entry.forgetting) {
    retention_.drained(entry);
    return;
  }
  if (!entry.disturbed) {
    finish_merge(entry);
  } else {
    merge_again(entry);
  }
}

void BucketMaintainer::merge_again(BucketEntry& entry) {
  entry.paused = false;
  entry.merging = false;
  callbacks_.bucket_ready(entry.bucket);
  enqueue_merge(entry);
  start_merges();
}

// --- damaged replicas ------------------------------------------------------------------------------------------------

void BucketMaintainer::finish_merge(BucketEntry& entry) {
  if (entry.damaged.empty()) {
    extend_set(entry);
  } else {
    compare_replicas(entry.bucket);
  }
}

/// Compares the replicas while no write is in flight: those that lack nothing report the same.
void BucketMaintainer::compare_replicas(BucketId bucket) {
  const BucketEntry& entry = *context_.buckets.find(bucket);
  std::vector<std::uint16_t> nodes = entry.set.nodes;
  nodes.insert(nodes.end(), entry.filled.begin(), entry.filled.end());
  struct Answers {
    std::size_t left;
    std::map<std::uint16_t, rpc::BucketReport> reports;
  };
  auto answers = std::make_shared<Answers>(Answers{nodes.size(), {}});
  for (std::uint16_t node : nodes) {
    rpc::GetBucketInfo request;
    request.state_version = context_.snapshot->state_version();
    request.distributor = context_.options.index;
    request.buckets = {bucket};
    rpc::call(
        context_.transport, context_.storage_address(node), std::move(request), context_.options.storage_timeout,
        context_.executor,
        [this, ticket = entry.ticket(), node, answers, asked = nodes.size()](Result<rpc::GetBucketInfoReply> reply) {
          if (context_.buckets.find(ticket) == nullptr) return;
          if (reply && reply->status && reply->reports.size() == 1) answers->reports[node] = reply->reports[0];
          if (--answers->left == 0) on_compared(ticket.bucket, answers->reports, asked);
        });
  }
}

void BucketMaintainer::on_compared(BucketId bucket, const std::map<std::uint16_t, rpc::BucketReport>& reports,
                                   std::size_t asked) {
  BucketEntry& entry = *context_.buckets.find(bucket);
  if (reports.size() != asked || entry.disturbed) {
    merge_again(entry);
    return;
  }
  entry.damaged.clear();
  for (const auto& [node, report] : reports) {
    if (report.damaged) entry.damaged.push_back(node);
  }
  const bool is_lost = entry.intact().empty();
  if (is_lost && !entry.unsafe_recovery) {
    keep_damaged_set(entry);
    return;
  }
  Repair repair{entry.damaged, reports.at(entry.primary()).info};
  const Sabotage& sabotage = context_.options.sabotage;
  const bool equal = std::all_of(reports.begin(), reports.end(),
                                 [&](const auto& report) { return report.second.info.same_content(repair.intact); });
  if (!equal && !sabotage.repair_unmerged) {
    entry.paused = false;
    callbacks_.bucket_ready(bucket);
    merge_failures_.add();
    merge_later(entry, kMergeRetryDelay);
    return;
  }
  if (sabotage.repair_unmerged && !repair.nodes.empty()) repair.intact = reports.at(repair.nodes.front()).info;
  (is_lost ? unsafely_recovered_ : repaired_replicas_).add(repair.nodes.size());
  entry.unsafe_recovery = false;
  if (!repair.nodes.empty() && !sabotage.skip_repair) repairs_[bucket.raw()] = std::move(repair);
  entry.damaged.clear();  // A replica that has lost something since reports it again.
  extend_set(entry);
}

/// Keeps the set while no member is intact. No replica becomes a member: one that was filled from damaged ones would
/// say that there is nothing where something was lost. No replica is deleted, since it may hold what was lost.
void BucketMaintainer::keep_damaged_set(BucketEntry& entry) {
  if (entry.catching_up.empty() && entry.obsolete.empty() &&
      same_nodes(entry.set.nodes, wanted_members(entry, *context_.snapshot))) {
    extend_set(entry);
    return;
  }
  entry.dirty = false;  // Each member has what is left on any of them.
  entry.unsettled = false;
  entry.paused = false;
  callbacks_.bucket_ready(entry.bucket);
  merge_later(entry, kDamagedRetryDelay);
}

void BucketMaintainer::extend_set(BucketEntry& entry) {
  merges_.add();
  // While replicas wait to be filled, the members that are to make room for them stay.
  std::vector<std::uint16_t> wanted = wanted_members(entry, *context_.snapshot);
  if (entry.fill_deferred) {
    wanted = entry.set.nodes;
    wanted.insert(wanted.end(), entry.filled.begin(), entry.filled.end());
  }
  std::vector<std::uint16_t> surplus = entry.obsolete;
  for (std::uint16_t node : entry.set.nodes) {
    if (std::find(wanted.begin(), wanted.end(), node) == wanted.end()) surplus.push_back(node);
  }
  const std::vector<std::uint16_t> before = std::exchange(entry.set.nodes, std::move(wanted));
  entry.set.epoch = context_.next_epoch(entry.set.epoch);
  entry.joining.clear();
  for (std::uint16_t node : entry.set.nodes) {
    if (std::find(before.begin(), before.end(), node) == before.end()) entry.joining.push_back(node);
  }
  if (entry.joining.size() == entry.set.nodes.size()) entry.joining.clear();  // No older member stays.
  std::erase_if(entry.catching_up,
                [&](std::uint16_t node) { return !entry.fill_deferred || entry.set.contains(node); });
  entry.obsolete.clear();
  entry.misplaced = entry.fill_deferred && is_misplaced(entry, *context_.snapshot);
  entry.dirty = false;
  entry.unsettled = false;
  entry.merging = false;
  entry.awaited = false;
  entry.merge_problem.clear();
  entry.removed = surplus;
  if (!surplus.empty()) surplus_[entry.bucket.raw()] = std::move(surplus);
  install({entry.bucket});
}

void BucketMaintainer::delete_surplus(BucketEntry& entry, std::uint16_t node) {
  if (!context_.snapshot->storage_serves(node)) {  // When it is back it reports what it has.
    --entry.deletes_under_way;
    return;
  }
  rpc::DeleteBuckets request;
  request.state_version = context_.snapshot->state_version();
  request.distributor = context_.options.index;
  request.buckets = {entry.bucket};
  rpc::call(context_.transport, context_.storage_address(node), std::move(request), context_.options.storage_timeout,
            context_.executor, [this, ticket = entry.ticket(), node](Result<rpc::DeleteBucketsReply> reply) {
              BucketEntry* known = context_.buckets.find(ticket);
              if (known == nullptr) return;
              if (reply && reply->status && reply->statuses.size() == 1 && reply->statuses[0]) {
                --known->deletes_under_way;
              } else {
                later(*known, kMergeRetryDelay, [this, node](BucketEntry& same) { delete_surplus(same, node); });
              }
            });
}

std::size_t BucketMaintainer::out_of_sync() const {
  std::size_t count = 0;
  for (auto& [raw, entry] : context_.buckets) {
    count += entry.phase == BucketPhase::Collecting || entry.wants_merge() ? 1 : 0;
  }
  return count;
}

std::size_t BucketMaintainer::under_replicated() const {
  if (context_.snapshot == nullptr) return 0;
  const std::size_t wanted = wanted_replicas(*context_.snapshot);
  std::size_t count = 0;
  for (auto& [raw, entry] : context_.buckets) {
    const bool is_served = entry.phase == BucketPhase::Active || entry.phase == BucketPhase::Installing;
    count += is_served && entry.intact().size() < wanted ? 1 : 0;
  }
  return count;
}

std::size_t BucketMaintainer::damaged() const {
  std::size_t count = 0;
  for (auto& [raw, entry] : context_.buckets) count += entry.damaged.empty() ? 0 : 1;
  return count;
}

std::size_t BucketMaintainer::unavailable() const {
  std::size_t count = 0;
  for (auto& [raw, entry] : context_.buckets) {
    count += entry.phase == BucketPhase::Unavailable || entry.phase == BucketPhase::Collecting ? 1 : 0;
  }
  return count;
}

}  // namespace fjord::distributor
