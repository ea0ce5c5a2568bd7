#include "space_guard.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace fjord::storage {

namespace {

constexpr std::array kStages = {SpaceStage::Warn, SpaceStage::Throttle, SpaceStage::RefuseExternal,
                                SpaceStage::RefuseAll};

/// Bounds of the refused percentage while throttling: the node refuses at least some puts and accepts some.
constexpr double kRefusedLeast = 5;
constexpr double kRefusedMost = 95;

constexpr std::string_view kReserveSetting = "storage.space_reserve_bytes";

double percent_used(const SpaceInfo& space) {
  if (space.total_bytes == 0) return 0;
  const std::uint64_t used = space.total_bytes - std::min(space.free_bytes, space.total_bytes);
  return 100.0 * static_cast<double>(used) / static_cast<double>(space.total_bytes);
}

std::int64_t percent_of(SpaceStage stage, const SpaceLimits& limits) {
  switch (stage) {
    case SpaceStage::Normal:
      return 0;
    case SpaceStage::Warn:
      return limits.warn_percent;
    case SpaceStage::Throttle:
      return limits.throttle_percent;
    case SpaceStage::RefuseExternal:
      return limits.refuse_external_percent;
    case SpaceStage::RefuseAll:
      return limits.refuse_all_percent;
  }
  return 0;
}

double reserve_of(SpaceStage stage, const SpaceLimits& limits) {
  const auto reserve = static_cast<double>(limits.reserve_bytes);
  if (stage == SpaceStage::RefuseAll) return reserve;
  return stage == SpaceStage::RefuseExternal ? 2 * reserve : 0;
}

/// Returns the number of free bytes with which a stage ends that began for lack of the reserve.
double reserve_to_end(SpaceStage stage, const SpaceLimits& limits) {
  return reserve_of(stage, limits) + static_cast<double>(limits.reserve_bytes) / 2;
}

/// Returns true if the measured space belongs to `stage` or a later one. `inside`: the stage is in force already, so
/// hysteresis applies.
bool belongs_to(SpaceStage stage, bool inside, const SpaceInfo& space, const SpaceLimits& limits) {
  const double slack = inside ? static_cast<double>(limits.hysteresis_percent) : 0;
  if (percent_used(space) >= static_cast<double>(percent_of(stage, limits)) - slack) return true;
  const double reserve = inside ? reserve_to_end(stage, limits) : reserve_of(stage, limits);
  return reserve_of(stage, limits) > 0 && static_cast<double>(space.free_bytes) < reserve;
}

std::string_view setting_of(SpaceStage stage) {
  switch (stage) {
    case SpaceStage::Normal:
      break;
    case SpaceStage::Warn:
      return "storage.space_warn_percent";
    case SpaceStage::Throttle:
      return "storage.space_throttle_percent";
    case SpaceStage::RefuseExternal:
      return "storage.space_refuse_external_percent";
    case SpaceStage::RefuseAll:
      return "storage.space_refuse_all_percent";
  }
  return "";
}

}  // namespace

std::string_view to_string(SpaceStage stage) {
  switch (stage) {
    case SpaceStage::Normal:
      return "normal";
    case SpaceStage::Warn:
      return "warn";
    case SpaceStage::Throttle:
      return "throttle";
    case SpaceStage::RefuseExternal:
      return "refuse external writes";
    case SpaceStage::RefuseAll:
      return "refuse all writes";
  }
  return "";
}

bool SpaceGuard::update(const SpaceInfo& space, const SpaceLimits& limits) {
  space_ = space;
  limits_ = limits;
  const SpaceStage before = stage_;
  stage_ = SpaceStage::Normal;
  for (const SpaceStage stage : kStages) {
    if (belongs_to(stage, stage <= before, space, limits)) stage_ = stage;
  }
  refused_percent_ = stage_ < SpaceStage::Throttle ? 0 : 100;
  if (stage_ == SpaceStage::Throttle) {
    const auto begin = static_cast<double>(limits.throttle_percent);
    const double length = std::max(1.0, static_cast<double>(limits.refuse_external_percent) - begin);
    const double way = 100 * (percent_used(space) - begin) / length;
    refused_percent_ = static_cast<unsigned>(std::clamp(way, kRefusedLeast, kRefusedMost));
  }
  return stage_ != before;
}

double SpaceGuard::free_at(SpaceStage stage) const {
  const auto percent = static_cast<double>(std::clamp<std::int64_t>(percent_of(stage, limits_), 0, 100));
  const double by_percent = static_cast<double>(space_.total_bytes) * (100 - percent) / 100;
  return std::max(by_percent, reserve_of(stage, limits_));
}

std::uint64_t SpaceGuard::bytes_left() const {
  const double left = static_cast<double>(space_.free_bytes) - free_at(SpaceStage::RefuseExternal);
  return static_cast<std::uint64_t>(std::max(0.0, left));
}

std::uint64_t SpaceGuard::last_bytes() const {
  const double left = static_cast<double>(space_.free_bytes) - free_at(SpaceStage::RefuseAll) / 2;
  return static_cast<std::uint64_t>(std::max(0.0, left));
}

std::string SpaceGuard::explain() const {
  std::string text = fmt::format("{:.1f} % used, {} bytes free", percent_used(space_), space_.free_bytes);
  if (stage_ == SpaceStage::Normal) return text;
  const ErrorDetails details = exceeded();
  const std::string end =
      details.setting == kReserveSetting
          ? fmt::format("with {:.0f} bytes free", reserve_to_end(stage_, limits_))
          : fmt::format("below {} % used", percent_of(stage_, limits_) - limits_.hysteresis_percent);
  return text + fmt::format("; {} is {}, and this ends {}", details.setting, details.limit, end);
}

ErrorDetails SpaceGuard::exceeded() const {
  if (stage_ == SpaceStage::Normal) return {};
  const bool by_percent =
      percent_used(space_) >= static_cast<double>(percent_of(stage_, limits_) - limits_.hysteresis_percent);
  if (!by_percent) {
    return {.limit = std::to_string(limits_.reserve_bytes), .setting = std::string(kReserveSetting)};
  }
  return {.limit = std::to_string(percent_of(stage_, limits_)), .setting = std::string(setting_of(stage_))};
}

}  // namespace fjord::storage
