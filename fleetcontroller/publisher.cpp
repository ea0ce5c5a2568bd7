// The part of Controller that polls nodes and publishes cluster states.

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "controller.h"
#include "fjord/common/log.h"
#include "fjord/rpc/refusal.h"
#include "live_config.h"

namespace fjord::fleetcontroller {
namespace {

// Largest number of polls of one node in flight. With several polls a lost answer does not delay the next one, and a
// slow answer still counts.
constexpr unsigned kPollsMax = 4;

// Number of tick pauses without a tick after which the process is considered to have stood still.
constexpr int kLateTicks = 3;

}  // namespace

Duration Controller::tick_pause() const {
  return std::min<Duration>(options_.poll_interval, store_.session_timeout() / 6);
}

void Controller::excuse_silence() {
  const MonotonicTime now = clock_.now();
  const MonotonicTime before = std::exchange(awake_at_, now);
  const Duration since = now - before;
  if (before == MonotonicTime{} || since <= kLateTicks * tick_pause()) return;
  log::warning("controller", "stood still for {} ms", std::chrono::duration_cast<milliseconds>(since).count());
  // The pause is cut so that no node's last answer gets later than the present.
  for (Node& node : nodes_) {
    node.monitor.excuse(std::min<Duration>(since, now - node.monitor.report().last_answer));
  }
}

void Controller::tick() {
  excuse_silence();
  if (still_leads()) {
    if (clock_.now() - asked_at_ >= store_.session_timeout() / 8) confirm();
  } else if (leadership_.mine) {
    store_.resign();  // The controller has stepped down by itself, and the store does not know yet.
  }
  if (phase_ == Phase::Leading) {
    const MonitorOptions options = monitor_options();
    for (Node& node : nodes_) node.monitor.on_time(clock_.now(), options);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].look_again) poll(i);
    }
    store_time_limit();
    update_slow_nodes();
    update_state();
  }
  executor_->post_after(tick_pause(), [this] { tick(); });
}

void Controller::update_nodes() {
  std::vector<Node> next;
  const auto add = [&](NodeType type, const std::vector<std::string>& addresses) {
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const NodeId id{type, static_cast<std::uint16_t>(i)};
      Node node;
      for (Node& old : nodes_) {
        if (old.id() == id && old.address == addresses[i]) node = old;
      }
      if (node.life == 0) {
        const auto known = record_.incarnations.find(id.to_string());
        node.monitor = NodeMonitor(id, known == record_.incarnations.end() ? 0 : known->second);
        node.address = addresses[i];
        node.life = ++lives_;
      }
      const auto wanted = record_.wanted.find(id.to_string());
      node.monitor.set_wanted(wanted == record_.wanted.end() ? WantedState{} : wanted->second);
      next.push_back(std::move(node));
    }
  };
  add(NodeType::Distributor, record_.nodes.distributors);
  add(NodeType::Storage, record_.nodes.storage);
  nodes_ = std::move(next);
}

void Controller::poll(std::size_t i) {
  if (!still_leads() || i >= nodes_.size()) return;
  Node& node = nodes_[i];
  if (node.polls_under_way >= kPollsMax || node.address.empty()) return;
  ++node.polls_under_way;
  node.poll_again = false;
  rpc::Poll request;
  request.info = news_for(node.last);
  request.node = node.id().to_string();
  request.renews_lease = is_sure();
  request.heard_us = node.heard_us;
  // Before the first answer a new leader sends the incarnation in the record. Otherwise the node would conclude that
  // the state is about an earlier incarnation of it. `heard_us` is 0 then, so this renews no lease.
  const NodeReport& report = node.monitor.report();
  request.heard_incarnation = report.answered ? report.incarnation : report.published_incarnation;
  request.wants_settings = !report.answered || node.settings_incarnation != report.incarnation;
  if (node.id().type == NodeType::Distributor) {
    request.slow_storage = slow_.nodes();
    request.time_ceiling_us = grants_.grant(clock_.wall_now());
  }
  rpc::call(transport_, node.address, std::move(request), options_.poll_timeout, *executor_,
            [this, reign = reign_, life = node.life](Result<rpc::PollReply> reply) {
              if (reign == reign_) on_answer(life, std::move(reply));
            });
}

