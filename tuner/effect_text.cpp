#include "fjord/tuner/effect_text.h"

#include <fmt/format.h>

namespace fjord::tuner {
namespace {

std::string milliseconds_text(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.2g} ms", 1e3 * seconds) : fmt::format("{:.1f} ms", 1e3 * seconds);
}

/// Smallest gain that is shown as a factor, because a large percentage is hard to read.
constexpr double kTimesMin = 10;

}  // namespace

std::string effect_text(const Effect& effect) {
  const std::string p99 =
      fmt::format("p99 {} -> {}", milliseconds_text(effect.p99_before_s), milliseconds_text(effect.p99_after_s));
  if (!effect.reaches_target) return fmt::format("{}, which is over the target", p99);
  if (effect.gain >= kTimesMin) {
    return fmt::format("{:.0f} times as good ({:.0f} to {:.0f}), {}", effect.gain, effect.low, effect.high, p99);
  }
  return fmt::format("{:+.1f} % ({:+.1f} to {:+.1f})", 100 * (effect.gain - 1), 100 * (effect.low - 1),
                     100 * (effect.high - 1));
}

}  // namespace fjord::tuner
