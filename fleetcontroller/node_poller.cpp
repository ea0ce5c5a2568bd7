#include "node_poller.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "fjord/common/log.h"
#include "fjord/rpc/refusal.h"

namespace fjord::fleetcontroller {
namespace {

// Largest number of polls of one node in flight. With several polls a lost answer does not delay the next one, and a
// slow answer still counts.
constexpr unsigned kPollsMax = 4;

// Number of tick pauses without a tick after which the process is considered to have stood still.
constexpr int kLateTicks = 3;

/// Returns why the process that answered is not the node; empty: it is the node, or its reply has no name.
std::string mistaken_text(const PolledNode& node, const rpc::PollReply& reply) {
  if (reply.node.empty() || reply.node == node.id().to_string()) return {};
  return fmt::format("the process at {} was started as {}", node.address, reply.node);
}

/// Returns why the node says that it cannot take part, for people; empty: it takes part, or will with the next polls.
std::string refusal_text(const Status& status) {
  const bool is_short = status.code() == StatusCode::NotReady || status.code() == StatusCode::WrongDistribution;
  return status || is_short ? std::string() : status.message();
}

}  // namespace

NodePoller::NodePoller(const FleetControllerOptions& options, const Clock& clock, rpc::Transport& transport,
                       Executor& executor, Candidate& candidate, LeaderRecords& records,
                       const ControllerSettings& settings, Events events)
    : options_(options),
      clock_(clock),
      transport_(transport),
      executor_(executor),
      candidate_(candidate),
      records_(records),
      settings_(settings),
      events_(std::move(events)) {}

void NodePoller::excuse_silence() {
  const MonotonicTime now = clock_.now();
  const MonotonicTime before = std::exchange(awake_at_, now);
  const Duration since = now - before;
  if (before == MonotonicTime{} || since <= kLateTicks * tick_pause()) return;
  log::warning("controller", "stood still for {} ms", std::chrono::duration_cast<milliseconds>(since).count());
  // Each node's last answer moves later by the time for which this controller stood still, but never past the present.
  for (PolledNode& node : nodes_) {
    node.monitor.excuse(std::min<Duration>(since, now - node.monitor.report().last_answer));
  }
}

void NodePoller::update_nodes() {
  const ClusterRecord& record = records_.cluster();
  std::vector<PolledNode> next;
  const auto add = [&](NodeType type, const std::vector<std::string>& addresses) {
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const NodeId id{type, static_cast<std::uint16_t>(i)};
      PolledNode node;
      for (PolledNode& old : nodes_) {
        if (old.id() == id && old.address == addresses[i]) node = old;
      }
      if (node.number == 0) {
        const auto known = record.incarnations.find(id.to_string());
        node.monitor = NodeMonitor(id, known == record.incarnations.end() ? 0 : known->second);
        node.address = addresses[i];
        node.number = ++last_number_;
      }
      const auto wanted = record.wanted.find(id.to_string());
      node.monitor.set_wanted(wanted == record.wanted.end() ? WantedState{} : wanted->second);
      next.push_back(std::move(node));
    }
  };
  add(NodeType::Distributor, record.nodes.distributors);
  add(NodeType::Storage, record.nodes.storage);
  nodes_ = std::move(next);
}

void NodePoller::note_published() {
  for (PolledNode& node : nodes_) {
    const auto known = records_.cluster().incarnations.find(node.id().to_string());
    if (known != records_.cluster().incarnations.end()) node.monitor.set_published(known->second);
  }
}

void NodePoller::tick() {
  const MonitorOptions options = settings_.monitor();
  for (PolledNode& node : nodes_) node.monitor.on_time(clock_.now(), options);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].look_again) poll(i);
  }
}

void NodePoller::poll_all() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) poll(i);
}

void NodePoller::push() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].poll_again = true;
    if (nodes_[i].monitor.report().answered) poll(i);
  }
}

void NodePoller::poll(std::size_t i) {
  if (!candidate_.still_leads() || i >= nodes_.size()) return;
  PolledNode& node = nodes_[i];
  if (node.polls_under_way >= kPollsMax || node.address.empty()) return;
  ++node.polls_under_way;
  node.poll_again = false;
  rpc::Poll request;
  request.info = records_.news_for(node.last, settings_.lease());
  request.node = node.id().to_string();
  request.renews_lease = candidate_.is_sure();
  request.heard_us = node.heard_us;
  // Before the first answer a new leader sends the incarnation in the record. Otherwise the node would conclude that
  // the state is about an earlier incarnation of it. `heard_us` is 0 then, so this renews no lease.
  const NodeReport& report = node.monitor.report();
  request.heard_incarnation = report.answered ? report.incarnation : report.published_incarnation;
  request.wants_settings = !report.answered || node.settings_incarnation != report.incarnation;
  if (node.id().type == NodeType::Distributor) {
    request.slow_storage = slow_.nodes();
    request.time_ceiling_us = records_.grant_time();
  }
  rpc::call(transport_, node.address, std::move(request), options_.poll_timeout, executor_,
            candidate_.in_this_term(
                [this, number = node.number](Result<rpc::PollReply> reply) { on_answer(number, std::move(reply)); }));
}

