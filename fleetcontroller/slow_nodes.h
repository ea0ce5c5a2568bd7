#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/rpc/controller_messages.h"

namespace fjord::fleetcontroller {

/// Marks storage nodes as slow by the measurements of distributors. A mark is not part of the cluster state and takes
/// no node down: reads avoid the node while there is another replica.
class SlowNodes {
 public:
  /// The recent measurements of one distributor.
  struct Report {
    std::string distributor;
    std::vector<rpc::NodeLatency> latencies;
  };
  struct Change {
    std::uint16_t node = 0;
    bool slow = false;
    std::string why;  ///< Text for operators.
  };

  /// Updates the marks and returns those that changed. A node is marked when more than half of the distributors that
  /// have measured it find it slow. The mark ends when this has not been so for some seconds.
  std::vector<Change> update(const std::vector<Report>& reports, MonotonicTime now);

  std::vector<std::uint16_t> nodes() const;
  /// Returns why the node is marked; empty if it is not.
  std::string reason(std::uint16_t node) const;

 private:
  struct Mark {
    std::string reason;
    MonotonicTime last_slow;  ///< Last time that most distributors found the node slow.
    MonotonicTime since;
  };
  std::map<std::uint16_t, Mark> marks_;
};

}  // namespace fjord::fleetcontroller
