#include "maintenance_budget.h"

#include <algorithm>
#include <cmath>

namespace fjord::storage {
namespace {

Counter& moved_bytes(MetricRegistry& metrics, const char* direction) {
  return metrics.counter("fjord_storage_maintenance_bytes_total",
                         "Documents moved by merges, or read in search of garbage", {{"direction", direction}});
}

}  // namespace

MaintenanceBudget::MaintenanceBudget(Runtime& runtime)
    : ceiling_(runtime.tunables.declare("maintenance.bytes_per_s")),
      floor_(runtime.tunables.declare("maintenance.bytes_per_s_min")),
      moves_(runtime.tunables.declare("maintenance.moves_bytes_per_s")),
      controller_(limits()),
      rate_(controller_.bytes_per_s()),
      in_(moved_bytes(runtime.metrics, "in")),
      out_(moved_bytes(runtime.metrics, "out")),
      scanned_(moved_bytes(runtime.metrics, "scan")),
      metadata_(runtime.metrics.counter("fjord_storage_merge_metadata_bytes_total",
                                        "Metadata of entries that merges were sent; not part of any budget")),
      throttled_ms_(runtime.metrics.counter("fjord_storage_maintenance_throttled_ms_total",
                                            "Time for which merges waited because of their budget, added up")),
      rate_gauge_(runtime.metrics.gauge("fjord_storage_maintenance_bytes_per_second", "What maintenance may move now")),
      wait_gauge_(runtime.metrics.gauge("fjord_storage_foreground_wait_seconds",
                                        "95 % of the last foreground operations waited no longer for their turn")),
      limit_gauge_(runtime.metrics.gauge("fjord_storage_foreground_wait_limit_seconds",
                                         "Longer waits than this make maintenance slower")) {
  rate_gauge_.set(bytes_per_s());
}

YieldingRate::Limits MaintenanceBudget::limits() const {
  return {.floor = static_cast<std::uint64_t>(floor_.value()), .ceiling = static_cast<std::uint64_t>(ceiling_.value())};
}

Duration MaintenanceBudget::Debt::left(MonotonicTime now) const {
  const std::int64_t paid_us = paid_us_.load(std::memory_order_relaxed);
  return paid_us <= now.us ? Duration(0) : Duration(paid_us - now.us);
}

void MaintenanceBudget::Debt::add(MonotonicTime now, std::uint64_t bytes, double bytes_per_s) {
  const auto cost_us = static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes) * 1e6 / bytes_per_s));
  std::int64_t paid_us = paid_us_.load(std::memory_order_relaxed);
  while (!paid_us_.compare_exchange_weak(paid_us, std::max(paid_us, now.us) + cost_us, std::memory_order_relaxed)) {
  }
}

Duration MaintenanceBudget::wait(MonotonicTime now, Purpose purpose) const {
  Duration left = debt_.left(now);
  if (purpose == Purpose::Move && users_come_.load(std::memory_order_relaxed))
    left = std::max(left, debt_of_moves_.left(now));
  return std::min(left, YieldingRate::kPeriod);
}

void MaintenanceBudget::charge(MonotonicTime now, std::uint64_t bytes, Direction direction, Purpose purpose) {
  (direction == Direction::In ? in_ : direction == Direction::Out ? out_ : scanned_).add(bytes);
  moved_.store(true, std::memory_order_relaxed);
  debt_.add(now, bytes, bytes_per_s());
  if (purpose == Purpose::Move && users_come_.load(std::memory_order_relaxed))
    debt_of_moves_.add(now, bytes, static_cast<double>(moves_.value()));
}

void MaintenanceBudget::note_throttled(Duration waited) {
  const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(waited.count(), 0));
  const std::uint64_t before = throttled_us_.fetch_add(us, std::memory_order_relaxed);
  throttled_ms_.add((before + us) / 1000 - before / 1000);
}

void MaintenanceBudget::end_period(bool users_come) {
  users_come_.store(users_come, std::memory_order_relaxed);
  const std::optional<Duration> wait = waits_.take_quantile();
  controller_.end_period({.wait = wait, .moved = moved_.exchange(false, std::memory_order_relaxed)}, limits());
  rate_.store(controller_.bytes_per_s(), std::memory_order_relaxed);
  rate_gauge_.set(bytes_per_s());
  wait_gauge_.set(std::chrono::duration<double>(wait.value_or(Duration(0))).count());
  limit_gauge_.set(std::chrono::duration<double>(controller_.limit()).count());
}

}  // namespace fjord::storage