void Controller::on_answer(std::uint64_t life, Result<rpc::PollReply> reply) {
  excuse_silence();
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& n) { return n.life == life; });
  if (found == nodes_.end()) return;
  Node& node = *found;
  --node.polls_under_way;
  if (reply && is_beyond_records(node, *reply)) {
    return strand(fmt::format("{} has heard of cluster state {} of term {}", node.id().to_string(),
                              reply->state_version, reply->term));
  }
  if (reply && reply->term > published_term()) {
    step_down(node.id().to_string() + " has heard of term " + std::to_string(reply->term));
    return;
  }
  const bool is_good = reply && reply->status && mistaken_text(node, reply).empty();
  node.last_failed = !is_good;
  if (reply) node.monitor.set_mistaken(mistaken_text(node, reply));
  if (is_good) {
    take_answer(node, std::move(*reply));
  } else {
    // The process at this address may have restarted since and have no versions.
    node.last.state_version = 0;
    node.last.schema_version = 0;
    node.last.pending_version = 0;
    node.last.config_version = 0;
    take_failure(node, reply ? Status::ok() : reply.error());
    if (reply && reply->status.code() == StatusCode::Corruption) {
      log::error("controller", "{} refuses: {}", node.id().to_string(), reply->status.to_string());
    }
  }
  const bool again = is_good && (node.poll_again || is_behind(node));
  const auto i = static_cast<std::size_t>(found - nodes_.begin());
  update_state();
  if (again) poll(i);
}

/// Returns why the process that answered is not the node; empty: it is the node, or its reply has no name.
std::string Controller::mistaken_text(const Node& node, const Result<rpc::PollReply>& reply) const {
  if (!reply || reply->node.empty() || reply->node == node.id().to_string()) return {};
  return fmt::format("the process at {} was started as {}", node.address, reply->node);
}

void Controller::take_answer(Node& node, rpc::PollReply reply) {
  Result<NodeStateInfo> reported = NodeStateInfo::parse(reply.node_state, node.id().type);
  if (!reported) reported = plain(NodeState::Down);
  const bool is_other = node.monitor.report().incarnation != reply.incarnation;
  node.heard_us = is_other ? reply.clock_us : std::max(node.heard_us, reply.clock_us);
  node.monitor.on_answer(clock_.now(), reply.incarnation, *reported, reply.min_bucket_bits, monitor_options());
  if (!reply.settings.empty()) {
    node.settings = parse_base_settings(reply.settings);
    node.settings_incarnation = reply.incarnation;
    reply.settings.clear();
  }
  node.last = std::move(reply);
}

/// `why` is OK if the node answered and refused the poll.
void Controller::take_failure(Node& node, const Status& why) {
  if (rpc::is_refusal(why)) {
    // A process may have accepted another poll that is in flight.
    if (node.polls_under_way > 0) return;
    node.monitor.on_refused(clock_.now(), monitor_options());
    if (node.monitor.is_suspect()) look_again(node);
  } else if (why.code() != StatusCode::NotReady) {
    node.monitor.not_refused();
  }
}

void Controller::look_again(Node& node) {
  if (std::exchange(node.look_again, true)) return;
  const Duration pause = std::min(tick_pause(), monitor_options().refused_after / 2);
  executor_->post_after(pause, [this, reign = reign_, life = node.life] {
    const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& n) { return n.life == life; });
    if (reign != reign_ || found == nodes_.end()) return;
    found->look_again = false;
    if (phase_ == Phase::Leading) poll(static_cast<std::size_t>(found - nodes_.begin()));
  });
}

bool Controller::is_behind(const Node& node) const {
  if (active_.version() == 0) return false;
  const rpc::PollReply& last = node.last;
  return last.state_version < active_.version() || last.schema_version < schemas_.version ||
         last.config_version < record_.config_version() ||
         (pending_ && std::max(last.pending_version, last.state_version) < pending_->version());
}

