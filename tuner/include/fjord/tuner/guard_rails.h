#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/status.h"
#include "fjord/tuner/settings.h"

namespace fjord::tuner {

/// A change that somebody wants to make.
struct Change {
  const Knob* knob = nullptr;
  std::int64_t old_value = 0;
  std::int64_t new_value = 0;
  double predicted_gain = 1;  ///< Objective after over before.
  double moved_bytes = 0;     ///< Written anew or sent because of it.
  double memory_bytes = 0;    ///< That a node needs more than now.
};

/// How the cluster is.
struct ClusterCondition {
  bool is_degraded = false;           ///< A node is down or buckets are out of sync.
  bool is_under_maintenance = false;  ///< Somebody has paused the movement of data or takes nodes out.
  double fullest_used_share = 0;      ///< Of the file system of the fullest node.
  double memory_left_bytes = 0;       ///< On the node that has the least.
};

struct GuardOptions {
  double watermark_share = 0.85;
  Duration structural_pause = seconds(6 * 3600);  ///< Between two structural changes.
  double churn_bytes_per_hour = 50e9;
  /// A structural change has to be this far off, or to gain so much and more than so many times what moving costs.
  double structural_ratio_min = 3;
  double structural_gain_min = 1.10;
  double gain_over_move_cost_min = 3;
  /// What moving a byte costs, in objective: the share of an hour's work that a byte a second for an hour would take.
  double work_bytes_per_hour = 500e9;
  Duration gain_counts_for = seconds(24 * 3600);
};

/// What must hold before anything is changed, by a person's order or by a controller.
///
/// Threading: confined to its owner.
class GuardRails {
 public:
  GuardRails(const GuardOptions& options, const Clock& clock) : options_(options), clock_(clock) {}

  /// OK if the change may be made now; else InvalidArgument (never) or Busy (not now), with the reason.
  Status check(const Change& change, const ClusterCondition& condition) const;
  /// Notes a change that was made.
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
