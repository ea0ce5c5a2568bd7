#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fjord/cluster/feature.h"
#include "state_generator.h"

namespace fjord::fleetcontroller {

struct MonitorOptions {
  Duration down_after = milliseconds(1800);
  /// Period in which crashes are counted. A node with more than crashes_max of them is held down.
  Duration crash_period = seconds(600);
  unsigned crashes_max = 10;
  /// Time without an interruption of answers after which a node is not held down any more.
  Duration stable_period = seconds(60);
  /// Time of refused connections after which a node is gone; 0: refusals count as silence.
  Duration refused_after = milliseconds(400);
};

/// Follows one node by its answers: restarts, crashes, failed starts. A plain value without clocks or messages.
class NodeMonitor {
 public:
  NodeMonitor() = default;
  NodeMonitor(NodeId id, std::uint64_t published_incarnation);

  /// Returns the present knowledge of the node; `crashes` is updated by on_answer(), on_refused() and on_time() only.
  const NodeReport& report() const { return report_; }
  void set_wanted(WantedState wanted) { report_.wanted = std::move(wanted); }
  /// Sets the names that the process which answered last announces.
  void set_features(std::vector<std::string> names) { report_.features = normalize_features(std::move(names)); }
  /// Sets why the process that answered last is not this node; empty: it is.
  void set_mistaken(std::string why) { report_.mistaken = std::move(why); }
  /// Notes that a state based on this incarnation of the node is stored. The node may be another incarnation already.
  void set_published(std::uint64_t incarnation) { report_.published_incarnation = incarnation; }

  void on_answer(MonotonicTime now, std::uint64_t incarnation, const NodeStateInfo& reported, unsigned min_bucket_bits,
                 const MonitorOptions& options);
  /// Notes PollReply::kept_from of the answer that was taken last.
  void set_kept_from(std::vector<std::uint64_t> incarnations) { report_.kept_from = std::move(incarnations); }
  /// Notes that the node's machine refused a poll. To be called only if no other poll is in flight.
  void on_refused(MonotonicTime now, const MonitorOptions& options);
  /// Notes that a poll failed, but not by a refused connection, so that the process may still run.
  void not_refused() { refused_since_.reset(); }
  /// Returns true if the last polls were refused, but not for long enough to call the node gone.
  bool is_suspect() const { return refused_since_.has_value(); }
  /// Discounts a pause of the controller itself from the node's silence.
  void excuse(Duration pause) {
    report_.last_answer = report_.last_answer + pause;
    refused_since_.reset();
  }
  /// Notices silence, and drops crashes that do not count any more. To be called often.
  void on_time(MonotonicTime now, const MonitorOptions& options);

 private:
  void crashed(MonotonicTime when);
  void fell_silent();
  /// Notes since when a node that says it is starting has been away; called before the answer is taken in.
  void note_start(MonotonicTime now);
  void follow_start(const NodeStateInfo& before, const NodeStateInfo& reported, bool restarted);

  NodeReport report_;
  MonotonicTime steady_since_;                  ///< Time since which the node has answered without interruption.
  bool is_silent_ = false;                      ///< The node is silent or gone, and its crash is counted.
  std::optional<MonotonicTime> refused_since_;  ///< Time since which all polls were refused.
  std::deque<MonotonicTime> crashes_;
};

}  // namespace fjord::fleetcontroller
