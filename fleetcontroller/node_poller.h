#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controller_settings.h"
#include "fjord/rpc/transport.h"
#include "slow_nodes.h"

namespace fjord::fleetcontroller {

/// One node of the cluster and its last answer.
struct PolledNode {
  rpc::Address address;  // Empty: the node was removed.
  NodeMonitor monitor;
  rpc::PollReply last;        // The last good answer; its versions are 0 after a poll that failed.
  bool last_failed = true;    // The last completed poll had no good answer.
  std::string refusal;        // Why the node refused the last poll that it answered; empty: it did not.
  std::int64_t heard_us = 0;  // The node's clock in its newest answer.
  unsigned polls_under_way = 0;
  bool poll_again = false;   // Something changed while a poll was in flight.
  bool look_again = false;   // A poll is scheduled to see whether the node still refuses connections.
  std::uint64_t number = 0;  // Number of this index and address; answers to a poll of an older number are dropped.

  BaseSettings settings;  // Settings with which the process of `settings_incarnation` started.
  std::uint64_t settings_incarnation = 0;

  NodeId id() const { return monitor.report().id; }
};

/// Polls the nodes of the cluster: sends them the news with each poll and follows their answers.
///
/// Threading: confined to the controller's executor.
class NodePoller {
 public:
  struct Events {
    std::function<void()> answered;  ///< A poll was answered or failed.
    /// A node knows more than the records; the text says which node and what.
    std::function<void(const std::string&)> records_behind;
  };

  NodePoller(const FleetControllerOptions& options, const Clock& clock, rpc::Transport& transport, Executor& executor,
             Candidate& candidate, LeaderRecords& records, const ControllerSettings& settings, Events events);

  const std::vector<PolledNode>& nodes() const { return nodes_; }
  const SlowNodes& slow() const { return slow_; }

  /// Follows the record's list of nodes and the states that operators want.
  void update_nodes();
  /// Forgets all nodes.
  void clear() { nodes_.clear(); }
  /// Notes that a state based on the record's incarnations is stored.
  void note_published();
  /// Accounts for a pause of this process (it was stopped, or the machine was busy): nodes get that much more time for
  /// an answer, because no poll was sent meanwhile.
  void excuse_silence();
  /// Notices silent nodes and polls all nodes.
  void tick();
  void poll_all();
  /// Sends news to all nodes that answer, as soon as possible.
  void push();
  /// Updates the marks of slow nodes by the last answers and returns the changes.
  std::vector<SlowNodes::Change> update_slow_nodes();

 private:
  void poll(std::size_t i);
  void on_answer(std::uint64_t number, Result<rpc::PollReply> reply);
  void take_answer(PolledNode& node, rpc::PollReply reply);
  /// `why` is OK if the node answered and refused the poll.
  void take_failure(PolledNode& node, const Status& why);
  /// Schedules an early poll of a node that has refused one, to see whether its process has ended.
  void look_again(PolledNode& node);
  std::vector<PolledNode>::iterator find(std::uint64_t number);
  Duration tick_pause() const { return candidate_.tick_pause(options_.poll_interval); }

  const FleetControllerOptions& options_;
  const Clock& clock_;
  rpc::Transport& transport_;
  Executor& executor_;
  Candidate& candidate_;
  LeaderRecords& records_;
  const ControllerSettings& settings_;
  Events events_;

  std::vector<PolledNode> nodes_;
  std::uint64_t last_number_ = 0;
  SlowNodes slow_;
  MonotonicTime awake_at_;  // The last time at which this process was known to run.
};

}  // namespace fjord::fleetcontroller