rpc::ClusterInfo Controller::news_for(const rpc::PollReply& known) const {
  rpc::ClusterInfo info;
  info.term = published_term();
  info.lease_us = lease().count();
  info.state_version = active_.version();
  info.schema_version = schemas_.version;
  if (active_.version() > known.state_version) {
    info.state = record_.active.state;
    info.distribution = record_.active.distribution;
    info.distributor_addresses = record_.active.distributors;
    info.storage_addresses = record_.active.storage;
  }
  if (pending_ && std::max(known.pending_version, known.state_version) < pending_->version()) {
    info.pending_state = record_.pending->state;
    info.pending_distribution = record_.pending->distribution;
    info.pending_distributor_addresses = record_.pending->distributors;
    info.pending_storage_addresses = record_.pending->storage;
  }
  if (schemas_.version > known.schema_version) info.schemas = schemas_.schemas;
  if (record_.config_version() > known.config_version) {
    info.config_version = record_.config_version();
    info.config = as_list(record_.config());
  }
  return info;
}

std::string Controller::waits_for() const {
  if (!pending_) return {};
  std::vector<NodeProgress> progress;
  for (const Node& node : nodes_) {
    const NodeReport& report = node.monitor.report();
    progress.push_back({node.id(), std::max(node.last.pending_version, node.last.state_version),
                        report.answered ? std::max(report.last_answer, elected_at_) : elected_at_, report.is_gone});
  }
  const PublicationLimits limits = {lease(), setting("controller.pending_max", options_.pending_max)};
  return why_not_yet(active_, *pending_, progress, pending_since_, limits, clock_.now());
}

void Controller::update_state() {
  if (!still_leads() || phase_ != Phase::Leading || saving_) return;
  const ClusterState& current = pending_ ? *pending_ : active_;
  // The first state of a new cluster waits for the answers of all nodes or the end of the grace: one version is enough.
  GeneratorOptions options = generator_options();
  const bool all_answered =
      std::all_of(nodes_.begin(), nodes_.end(), [](const Node& n) { return n.monitor.report().answered; });
  if (current.version() == 0 && !all_answered && clock_.now() < options.grace_until) return;
  const Result<DistributionConfig> wanted = distribution();
  if (!wanted) return log::error("controller", "the distribution: {}", wanted.error().to_string());
  options.copies_in_sync = copies_in_sync(*wanted);
  std::vector<NodeReport> reports;
  reports.reserve(nodes_.size());
  for (const Node& node : nodes_) {
    reports.push_back(node.monitor.report());
    reports.back().is_removed = node.address.empty();
  }
  GeneratedState next = generate_state(current, reports, *wanted, options, clock_.now());
  const PublishedState& last = record_.pending ? *record_.pending : record_.active;
  const bool same_table = last.distribution == wanted->to_string() && last.distributors == record_.nodes.distributors &&
                          last.storage == record_.nodes.storage;
  if (next.is_new || !same_table) {
    next.state.set_version(current.version() + 1);
    make_pending(std::move(next.state), next.reasons, next.cluster_reason);
  } else if (pending_ && waits_for().empty()) {
    activate();
  }
}

/// Returns the number of in-sync replicas that every bucket has under the active state. 0: not known, or not more than
/// the state assures already.
unsigned Controller::copies_in_sync(const DistributionConfig& wanted) const {
  if (pending_ || active_.version() == 0 || active_.copies_assured() >= wanted.redundancy()) return 0;
  const Result<DistributionConfig> distribution = DistributionConfig::parse(record_.active.distribution);
  if (!distribution) return 0;
  const unsigned copies = replicas_at_birth(active_, *distribution);
  return active_.copies_assured() < copies && why_not_in_sync(facts()).empty() ? copies : 0;
}

