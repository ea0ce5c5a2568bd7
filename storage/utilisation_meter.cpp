#include "utilisation_meter.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fjord::storage {
namespace {

constexpr double kMemoryUs = 1e6;

}  // namespace

UtilisationMeter::UtilisationMeter(MonotonicTime now, unsigned stripes, std::function<double()> machine_load)
    : stripes_(stripes), machine_load_(std::move(machine_load)), measured_at_(now) {}

void UtilisationMeter::end_period(MonotonicTime now) {
  const auto passed_us = static_cast<double>((now - measured_at_).count());
  if (passed_us <= 0.0) return;
  const std::int64_t busy_us = busy_us_.load(std::memory_order_relaxed);
  double load = static_cast<double>(busy_us - measured_busy_us_) / (passed_us * stripes_);
  if (machine_load_) load = std::max(load, machine_load_());
  load_ += (std::clamp(load, 0.0, 1.0) - load_) * (1.0 - std::exp(-passed_us / kMemoryUs));
  measured_at_ = now;
  measured_busy_us_ = busy_us;
  permille_.store(std::max<std::uint32_t>(1, static_cast<std::uint32_t>(load_ * 1000.0)), std::memory_order_relaxed);
}

}  // namespace fjord::storage
