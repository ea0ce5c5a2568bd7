#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/status.h"
#include "fjord/tuner/settings.h"

namespace fjord::tuner {

/// A proposed change of a setting.
struct Change {
  const Knob* knob = nullptr;
  std::int64_t old_value = 0;
  std::int64_t new_value = 0;
  double predicted_gain = 1;  ///< Predicted objective after the change over the objective before it.
  double moved_bytes = 0;     ///< Bytes that are rewritten or sent because of the change.
  double memory_bytes = 0;    ///< Additional memory that a node needs.
};

/// The state of the cluster that decides whether a change is allowed.
struct ClusterCondition {
  bool is_degraded = false;           ///< A node is down or buckets are out of sync.
  bool is_under_maintenance = false;  ///< An operator has paused the movement of data or is taking nodes out.
  double fullest_used_share = 0;      ///< Used share of the file system of the fullest node.
  double memory_left_bytes = 0;       ///< Free memory of the node that has the least.
};

struct GuardOptions {
  double watermark_share = 0.85;
  Duration structural_pause = seconds(6 * 3600);  ///< Minimum time between two structural changes.
  double churn_bytes_per_hour = 50e9;
  /// A structural change is allowed if old and new value differ by a factor of `structural_ratio_min`, or if its gain
  /// exceeds both `structural_gain_min` and `gain_over_move_cost_min` times the cost of moving.
  double structural_ratio_min = 3;
  double structural_gain_min = 1.10;
  double gain_over_move_cost_min = 3;
  /// Bytes whose movement costs as much as one hour of the cluster's work.
  double work_bytes_per_hour = 500e9;
  Duration gain_counts_for = seconds(24 * 3600);
};

/// Checks the conditions under which a setting may change, whether an operator or a controller wants it.
///
/// Threading: confined to its owner.
class GuardRails {
 public:
  GuardRails(const GuardOptions& options, const Clock& clock) : options_(options), clock_(clock) {}

  /// Returns OK if the change is allowed now. Errors, with the reason: InvalidArgument if it will never be allowed,
  /// Busy if it is not allowed now.
  Status check(const Change& change, const ClusterCondition& condition) const;
  /// Records that a change was made.
  void made(const Change& change);

 private:
  Status check_structural(const Change& change) const;

  GuardOptions options_;
  const Clock& clock_;
  struct Made {
    MonotonicTime at;
    bool is_structural;
    double bytes;
  };
  std::deque<Made> made_;
};

}  // namespace fjord::tuner
