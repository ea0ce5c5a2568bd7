#include "publisher.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "fjord/cluster/distribution.h"
#include "fjord/common/log.h"
#include "folder_watch.h"
#include "live_config.h"
#include "publication.h"

namespace fjord::fleetcontroller {

Publisher::Publisher(std::string name, Runtime& runtime, Candidate& candidate, LeaderRecords& records,
                     const ControllerSettings& settings, NodePoller& poller)
    : name_(std::move(name)),
      clock_(runtime.clock),
      candidate_(candidate),
      records_(records),
      settings_(settings),
      poller_(poller),
      versions_(runtime.metrics.counter("fjord_fleetcontroller_states_total", "Cluster states published")),
      nodes_up_(runtime.metrics.gauge("fjord_fleetcontroller_nodes_up",
                                      "Nodes up in the cluster state; 0 on a controller that does not lead")),
      slow_nodes_(runtime.metrics.gauge("fjord_fleetcontroller_slow_nodes",
                                        "Storage nodes that are marked as slow; 0 on a controller that does not lead")),
      state_version_(
          runtime.metrics.gauge("fjord_fleetcontroller_state_version",
                                "Version of the cluster state in force; 0 on a controller that does not lead")),
      config_version_(
          runtime.metrics.gauge("fjord_fleetcontroller_config_version",
                                "Version of the live configuration in force; 0 on a controller that does not lead")),
      drawn_id_(runtime.random.next() | 1) {}

void Publisher::begin() {
  elected_at_ = clock_.now();
  pending_since_ = elected_at_;
}

void Publisher::end_term() {
  nodes_up_.set(0);
  slow_nodes_.set(0);
  state_version_.set(0);
  config_version_.set(0);
}

void Publisher::count_nodes() {
  const auto& nodes = poller_.nodes();
  const auto is_up = [&](const PolledNode& node) { return is_available(records_.active().node(node.id()).state); };
  nodes_up_.set(static_cast<double>(std::count_if(nodes.begin(), nodes.end(), is_up)));
  slow_nodes_.set(static_cast<double>(poller_.slow().nodes().size()));
  state_version_.set(static_cast<double>(records_.active().version()));
  config_version_.set(static_cast<double>(records_.cluster().config_version()));
}

std::string Publisher::waits_for() const {
  if (!records_.pending()) return {};
  std::vector<NodeProgress> progress;
  for (const PolledNode& node : poller_.nodes()) {
    const NodeReport& report = node.monitor.report();
    progress.push_back({node.id(), std::max(node.last.pending_version, node.last.state_version),
                        report.answered ? std::max(report.last_answer, elected_at_) : elected_at_, report.is_gone});
  }
  const PublicationLimits limits = {settings_.lease(), settings_.pending_max()};
  return why_not_yet(records_.active(), *records_.pending(), progress, pending_since_, limits, clock_.now());
}

void Publisher::update_state() {
  if (!candidate_.may_publish() || records_.is_writing()) return;
  const ClusterState& current = records_.newest();
  // The first state of a new cluster waits for the answers of all nodes or the end of the grace: one version is enough.
  GeneratorOptions options = settings_.generator(elected_at_, clock_.wall_now());
  const std::vector<PolledNode>& nodes = poller_.nodes();
  const bool all_answered =
      std::all_of(nodes.begin(), nodes.end(), [](const PolledNode& n) { return n.monitor.report().answered; });
  const bool is_unnamed = records_.identity().cluster_id == 0;
  if ((current.version() == 0 || is_unnamed) && !all_answered && clock_.now() < options.grace_until) return;
  IdentityRecord identity = next_identity();
  if (identity != records_.identity()) return records_.save_identity(std::move(identity), [](const Status&) {});
  const Result<DistributionConfig> wanted = settings_.distribution();
  if (!wanted) return log::error("controller", "the distribution: {}", wanted.error().to_string());
  options.replicas_in_sync = replicas_in_sync(*wanted);
  options.in_force = &records_.active();
  const bool has_marks = std::any_of(nodes.begin(), nodes.end(), [&](const PolledNode& node) {
    return records_.active().node(node.id()).lost_version != 0;
  });
  options.is_complete = has_marks && is_complete(records_.identity());
  GeneratedState next = generate_state(current, reports(identity), *wanted, options, clock_.now());
  const ClusterRecord& record = records_.cluster();
  const PublishedState& last = record.pending ? *record.pending : record.active;
  const bool same_table = last.distribution == wanted->to_string() && last.distributors == record.nodes.distributors &&
                          last.storage == record.nodes.storage;
  if (next.is_new || !same_table) {
    next.state.set_version(current.version() + 1);
    make_pending(std::move(next.state), next.reasons, next.cluster_reason);
  } else if (records_.pending() && waits_for().empty()) {
    activate();
  }
}

IdentityRecord Publisher::next_identity() const {
  IdentityRecord next = records_.identity();
  std::vector<rpc::PollReply> answers;
  bool is_lost = false;
  for (const PolledNode& node : poller_.nodes()) {
    if (node.id().type != NodeType::Storage) continue;
    const std::string name = node.id().to_string();
    if (node.address.empty()) next.folders.erase(name);
    const NodeReport& report = node.monitor.report();
    if (node.address.empty() || !report.answered) continue;
    answers.push_back(node.last);
    const auto known = next.folders.find(name);
    const auto published = records_.cluster().incarnations.find(name);
    const bool has_served =
        published != records_.cluster().incarnations.end() && published->second != report.incarnation;
    const FolderVerdict verdict = judge_folder(known == next.folders.end() ? nullptr : &known->second, has_served,
                                               node.last.folder_id, node.last.folder_adopted, clock_.wall_now().us);
    if (known != next.folders.end() || node.last.folder_id != 0) next.folders[name] = verdict.next;
    is_lost = is_lost || verdict.is_lost;
  }
  if (next.cluster_id == 0) next.cluster_id = choose_cluster_id(answers, drawn_id_);
  if (is_lost && is_complete(next)) {
    for (auto& [name, folder] : next.folders) folder.lost = folder.lost_unix_us = 0;
  }
  return next;
}

std::vector<NodeReport> Publisher::reports(const IdentityRecord& identity) const {
  std::vector<NodeReport> reports;
  reports.reserve(poller_.nodes().size());
  for (const PolledNode& node : poller_.nodes()) {
    reports.push_back(node.monitor.report());
    reports.back().is_removed = node.address.empty();
    const auto folder = identity.folders.find(node.id().to_string());
    reports.back().has_lost_data = folder != identity.folders.end() && folder->second.lost != 0;
  }
  return reports;
}

bool Publisher::is_complete(const IdentityRecord& identity) const {
  // What nodes said before the state in force had the marks says nothing about the buckets of a lost folder.
  const bool all_marked = std::all_of(identity.folders.begin(), identity.folders.end(), [&](const auto& item) {
    const Result<NodeId> id = NodeId::parse(item.first);
    return item.second.lost == 0 || !id || records_.active().node(*id).lost_version != 0;
  });
  // The same holds for the process that has brought yet another folder.
  const auto& published = records_.cluster().incarnations;
  const bool all_known = std::all_of(poller_.nodes().begin(), poller_.nodes().end(), [&](const PolledNode& node) {
    const auto folder = identity.folders.find(node.id().to_string());
    if (folder == identity.folders.end() || folder->second.lost == 0 || !node.monitor.report().answered) return true;
    const auto process = published.find(folder->first);
    return process != published.end() && process->second == node.monitor.report().incarnation;
  });
  return all_marked && all_known && !records_.pending() && why_not_in_sync(facts()).empty();
}

ClusterFacts Publisher::facts() const {
  ClusterFacts facts;
  const ClusterRecord& record = records_.cluster();
  Result<DistributionConfig> distribution = DistributionConfig::parse(record.active.distribution);
  if (!distribution) distribution = settings_.distribution();
  if (distribution) facts.active = ClusterView::make(records_.active(), std::move(*distribution));
  facts.is_changing = records_.pending().has_value();
  const GeneratorOptions limits = settings_.generator(elected_at_, clock_.wall_now());
  facts.storage_up_ratio_min = limits.storage_up_ratio_min;
  facts.distributors_up_ratio_min = limits.distributors_up_ratio_min;
  facts.groups_out_max = static_cast<std::size_t>(value_or_default(record.config(), "controller.groups_out_max"));
  for (const PolledNode& node : poller_.nodes()) {
    if (node.address.empty()) continue;
    const NodeReport& report = node.monitor.report();
    NodeFacts one;
    one.id = node.id();
    one.state = records_.active().node(node.id()).state;
    one.wanted = report.wanted;
    one.is_fresh = report.answered && !node.last_failed && clock_.now() - report.last_answer <= settings_.down_after();
    one.state_version = node.last.state_version;
    one.buckets = node.last.buckets;
    one.bytes = node.last.bytes;
    one.buckets_out_of_sync = node.last.buckets_out_of_sync;
    one.buckets_unavailable = node.last.buckets_unavailable;
    one.buckets_collecting = node.last.buckets_collecting;
    one.buckets_damaged = node.last.buckets_damaged;
    facts.nodes.push_back(std::move(one));
  }
  return facts;
}

unsigned Publisher::replicas_in_sync(const DistributionConfig& wanted) const {
  const ClusterState& active = records_.active();
  if (records_.pending() || active.version() == 0 || active.replicas_assured() >= wanted.redundancy()) return 0;
  const Result<DistributionConfig> distribution = DistributionConfig::parse(records_.cluster().active.distribution);
  if (!distribution) return 0;
  const unsigned replicas = replicas_at_birth(active, *distribution);
  return active.replicas_assured() < replicas && why_not_in_sync(facts()).empty() ? replicas : 0;
}

HistoryEntry Publisher::entry_for(const ClusterState& next, const StateReasons& reasons,
                                  const std::string& cluster_reason) const {
  const ClusterState& before = records_.newest();
  HistoryEntry entry;
  entry.version = next.version();
  entry.term = records_.published_term();
  entry.unix_us = clock_.wall_now().us;
  ClusterState shown = next;
  shown.set_description(before.description());  // `why` has the description of the state, so `what` leaves it out.
  entry.what = before.diff(shown);
  const std::string distribution = settings_.distribution()->to_string();
  if (records_.cluster().active.distribution != distribution) entry.what += ", distribution: " + distribution;
  entry.why = cluster_reason;
  if (before.version() != 0 && next.replicas_assured() > before.replicas_assured()) {
    entry.why +=
        (entry.why.empty() ? "" : "; ") + fmt::format("all buckets have {} replicas in sync", next.replicas_assured());
  }
  for (const auto& [id, reason] : reasons) {
    if (before.node(id).state != next.node(id).state) {
      entry.why += (entry.why.empty() ? "" : "; ") + id.to_string() + ": " + reason;
    }
  }
  entry.who = name_;
  return entry;
}

void Publisher::make_pending(ClusterState next, const StateReasons& reasons, const std::string& cluster_reason) {
  ClusterRecord record = records_.cluster();
  next.set_follows(records_.active().version());
  next.set_time_floor_us(records_.freeze_time());
  PublishedState published;
  published.version = next.version();
  published.state = next.to_string(ClusterState::Print::WithClusterDescription);
  published.distribution = settings_.distribution()->to_string();
  published.distributors = record.nodes.distributors;
  published.storage = record.nodes.storage;
  for (const PolledNode& node : poller_.nodes()) {
    const NodeReport& report = node.monitor.report();
    if (report.answered) record.incarnations[node.id().to_string()] = report.incarnation;
  }
  HistoryEntry entry = entry_for(next, reasons, cluster_reason);
  // No node serves before the first state, so there is no acknowledgement to wait for.
  const bool at_once = records_.active().version() == 0;
  if (at_once) {
    entry.active_unix_us = entry.unix_us;
    record.active = std::move(published);
    record.pending.reset();
  } else {
    record.pending = std::move(published);
  }
  log::info("controller", "{} cluster state {} ({})", at_once ? "active" : "pending",
            at_once ? record.active.state : record.pending->state, entry.what);
  record.add_history(std::move(entry));
  records_.save(std::move(record), [this, at_once](const Status& saved) {
    if (!saved) return;
    pending_since_ = clock_.now();
    if (at_once) versions_.add();
    poller_.note_published();
    poller_.push();
  });
}

void Publisher::activate() {
  ClusterRecord record = records_.cluster();
  record.active = std::move(*record.pending);
  record.pending.reset();
  for (HistoryEntry& entry : record.history) {
    if (entry.version == record.active.version && entry.active_unix_us == 0) {
      entry.active_unix_us = clock_.wall_now().us;
    }
  }
  records_.save(std::move(record), [this](const Status& saved) {
    if (!saved) return;
    log::info("controller", "active cluster state {}", records_.cluster().active.state);
    versions_.add();
    poller_.push();
  });
}

void Publisher::update_slow_nodes() {
  const std::vector<SlowNodes::Change> changes = poller_.update_slow_nodes();
  for (const SlowNodes::Change& change : changes) {
    HistoryEntry entry;
    entry.version = records_.active().version();
    entry.term = records_.published_term();
    entry.unix_us = clock_.wall_now().us;
    entry.what = NodeId::storage(change.node).to_string() + (change.slow ? ": slow" : ": no longer slow");
    entry.why = change.why;
    entry.who = name_;
    log::info("controller", "{} ({})", entry.what, entry.why);
    slow_history_.push_back(std::move(entry));
  }
  if (!changes.empty()) poller_.push();
  if (slow_history_.empty() || records_.is_writing() || !candidate_.may_publish()) return;
  ClusterRecord record = records_.cluster();
  for (HistoryEntry& entry : std::exchange(slow_history_, {})) record.add_history(std::move(entry));
  records_.save(std::move(record), [](const Status&) {});
}

}  // namespace fjord::fleetcontroller
