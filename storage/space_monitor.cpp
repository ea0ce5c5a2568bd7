#include "space_monitor.h"

#include <algorithm>
#include <utility>

#include "fjord/common/log.h"

namespace fjord::storage {

namespace {

constexpr Duration kInterval = std::chrono::seconds(1);
/// Bytes on disk that one byte of a put may take before the next measurement: in the journal, in a slotfile, and in a
/// rewrite.
constexpr std::uint64_t kBytesOfByte = 4;
/// The budget is never below the reserve divided by this, so that the limit is really reached and not only approached.
constexpr std::int64_t kPartOfReserve = 16;

}  // namespace

Status SpaceState::check_external(const std::string& node) const {
  if (stage < SpaceStage::RefuseExternal) return Status::ok();
  return Status(StatusCode::NoSpace, node + " takes no writes but removes: " + reason,
                {node, exceeded.limit, exceeded.setting});
}

Status SpaceState::check_merge(const std::string& node) const {
  if (stage < SpaceStage::RefuseAll) return Status::ok();
  return Status(StatusCode::NoSpace, node + " takes no more from other replicas: " + reason,
                {node, exceeded.limit, exceeded.setting});
}

SpaceMonitor::SpaceMonitor(std::string directory, std::string node, Runtime& runtime,
                           std::function<void(const SpaceState&)> tell)
    : directory_(std::move(directory)),
      node_(std::move(node)),
      env_(runtime.env),
      tell_(std::move(tell)),
      warn_percent_(runtime.tunables.declare("storage.space_warn_percent")),
      throttle_percent_(runtime.tunables.declare("storage.space_throttle_percent")),
      refuse_external_percent_(runtime.tunables.declare("storage.space_refuse_external_percent")),
      refuse_all_percent_(runtime.tunables.declare("storage.space_refuse_all_percent")),
      hysteresis_percent_(runtime.tunables.declare("storage.space_hysteresis_percent")),
      reserve_bytes_(runtime.tunables.declare("storage.space_reserve_bytes")),
      stage_(runtime.metrics.gauge("fjord_storage_space_stage",
                                   "0 normal, 1 warn, 2 throttle, 3 refuse external writes, 4 refuse all writes")),
      used_bytes_(runtime.metrics.gauge("fjord_storage_space_used_bytes", "Used on the file system of the node")),
      free_bytes_(runtime.metrics.gauge("fjord_storage_space_free_bytes", "Free on the file system of the node")),
      failures_(
          runtime.metrics.counter("fjord_storage_space_failures_total", "Measurements of the space that failed")) {
  if (directory_.empty()) return;
  executor_ = runtime.scheduler.make_executor("space");
  executor_->post([this] { measure(); });
}

SpaceLimits SpaceMonitor::limits() const {
  return {.warn_percent = warn_percent_.value(),
          .throttle_percent = throttle_percent_.value(),
          .refuse_external_percent = refuse_external_percent_.value(),
          .refuse_all_percent = refuse_all_percent_.value(),
          .hysteresis_percent = hysteresis_percent_.value(),
          .reserve_bytes = reserve_bytes_.value()};
}

void SpaceMonitor::measure() {
  executor_->post_after(kInterval, [this] { measure(); });
  const Result<SpaceInfo> space = env_.space(directory_);
  if (!space) {
    failures_.add();
    log::warning("storage", "{}: the space of {} is unknown: {}", node_, directory_, space.error().to_string());
    return;
  }
  const SpaceStage before = guard_.stage();
  const bool changed = guard_.update(*space, limits());
  stage_.set(static_cast<double>(guard_.stage()));
  used_bytes_.set(static_cast<double>(space->total_bytes - space->free_bytes));
  free_bytes_.set(static_cast<double>(space->free_bytes));
  if (changed) log_stage(before);
  SpaceState state{.stage = guard_.stage(),
                   .refused_percent = guard_.refused_percent(),
                   .reason = guard_.explain(),
                   .exceeded = guard_.exceeded()};
  if (space->total_bytes > 0) {
    state.budget_bytes = std::max(guard_.bytes_left() / kBytesOfByte,
                                  static_cast<std::uint64_t>(reserve_bytes_.value() / kPartOfReserve));
    state.last_bytes = guard_.last_bytes() / kBytesOfByte;
  }
  tell_(state);
}

void SpaceMonitor::log_stage(SpaceStage before) const {
  if (guard_.stage() < before) {
    log::info("storage", "{}: space: from {} to {}: {}", node_, to_string(before), to_string(guard_.stage()),
              guard_.explain());
  } else if (guard_.stage() < SpaceStage::RefuseExternal) {
    log::warning("storage", "{}: space: {}: {}", node_, to_string(guard_.stage()), guard_.explain());
  } else {
    log::error("storage", "{}: space: {}: {}", node_, to_string(guard_.stage()), guard_.explain());
  }
}

}  // namespace fjord::storage
