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
///
/// Marks come and go within seconds, because a wrong one costs nothing. What operators are told is persistent: a node
/// is *reported* as slow at once if it is very slow (kVerySlow, or it does not answer), and otherwise when it was
/// marked for kReportAfter in all. The report ends when there was no mark for kQuiet.
class SlowNodes {
 public:
  static constexpr Duration kVerySlow = milliseconds(50);
  static constexpr Duration kReportAfter = seconds(60);
  static constexpr Duration kQuiet = seconds(30);

  /// The recent measurements of one distributor.
  struct Report {
    std::string distributor;
    std::vector<rpc::NodeLatency> latencies;
  };
  /// A report to operators that has begun or ended.
  struct Change {
    std::uint16_t node = 0;
    bool slow = false;
    std::string why;  ///< Text for operators.
  };

  /// Updates the marks and returns the reports that have begun or ended. A node is marked when more than half of the
  /// distributors that have measured it find it slow. The mark ends when this has not been so for some seconds. To be
  /// called often.
  std::vector<Change> update(const std::vector<Report>& reports, MonotonicTime now);

  /// Returns the marked nodes.
  std::vector<std::uint16_t> nodes() const;
  /// Returns why the node is reported as slow; empty if it is not.
  std::string reason(std::uint16_t node) const;

 private:
  /// A time in which a node was marked, with pauses shorter than kQuiet.
  struct Episode {
    std::string reason;
    MonotonicTime since;
    MonotonicTime last_slow;  ///< Last time that most distributors found the node slow.
    MonotonicTime last_update;
    Duration marked{};  ///< Sum of the times with a mark.
    bool is_marked = false;
    bool is_reported = false;
  };
  std::map<std::uint16_t, Episode> episodes_;
};

}  // namespace fjord::fleetcontroller
