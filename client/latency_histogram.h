#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fjord/common/clock.h"

namespace fjord {

/// A histogram of durations with 32 steps for each doubling, so exact to 3 %: enough for the quantiles of one feed.
class LatencyHistogram {
 public:
  void add(Duration duration) {
    const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(duration.count(), 0));
    const std::size_t index = index_of(us);
    if (counts_.size() <= index) counts_.resize(index + 1);
    ++counts_[index];
    ++total_;
    largest_us_ = std::max(largest_us_, us);
  }

  double max_seconds() const { return static_cast<double>(largest_us_) / 1e6; }
  /// Returns the smallest duration, in seconds, that at least a share `q` of all durations does not exceed; 0 if there
  /// are none.
  double quantile_seconds(double q) const {
    if (total_ == 0) return 0;
    const auto wanted = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(q * static_cast<double>(total_) + 0.5));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen >= wanted) return static_cast<double>(std::min(upper_us(i), largest_us_)) / 1e6;
    }
    return max_seconds();
  }

 private:
  static constexpr std::uint64_t kSteps = 32;

  static std::size_t index_of(std::uint64_t us) {
    if (us < kSteps) return static_cast<std::size_t>(us);
    const auto shift = static_cast<unsigned>(std::bit_width(us)) - 6u;  // shifting by this leaves a value from 32 to 63
    return static_cast<std::size_t>(shift * kSteps + (us >> shift));
  }
  /// Returns the largest duration, in microseconds, with this index.
  static std::uint64_t upper_us(std::size_t index) {
    if (index < kSteps) return index;
    const std::uint64_t shift = index / kSteps - 1;
    return ((index - shift * kSteps + 1) << shift) - 1;
  }

  std::vector<std::uint64_t> counts_;
  std::uint64_t total_ = 0;
  std::uint64_t largest_us_ = 0;
};

}  // namespace fjord
