#pragma once

#include <cstdint>
#include <optional>

#include "fjord/common/control.h"

namespace fjord {

struct YieldOptions {
  double target_s = 0.02;  ///< Target for the p99 of users' operations, in seconds.
  std::int64_t floor = 1;
  std::int64_t ceiling = 100;
  std::int64_t start = 25;
  std::int64_t unit = 1;    ///< Increment after a period in which p99 was within its target.
  double dead_band = 0.10;  ///< No change while p99 deviates from the target by less than this share.
  /// Number of good periods after which a value that was too much before is tried again.
  int retry_periods = 30;
};

/// Gives background work as much as the p99 of users' operations allows: adds a unit in each good period and halves the
/// value on a breach, up to three times if p99 is a multiple of its target. After a slight breach the value returns
/// quickly to just below the one that was too much, and stays there. Controls the bandwidth of jobs and merges, and the
/// number of visitors. It holds no clock; the caller chooses the length of a period and applies the value.
///
/// Threading: confined to the owner.
class YieldController {
 public:
  YieldController(const YieldOptions& options, ControlMode mode);

  /// `p99_s`: p99 of the period; nullopt if users sent no operation, which counts as good. `wants_more`: background
  /// work would use more than the present value.
  ControlDecision step(std::optional<double> p99_s, bool wants_more);
  std::int64_t value() const { return value_; }
  void set_mode(ControlMode mode) { mode_ = mode; }
  /// Records that the value was set as decided.
  void took(std::int64_t value) { value_ = value; }
  /// Continues from a value that another party has set. Forgets which values were too much.
  void adopt(std::int64_t value);
  /// Records a value that proved to be too much for another reason than p99.
  void note_too_much(std::int64_t value) { too_much_ = value; }

 private:
  std::int64_t after_breach(double ratio);
  std::int64_t grown();

  YieldOptions options_;
  ControlMode mode_;
  std::int64_t value_;
  std::optional<std::int64_t> too_much_;
  int good_periods_ = 0;
  bool has_just_halved_ = false;
};

}  // namespace fjord
