#include "node_monitor.h"

namespace fjord::fleetcontroller {
NodeMonitor::NodeMonitor(NodeId id, std::uint64_t published_incarnation) {
  report_.id = id;
  report_.published_incarnation = published_incarnation;
}

void NodeMonitor::crashed(MonotonicTime when) {
  crashes_.push_back(when);
  report_.crashes = static_cast<unsigned>(crashes_.size());
}

void NodeMonitor::fell_silent() {
  is_silent_ = true;
  refused_since_.reset();
  if (report_.reported.state == NodeState::Initializing) report_.is_held_down = true;
  if (report_.reported.state != NodeState::Stopping) crashed(report_.last_answer);
}

void NodeMonitor::on_refused(MonotonicTime now, const MonitorOptions& options) {
  on_time(now, options);
  if (!report_.answered || is_silent_ || options.refused_after == Duration(0)) return;
  if (!refused_since_) refused_since_ = now;
  // The first refusal is not enough: the process may be restarting at that moment.
  if (now - *refused_since_ < options.refused_after) return;
  report_.is_gone = true;
  fell_silent();
}

void NodeMonitor::follow_start(const NodeStateInfo& before, const NodeStateInfo& reported, bool restarted) {
  if (reported.state == NodeState::Up) {
    report_.is_held_down = false;
  } else if (before.state == NodeState::Initializing) {
    const bool went_back = reported.state == NodeState::Initializing && reported.init_progress < before.init_progress;
    if (restarted || went_back || reported.state == NodeState::Down) report_.is_held_down = true;
  }
}

void NodeMonitor::note_start(MonotonicTime now) {
  if (!report_.answered) {
    report_.away_since = now;
  } else if (report_.reported.state == NodeState::Stopping) {
    report_.away_since = report_.stopping_since;
  } else if (report_.reported.state != NodeState::Initializing) {
    report_.away_since = report_.last_answer;
  }
}

void NodeMonitor::on_answer(MonotonicTime now, std::uint64_t incarnation, const NodeStateInfo& reported,
                            unsigned min_bucket_bits, const MonitorOptions& options) {
  on_time(now, options);
  const bool was_stopping = report_.answered && report_.reported.state == NodeState::Stopping;
  const bool restarted = report_.answered && incarnation != report_.incarnation;
  if (restarted && !was_stopping && !is_silent_) crashed(now);
  if (!report_.answered || restarted || is_silent_) steady_since_ = now;
  if (report_.answered) follow_start(report_.reported, reported, restarted);
  if (reported.state == NodeState::Stopping && (!was_stopping || restarted)) report_.stopping_since = now;
  if (reported.state == NodeState::Initializing) note_start(now);
  is_silent_ = false;
  refused_since_.reset();
  report_.is_gone = false;
  report_.answered = true;
  report_.last_answer = now;
  report_.incarnation = incarnation;
  report_.reported = reported;
  report_.min_bucket_bits = min_bucket_bits;
}

void NodeMonitor::on_time(MonotonicTime now, const MonitorOptions& options) {
  if (report_.answered && !is_silent_ && now - report_.last_answer > options.down_after) {
    fell_silent();
  }
  const bool is_held = crashes_.size() > options.crashes_max;
  const bool is_steady = report_.answered && !is_silent_ && now - steady_since_ >= options.stable_period;
  if (is_steady) {
    crashes_.clear();
  } else if (!is_held) {
    while (!crashes_.empty() && now - crashes_.front() > options.crash_period) crashes_.pop_front();
  }
  report_.crashes = static_cast<unsigned>(crashes_.size());
}

}  // namespace fjord::fleetcontroller
