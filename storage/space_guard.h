#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fjord/common/env.h"
#include "fjord/common/status.h"

namespace fjord::storage {

/// How full the disk of a node is, as what it still takes.
enum class SpaceStage : std::uint8_t {
  Normal = 0,
  Warn = 1,            ///< Everything; operators hear of it.
  Throttle = 2,        ///< A share of the puts, which falls as the disk fills; the others are answered BUSY.
  RefuseExternal = 3,  ///< What comes from other replicas, and removes.
  RefuseAll = 4,       ///< Removes.
};
/// "normal", "warn", "throttle", "refuse external writes", "refuse all writes".
std::string_view to_string(SpaceStage stage);

/// At which part of the disk a stage begins, in percent that are used, and how far it has to fall for the stage to end.
struct SpaceLimits {
  std::int64_t warn_percent = 85;
  std::int64_t throttle_percent = 92;
  std::int64_t refuse_external_percent = 95;
  std::int64_t refuse_all_percent = 98;
  std::int64_t hysteresis_percent = 2;
  /// With less free than this all writes are refused, whatever the percentages say; with less than twice this, external
  /// ones. Leaving either takes half of it more.
  std::int64_t reserve_bytes = 0;

  friend bool operator==(const SpaceLimits&, const SpaceLimits&) = default;
};

/// Decides the stage from what is measured. Rises at once, by several stages if need be; falls when the measured value
/// is below where the stage began by the hysteresis, so that it does not flicker. A pure state machine. Threading:
/// none.
class SpaceGuard {
 public:
  /// Returns true if the stage is another one now.
  bool update(const SpaceInfo& space, const SpaceLimits& limits);

  SpaceStage stage() const { return stage_; }
  /// Percent of the puts that are to be refused while throttling, by how far the disk is on its way to
  /// RefuseExternal; 0 before, 100 from there on.
  unsigned refused_percent() const { return refused_percent_; }
  /// Bytes from what was measured to where puts are refused.
  std::uint64_t bytes_left() const;
  /// "97.3 % used, 1234567 bytes free; storage_options.space_refuse_all_percent is 97": what was measured and what it
  /// ran into.
  std::string explain() const;

 private:
  SpaceStage stage_ = SpaceStage::Normal;
  unsigned refused_percent_ = 0;
  SpaceInfo space_;
  SpaceLimits limits_;
};

}  // namespace fjord::storage
