#include "fjord/common/control.h"

#include <utility>

namespace fjord {

ControlDecision make_decision(ControlMode mode, std::int64_t& value, std::int64_t wanted, std::string reason) {
  ControlDecision decision;
  decision.old_value = decision.new_value = value;
  if (mode == ControlMode::Off || wanted == value) return decision;
  decision.is_change = true;
  decision.new_value = wanted;
  decision.reason = std::move(reason);
  if (mode == ControlMode::On) {
    decision.is_applied = true;
    value = wanted;
  }
  return decision;
}

}  // namespace fjord
