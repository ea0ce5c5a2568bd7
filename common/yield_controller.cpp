#include "fjord/common/yield_controller.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <string>
#include <utility>

#include "fjord/common/check.h"

namespace fjord {

YieldController::YieldController(const YieldOptions& options, ControlMode mode)
    : options_(options), mode_(mode), value_(std::clamp(options.start, options.floor, options.ceiling)) {
  FJORD_CHECK(options.floor > 0 && options.floor <= options.ceiling && options.unit > 0 && options.target_s > 0);
}

std::int64_t YieldController::after_breach(double ratio) {
  good_periods_ = 0;
  int halvings = 1;
  if (ratio > 1.5) {
    // The load has changed, so the value that was too much before is obsolete. The value is halved once for each
    // doubling of the latency.
    too_much_.reset();
    halvings = std::clamp(static_cast<int>(std::ceil(std::log2(ratio))), 1, 3);
  } else if (!has_just_halved_) {
    too_much_ = value_;
  }
  has_just_halved_ = true;
  return std::max(options_.floor, value_ >> halvings);
}

std::int64_t YieldController::grown() {
  ++good_periods_;
  if (too_much_ && good_periods_ >= options_.retry_periods) {
    too_much_.reset();
    good_periods_ = 0;
  }
  if (!too_much_) return std::min(options_.ceiling, value_ + options_.unit);
  const std::int64_t below = *too_much_ - std::max(options_.unit, *too_much_ / 16);
  if (value_ >= below) return value_;
  const std::int64_t quickly = std::max(options_.unit, (below - value_) / 2);
  return std::min({options_.ceiling, below, value_ + quickly});
}

void YieldController::adopt(std::int64_t value) {
  value_ = value;
  too_much_.reset();
  good_periods_ = 0;
  has_just_halved_ = false;
}

ControlDecision YieldController::step(std::optional<double> p99_s, bool wants_more) {
  const double ratio = p99_s ? *p99_s / options_.target_s : 0;
  std::int64_t wanted = value_;
  std::string reason;
  if (ratio > 1 + options_.dead_band) {
    wanted = after_breach(ratio);
    reason = fmt::format("p99 {:.1f} ms is over the target of {:.1f} ms", 1e3 * *p99_s, 1e3 * options_.target_s);
  } else {
    has_just_halved_ = false;
    // If p99 is far below the target, the load has fallen and the value that was too much before is obsolete.
    if (ratio < 0.5) too_much_.reset();
    if (ratio < 1 - options_.dead_band && wants_more) {
      wanted = grown();
      reason = "the foreground is well and there is more to do";
    }
  }
  return make_decision(mode_, value_, wanted, std::move(reason));
}

}  // namespace fjord
