#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fjord/common/env.h"
#include "fjord/common/setting.h"
#include "fjord/common/status.h"

namespace fjord::storage {

/// How full the disk of a node is; each stage says what the node still accepts.
enum class SpaceStage : std::uint8_t {
  Normal = 0,
  Warn = 1,  ///< Accepts everything; warns operators.
  /// Accepts only a share of the puts, which falls as the disk fills, and answers BUSY to the other puts.
  Throttle = 2,
  RefuseExternal = 3,  ///< Accepts only removes, and entries from other replicas.
  /// Accepts only removes and, while last_bytes() are left, writes that other members of the bucket have.
  RefuseAll = 4,
};
/// Returns "normal", "warn", "throttle", "refuse external writes" or "refuse all writes".
std::string_view to_string(SpaceStage stage);

/// The thresholds of the stages, as the used percentage of the disk, and how far the use must fall below them for a
/// stage to end.
struct SpaceLimits {
  std::int64_t warn_percent = setting_default("storage.space_warn_percent");
  std::int64_t throttle_percent = setting_default("storage.space_throttle_percent");
  std::int64_t refuse_external_percent = setting_default("storage.space_refuse_external_percent");
  std::int64_t refuse_all_percent = setting_default("storage.space_refuse_all_percent");
  std::int64_t hysteresis_percent = setting_default("storage.space_hysteresis_percent");
  /// RefuseAll begins when fewer bytes than this are free, whatever the percentages say; RefuseExternal begins at twice
  /// this. To leave either stage, half of this more must be free.
  std::int64_t reserve_bytes = 0;

  friend bool operator==(const SpaceLimits&, const SpaceLimits&) = default;
};

/// Decides the stage from the measured space. The stage rises at once, by several stages if necessary. It falls only
/// when the use is below the beginning of the stage by the hysteresis, so that it does not change back and forth. A
/// pure state machine. Threading: none.
class SpaceGuard {
 public:
  /// Applies a measurement. Returns true if the stage has changed.
  bool update(const SpaceInfo& space, const SpaceLimits& limits);

  SpaceStage stage() const { return stage_; }
  /// Returns the percentage of the puts to refuse: 0 below Throttle; while throttling it grows with the use between the
  /// beginning of Throttle and that of RefuseExternal; 100 from there on.
  unsigned refused_percent() const { return refused_percent_; }
  /// Returns how many bytes can be written after the last measurement until puts are refused.
  std::uint64_t bytes_left() const;
  /// Returns how many bytes can be written in RefuseAll by writes that another member of the bucket has. The last half
  /// of the reserve is left for removes and for rewriting slotfiles.
  std::uint64_t last_bytes() const;
  /// Returns the measured space, the setting that it exceeded, and when the stage ends, which is not at the same limit:
  /// "97.3 % used, 1234567 bytes free; storage.space_refuse_all_percent is 97, and this ends below 95 % used".
  std::string explain() const;
  /// Returns the exceeded setting and its value.
  ErrorDetails exceeded() const;

 private:
  /// Returns the number of free bytes at which `stage` begins.
  double free_at(SpaceStage stage) const;

  SpaceStage stage_ = SpaceStage::Normal;
  unsigned refused_percent_ = 0;
  SpaceInfo space_;
  SpaceLimits limits_;
};

}  // namespace fjord::storage
