#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "state_generator.h"

namespace fjord::fleetcontroller {

struct MonitorOptions {
  Duration down_after = milliseconds(1800);
  /// A node that crashed more often than crashes_max within this period is held down...
  Duration crash_period = seconds(600);
  unsigned crashes_max = 10;
  /// ...until it has answered for so long without a break.
  Duration stable_period = seconds(60);
  /// A node that refuses connections for so long is gone; 0: it is as good as silent.
  Duration refused_after = milliseconds(400);
};

/// Follows one node through its answers: restarts, crashes, starts that go wrong. A value without clocks or messages.
class NodeMonitor {
 public:
  NodeMonitor() = default;
  NodeMonitor(NodeId id, std::uint64_t published_incarnation);

  /// What is known; `crashes` as of the last call.
  const NodeReport& report() const { return report_; }
  void set_wanted(WantedState wanted) { report_.wanted = std::move(wanted); }
  /// Why the process that answered last is not this node; empty: it is.
  void set_mistaken(std::string why) { report_.mistaken = std::move(why); }
  /// A state that speaks of this process of the node is stored. It may have restarted since.
  void set_published(std::uint64_t incarnation) { report_.published_incarnation = incarnation; }

  void on_answer(MonotonicTime now, std::uint64_t incarnation, const NodeStateInfo& reported, unsigned min_bucket_bits,
                 const MonitorOptions& options);
  /// A poll was refused by the node's machine, and no other one is under way.
  void on_refused(MonotonicTime now, const MonitorOptions& options);
  /// A poll failed in a way that speaks against a process that is gone.
  void not_refused() { refused_since_.reset(); }
  /// Some polls were refused, and more will show whether it is gone.
  bool is_suspect() const { return refused_since_.has_value(); }
  /// The controller itself stood still for so long: the node's silence during that time is not the node's.
  void excuse(Duration pause) {
    report_.last_answer = report_.last_answer + pause;
    refused_since_.reset();
  }
  /// To be called often: notices silence and the end of what holds a node down.
  void on_time(MonotonicTime now, const MonitorOptions& options);

 private:
  void crashed(MonotonicTime when);
  void fell_silent();
  void follow_start(const NodeStateInfo& before, const NodeStateInfo& reported, bool restarted);

  NodeReport report_;
  MonotonicTime steady_since_;                  ///< It has answered without a break since then.
  bool is_silent_ = false;                      ///< And the crash is counted.
  std::optional<MonotonicTime> refused_since_;  ///< Since then in a row.
  std::deque<MonotonicTime> crashes_;
};

}  // namespace fjord::fleetcontroller
