#include "yielding_rate.h"

#include <algorithm>
#include <bit>

namespace fjord::storage {
namespace {

constexpr double kQuantile = 0.95;
/// Rise of the rate in each period, as a part of the ceiling: from zero to the ceiling takes 6.4 s.
constexpr double kRise = 1.0 / 32;
constexpr double kStart = 0.25;  // Rate with which work begins, as a part of the ceiling.
/// Part of the difference between wait and baseline by which the baseline changes in each period.
constexpr double kLearn = 1.0 / 8;
/// While the wait is between this part of the limit and the limit, the rate does not change.
constexpr double kDead = 0.9;
constexpr unsigned kForgetAfter = 25;

double start_rate(const YieldingRate::Limits& limits, double floor) {
  return std::max(floor, kStart * static_cast<double>(limits.ceiling));
}

double floor_of(const YieldingRate::Limits& limits) {
  return static_cast<double>(std::max<std::uint64_t>(std::min(limits.floor, limits.ceiling), 1));
}

}  // namespace

unsigned WaitCounts::step_of(std::uint64_t us) {
  if (us < kSteps) return static_cast<unsigned>(us);
  const auto doublings = static_cast<unsigned>(std::bit_width(us)) - 1;  // The result is at least 2.
  const auto step = static_cast<unsigned>((us >> (doublings - 2)) & (kSteps - 1));
  return std::min((doublings - 1) * kSteps + step, kSteps * kDoublings - 1);
}

/// Returns the exclusive upper bound, in µs, of the waits in a step.
std::uint64_t WaitCounts::end_of(unsigned step) {
  if (step < kSteps) return step + 1;
  const unsigned doublings = step / kSteps + 1;
  return (std::uint64_t{kSteps} + step % kSteps + 1) << (doublings - 2);
}

void WaitCounts::add(Duration wait) {
  const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(wait.count(), 0));
  counts_[step_of(us)].fetch_add(1, std::memory_order_relaxed);
}

std::optional<Duration> WaitCounts::take_quantile() {
  std::array<std::uint32_t, kSteps * kDoublings> counts{};
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i] = counts_[i].exchange(0, std::memory_order_relaxed);
    total += counts[i];
  }
  if (total == 0) return std::nullopt;
  const double wanted = kQuantile * static_cast<double>(total);
  std::uint64_t seen = 0;
  for (unsigned i = 0; i < counts.size(); ++i) {
    seen += counts[i];
    if (static_cast<double>(seen) >= wanted) return Duration(static_cast<std::int64_t>(end_of(i) - 1));
  }
  return std::nullopt;
}

YieldingRate::YieldingRate(const Limits& limits) : rate_(start_rate(limits, floor_of(limits))) {}

void YieldingRate::end_period(const Period& period, const Limits& limits) {
  const double floor = floor_of(limits);
  const auto ceiling = static_cast<double>(std::max<std::uint64_t>(limits.ceiling, 1));
  const double wait = period.wait ? static_cast<double>(period.wait->count()) : 0;
  const auto limit = static_cast<double>(this->limit().count());
  const bool at_floor = rate_ <= floor;
  idle_periods_ = period.moved ? 0 : idle_periods_ + 1;
  if (period.moved && wait > limit) {
    rate_ /= 2;
  } else if (idle_periods_ >= kForgetAfter) {
    rate_ = start_rate(limits, floor);
  } else if (wait <= kDead * limit) {
    rate_ += kRise * ceiling;
  }
  rate_ = std::clamp(rate_, floor, ceiling);
  if (period.wait && (!period.moved || at_floor || wait < baseline_us_)) baseline_us_ += kLearn * (wait - baseline_us_);
  baseline_us_ = std::min(baseline_us_, static_cast<double>(kBaselineMax.count()));
}

}  // namespace fjord::storage
