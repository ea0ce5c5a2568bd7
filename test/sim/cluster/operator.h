#pragma once

#include <deque>
#include <functional>
#include <string>
#include <variant>

#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {

/// An operator who changes the cluster while it runs, by the same requests as tools/fjord: one after the other, and
/// each again until a fleet controller has decided. So nodes that are added get indexes in the order of the requests.
///
/// Lifetime: the cluster outlives it; it outlives the cluster's running.
class Operator {
 public:
  /// What became of a request. Refusals and wrong input are told by `done`, not repeated.
  using NodesDone = std::function<void(const rpc::ChangeNodesReply& reply)>;
  using ConfigDone = std::function<void(const rpc::ChangeConfigReply& reply)>;

  explicit Operator(SimCluster& cluster) : cluster_(cluster) {}
  void change_nodes(rpc::NodeAction action, const std::string& node, NodesDone done);
  void change_nodes(rpc::ChangeNodes request, NodesDone done);
  /// "name=value"; without "=": back to the default.
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
  /// Asks what the controllers say of the cluster now, until they do; changes are made under that only.
  template <typename Q, typename F>
  void look(F then);
  void send_later();
  template <typename R, typename F>
  void send(const R& request, F Job::*done);

  SimCluster& cluster_;
  std::deque<Job> jobs_;  ///< The first is under way.
};

}  // namespace fjord::sim
