#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fjord/common/env.h"
#include "fjord/common/setting.h"
#include "fjord/common/status.h"

namespace fjord::storage {

/// How full the disk of a node is, by what the node still accepts.
enum class SpaceStage : std::uint8_t {
  Normal = 0,
  Warn = 1,            ///< Accepts everything; warns operators.
  Throttle = 2,        ///< Accepts a share of the puts that falls as the disk fills; answers BUSY to the others.
  RefuseExternal = 3,  ///< Accepts only removes, and entries from other replicas.
  RefuseAll = 4,       ///< Accepts only removes, and what members lack while last_bytes() are left.
};
/// "normal", "warn", "throttle", "refuse external writes", "refuse all writes".
std::string_view to_string(SpaceStage stage);

/// The thresholds of the stages, in percent of the disk that are used, and how far the use must fall for a stage to
/// end.
struct SpaceLimits {
  std::int64_t warn_percent = setting_default("storage.space_warn_percent");
  std::int64_t throttle_percent = setting_default("storage.space_throttle_percent");
  std::int64_t refuse_external_percent = setting_default("storage.space_refuse_external_percent");
  std::int64_t refuse_all_percent = setting_default("storage.space_refuse_all_percent");
  std::int64_t hysteresis_percent = setting_default("storage.space_hysteresis_percent");
  /// With less than this free RefuseAll begins, whatever the percentages say; with less than twice this,
  /// RefuseExternal. To leave either stage, half of this more must be free.
  std::int64_t reserve_bytes = 0;

  friend bool operator==(const SpaceLimits&, const SpaceLimits&) = default;
};

/// Decides the stage from the measured space. The stage rises at once, by several stages if necessary. It falls only
/// when the use is below the beginning of the stage by the hysteresis, so that it does not flicker. A pure state
/// machine. Threading: none.
class SpaceGuard {
 public:
  /// Returns true if the stage has changed.
  bool update(const SpaceInfo& space, const SpaceLimits& limits);

  SpaceStage stage() const { return stage_; }
  /// Percent of the puts to refuse: 0 below Throttle; while throttling it grows with the use between the beginning of
  /// Throttle and that of RefuseExternal; 100 from there on.
  unsigned refused_percent() const { return refused_percent_; }
  /// Bytes that can still be written, from the last measurement, until puts are refused.
  std::uint64_t bytes_left() const;
  /// Bytes that writes which another member of the bucket has may still take in RefuseAll. The last half of what is
  /// kept free is left for removes and for rewriting slotfiles.
  std::uint64_t last_bytes() const;
  /// Returns the measured space and the setting that it exceeded, for example "97.3 % used, 1234567 bytes free;
  /// storage_options.space_refuse_all_percent is 97".
  std::string explain() const;
  /// Returns this setting and its value.
  ErrorDetails exceeded() const;

 private:
  /// Bytes that are free where `stage` begins.
  double free_at(SpaceStage stage) const;

  SpaceStage stage_ = SpaceStage::Normal;
  unsigned refused_percent_ = 0;
  SpaceInfo space_;
  SpaceLimits limits_;
};

}  // namespace fjord::storage