std::vector<PolledNode>::iterator NodePoller::find(std::uint64_t number) {
  return std::find_if(nodes_.begin(), nodes_.end(), [&](const PolledNode& node) { return node.number == number; });
}

void NodePoller::on_answer(std::uint64_t number, Result<rpc::PollReply> reply) {
  excuse_silence();
  const auto found = find(number);
  if (found == nodes_.end()) return;
  PolledNode& node = *found;
  --node.polls_under_way;
  const std::string mistaken = reply ? mistaken_text(node, *reply) : std::string();
  if (reply && mistaken.empty() && records_.are_behind(*reply)) {
    return events_.records_behind(fmt::format("{} has heard of cluster state {} of term {}", node.id().to_string(),
                                              reply->state_version, reply->term));
  }
  if (reply && reply->term > records_.published_term()) {
    return candidate_.step_down(node.id().to_string() + " has heard of term " + std::to_string(reply->term));
  }
  const bool is_good = reply && reply->status && mistaken.empty();
  const bool was_stopping = node.monitor.report().reported.state == NodeState::Stopping;
  node.last_failed = !is_good;
  if (reply) node.monitor.set_mistaken(mistaken);
  if (reply) node.refusal = refusal_text(reply->status);
  if (is_good) {
    take_answer(node, std::move(*reply));
  } else {
    // The process at this address may have been restarted since its last answer, and then has no versions.
    node.last.state_version = 0;
    node.last.schema_version = 0;
    node.last.pending_version = 0;
    node.last.config_version = 0;
    take_failure(node, reply ? Status::ok() : reply.error());
    if (reply && reply->status.code() == StatusCode::Corruption) {
      log::error("controller", "{} refuses: {}", node.id().to_string(), reply->status.to_string());
    }
  }
  // The process waits until a poll tells it that its answer has come.
  const bool tells_stop = !was_stopping && node.monitor.report().reported.state == NodeState::Stopping;
  const bool again = is_good && (tells_stop || node.poll_again || records_.has_news_for(node.last));
  const auto i = static_cast<std::size_t>(found - nodes_.begin());
  events_.answered();
  if (again) poll(i);
}

void NodePoller::take_answer(PolledNode& node, rpc::PollReply reply) {
  Result<NodeStateInfo> reported = NodeStateInfo::parse(reply.node_state, node.id().type);
  if (!reported) reported = plain(NodeState::Down);
  const bool is_other = node.monitor.report().incarnation != reply.incarnation;
  // Several polls are in flight. An answer that was made before one that has come says nothing new about the node.
  const bool is_late = !is_other && reply.clock_us < node.heard_us;
  if (is_late) reported = node.monitor.report().reported;
  node.heard_us = is_other ? reply.clock_us : std::max(node.heard_us, reply.clock_us);
  node.monitor.on_answer(clock_.now(), reply.incarnation, *reported, reply.min_bucket_bits, settings_.monitor());
  node.monitor.set_features(reply.features);
  node.monitor.set_kept_from(reply.kept_from);
  if (!reply.settings.empty()) {
    node.settings = parse_base_settings(reply.settings);
    node.settings_incarnation = reply.incarnation;
    reply.settings.clear();
  }
  node.last = std::move(reply);
}

void NodePoller::take_failure(PolledNode& node, const Status& why) {
  if (rpc::is_refusal(why)) {
    // While another poll is in flight, a refused connection does not prove that the process is gone: it may have
    // accepted the other poll.
    if (node.polls_under_way > 0) return;
    node.monitor.on_refused(clock_.now(), settings_.monitor());
    if (node.monitor.is_suspect()) look_again(node);
  } else if (why.code() != StatusCode::NotReady) {
    node.monitor.not_refused();
  }
}

void NodePoller::look_again(PolledNode& node) {
  if (std::exchange(node.look_again, true)) return;
  const Duration pause = std::min(tick_pause(), settings_.monitor().refused_after / 2);
  executor_.post_after(pause, candidate_.in_this_term([this, number = node.number] {
    const auto found = find(number);
    if (found == nodes_.end()) return;
    found->look_again = false;
    if (candidate_.phase() == Candidate::Phase::Leading) poll(static_cast<std::size_t>(found - nodes_.begin()));
  }));
}

std::vector<SlowNodes::Change> NodePoller::update_slow_nodes() {
  std::vector<SlowNodes::Report> reports;
  for (const PolledNode& node : nodes_) {
    if (node.id().type != NodeType::Distributor || node.last_failed) continue;
    reports.push_back({node.id().to_string(), node.last.latencies});
  }
  return slow_.update(reports, clock_.now());
}

}  // namespace fjord::fleetcontroller
