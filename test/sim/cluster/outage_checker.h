#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "fjord/cluster/cluster_state.h"
#include "fjord/sim/sim_cluster.h"
#include "fjord/sim/sim_transport.h"

namespace fjord::sim {

/// Checks that a bucket is not refused as unavailable while a live node has all of its acknowledged documents and the
/// cluster states show that (I25): no outage that Fjord makes itself lasts longer than kOutageMax.
///
/// A node that is up and holds the newest replica set E of all live nodes has every acknowledged write, unless another
/// member of E was served without it. That takes a cluster state, made since E, in which the other member may serve and
/// none of the live holders may. So without such a state the outage has no reason.
///
/// Threading: the scheduler's. Lifetime: outlives the cluster that it watches.
class OutageChecker {
 public:
  /// How long a bucket may be refused while its holders are up and nothing happens to them.
  static constexpr Duration kOutageMax = seconds(15);

  void observe(SimCluster& cluster) { cluster_ = &cluster; }
  void see_state(std::uint64_t version, const ClusterState& state) { states_.try_emplace(version, state); }
  /// Records the answer of a distributor to an operation on a document.
  void see_answer(const std::string& id, const Status& status);
  /// Returns an empty string, or how I25 was broken.
  const std::string& failure() const { return failure_; }
  /// Number of answers "unavailable" that were looked into.
  std::uint64_t looked_into() const { return looked_into_; }

 private:
  struct Holders {
    std::uint64_t epoch = 0;
    std::set<std::uint16_t> nodes;    ///< Live nodes with that epoch that name themselves.
    std::set<std::uint16_t> members;  ///< Members of their set.
    MonotonicTime since{0};           ///< The last time when something happened to one of them.
  };

  Holders live_holders(const std::string& id) const;
  bool may_have_been_served_without(const Holders& holders) const;

  SimCluster* cluster_ = nullptr;
  std::map<std::uint64_t, ClusterState> states_;        ///< By version, active or pending.
  std::map<std::string, MonotonicTime> refused_since_;  ///< By document.
  std::uint64_t looked_into_ = 0;
  std::string failure_;
};

}  // namespace fjord::sim