void Controller::make_pending(ClusterState next, const StateReasons& reasons, const std::string& cluster_reason) {
  ClusterRecord record = record_;
  next.set_follows(active_.version());
  next.set_time_floor_us(grants_.freeze((pending_ ? *pending_ : active_).time_floor_us()));
  PublishedState published;
  published.version = next.version();
  published.state = next.to_string(ClusterState::Print::WithClusterDescription);
  published.distribution = distribution()->to_string();
  published.distributors = record.nodes.distributors;
  published.storage = record.nodes.storage;
  for (const Node& node : nodes_) {
    const NodeReport& report = node.monitor.report();
    if (report.answered) record.incarnations[node.id().to_string()] = report.incarnation;
  }
  const ClusterState& before = pending_ ? *pending_ : active_;
  HistoryEntry entry;
  entry.version = next.version();
  entry.term = published_term();
  entry.unix_us = clock_.wall_now().us;
  ClusterState shown = next;
  shown.set_description(before.description());  // The description goes to `why`.
  entry.what = before.diff(shown);
  if (record.active.distribution != published.distribution) entry.what += ", distribution: " + published.distribution;
  entry.why = cluster_reason;
  if (before.version() != 0 && next.copies_assured() > before.copies_assured()) {
    entry.why += (entry.why.empty() ? "" : "; ") + std::string("all buckets have so many replicas in sync");
  }
  for (const auto& [id, reason] : reasons) {
    if (before.node(id).state != next.node(id).state) {
      entry.why += (entry.why.empty() ? "" : "; ") + id.to_string() + ": " + reason;
    }
  }
  entry.who = options_.name;
  // No node serves before the first state, so there is no acknowledgement to wait for.
  const bool at_once = active_.version() == 0;
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
  save(std::move(record), [this, at_once](const Status& saved) {
    if (!saved) return;
    pending_since_ = clock_.now();
    if (at_once) versions_.add();
    for (Node& node : nodes_) {
      const auto known = record_.incarnations.find(node.id().to_string());
      if (known != record_.incarnations.end()) node.monitor.set_published(known->second);
    }
    push();
  });
}

void Controller::activate() {
  ClusterRecord record = record_;
  record.active = std::move(*record.pending);
  record.pending.reset();
  for (HistoryEntry& entry : record.history) {
    if (entry.version == record.active.version && entry.active_unix_us == 0) {
      entry.active_unix_us = clock_.wall_now().us;
    }
  }
  save(std::move(record), [this](const Status& saved) {
    if (!saved) return;
    log::info("controller", "active cluster state {}", record_.active.state);
    versions_.add();
    double up = 0;
    for (const Node& node : nodes_) up += is_available(active_.node(node.id()).state) ? 1 : 0;
    nodes_up_.set(up);
    push();
  });
}

void Controller::update_slow_nodes() {
  std::vector<SlowNodes::Report> reports;
  for (const Node& node : nodes_) {
    if (node.id().type != NodeType::Distributor || node.last_failed) continue;
    reports.push_back({node.id().to_string(), node.last.latencies});
  }
  const std::vector<SlowNodes::Change> changes = slow_.update(reports, clock_.now());
  for (const SlowNodes::Change& change : changes) {
    HistoryEntry entry;
    entry.version = active_.version();
    entry.term = published_term();
    entry.unix_us = clock_.wall_now().us;
    entry.what = NodeId::storage(change.node).to_string() + (change.slow ? ": slow" : ": no longer slow");
    entry.why = change.why;
    entry.who = options_.name;
    log::info("controller", "{} ({})", entry.what, entry.why);
    slow_history_.push_back(std::move(entry));
  }
  slow_nodes_.set(static_cast<double>(slow_.nodes().size()));
  if (!changes.empty()) push();
  if (slow_history_.empty() || saving_ || !still_leads() || phase_ != Phase::Leading) return;
  ClusterRecord record = record_;
  for (HistoryEntry& entry : std::exchange(slow_history_, {})) record.add_history(std::move(entry));
  save(std::move(record), [](const Status&) {});
}

void Controller::push() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].poll_again = true;
    if (nodes_[i].monitor.report().answered) poll(i);
  }
}

}  // namespace fjord::fleetcontroller
