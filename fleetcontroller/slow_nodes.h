#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/rpc/messages.h"

namespace fjord::fleetcontroller {

/// Which storage nodes are marked as slow, from what distributors measure. A mark takes nobody down and is no part of
/// the cluster state: it says where not to read while there is another replica.
class SlowNodes {
 public:
  /// What one distributor measured lately.
  struct Report {
    std::string distributor;
    std::vector<rpc::NodeLatency> latencies;
  };
  struct Change {
    std::uint16_t node = 0;
    bool slow = false;
    std::string why;  ///< For people.
  };

  /// A node is marked when more than half of those that have measured it find it slow, and it is unmarked when for some
  /// seconds they did not.
  std::vector<Change> update(const std::vector<Report>& reports, MonotonicTime now);

  std::vector<std::uint16_t> nodes() const;
  /// Empty if the node is not marked.
  std::string reason(std::uint16_t node) const;

 private:
  struct Mark {
    std::string reason;
    MonotonicTime last_slow;  ///< When most of them found it slow.
    MonotonicTime since;
  };
  std::map<std::uint16_t, Mark> marks_;
};

}  // namespace fjord::fleetcontroller
