#pragma once

#include <deque>
#include <functional>
#include <string>
#include <variant>

#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {

/// An operator who changes the cluster while it runs, by the same requests as tools/fjord. The requests are sent one
/// after the other, each repeated until a fleet controller has decided. So added nodes get indexes in the order of the
/// requests.
///
/// Lifetime: the cluster outlives the operator; the operator outlives the run of the cluster.
class Operator {
 public:
  /// Receives the answer to a request. Refusals and invalid input are passed on, not retried.
  using NodesDone = std::function<void(const rpc::ChangeNodesReply& reply)>;
  using ConfigDone = std::function<void(const rpc::ChangeConfigReply& reply)>;

  explicit Operator(SimCluster& cluster) : cluster_(cluster) {}
  void change_nodes(rpc::NodeAction action, const std::string& node, NodesDone done);
  void change_nodes(rpc::ChangeNodes request, NodesDone done);
  /// `setting` is "name=value"; without "=" the setting goes back to its default.
  void change_config(const std::string& setting, ConfigDone done);
  bool is_idle() const { return jobs_.empty(); }

 private:
  struct Job {
    std::variant<rpc::ChangeNodes, rpc::ChangeConfig> request;
    NodesDone nodes_done;
    ConfigDone config_done;
  };
  void add(Job job);
  void send();
  /// Asks the controllers for their current version, until they answer, then calls `then`. A change is sent only for
  /// that version.
  template <typename Q, typename F>
  void look(F then);
  void send_later();
  template <typename R, typename F>
  void send(const R& request, F Job::*done);

  SimCluster& cluster_;
  std::deque<Job> jobs_;  ///< The request of the first job is in flight.
};

}  // namespace fjord::sim
