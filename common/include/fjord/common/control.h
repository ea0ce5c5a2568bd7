#pragma once

#include <cstdint>
#include <string>

/// What controllers of single settings have in common: YieldController, and those of the tuner.
namespace fjord {

enum class ControlMode {
  Off,     ///< The controller makes no decisions.
  Advise,  ///< The controller makes decisions, but the value stays.
  On,      ///< The controller makes decisions and changes the value.
};

/// The decision of a controller at the end of a period.
struct ControlDecision {
  bool is_change = false;
  bool is_applied = false;  ///< The new value is the controller's value; false in mode Advise.
  std::int64_t old_value = 0;
  std::int64_t new_value = 0;
  std::string reason;
};

/// Returns the decision to go from `value` to `wanted`, for `reason`. Sets `value` in mode On.
ControlDecision make_decision(ControlMode mode, std::int64_t& value, std::int64_t wanted, std::string reason);

}  // namespace fjord
