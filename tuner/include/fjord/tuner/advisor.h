#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fjord/tuner/cost_model.h"
#include "fjord/tuner/expression.h"

namespace fjord::tuner {

/// A different outcome: if `input` were `value`, the advised value would be `advice`.
struct Flip {
  std::string input;
  double value = 0;
  std::int64_t advice = 0;
};

/// The gain of a change: objective after over objective before. The interval follows from the uncertainty of the
/// profile and the error of the model.
struct Effect {
  double gain = 1;
  double low = 1;
  double high = 1;
  /// The constant of the profile that the objective depends on most.
  Constant sensitive_to = Constant::RandomReadS;
  /// p99 under full load. While p99 is over its target, the objective mostly depends on the excess, and `gain` can be
  /// arbitrarily large or small; these two values then describe the change.
  double p99_before_s = 0;
  double p99_after_s = 0;
  /// Whether p99_after_s is within the workload's target.
  bool reaches_target = true;
};

/// A new value for one knob, with its derivation.
struct Advice {
  const Knob* knob = nullptr;
  std::int64_t old_value = 0;
  std::int64_t new_value = 0;  ///< value_of(knob, formula, inputs)
  std::string reason;          ///< One sentence for display.
  std::string source;          ///< "VDS 2007, 6.3.2", "tuning practice: ..."
  std::string formula;
  std::vector<Input> inputs;
  std::vector<std::string> binding;  ///< The inputs on which the value depends; empty if a bound of the knob decides.
  std::vector<Flip> flips;
  /// nullopt if the cost model does not cover the knob.
  std::optional<Effect> effect;
};

/// A computed figure that is not a setting: traffic, pauses, retention.
struct Figure {
  std::string name;
  double value = 0;
  std::string unit;
  std::string source;
  std::string formula;
  std::vector<Input> inputs;
};

/// A knob that keeps its value, with the reason.
struct Kept {
  const Knob* knob = nullptr;
  std::int64_t value = 0;
  std::int64_t considered = 0;
  std::string why;
};

struct Report {
  Settings before;
  Settings after;
  Prediction predicted_before;
  Prediction predicted_after;
  Effect effect;               ///< Effect of all changes together.
  std::vector<Advice> advice;  ///< Largest effect first.
  std::vector<Kept> kept;
  std::vector<Figure> figures;
  std::vector<std::string> warnings;
};

/// Computes a formula for a knob: rounded to a whole number and limited to the bounds of the knob. Values of one MiB
/// and more are rounded down to whole MiB if the knob's unit is bytes.
Result<std::int64_t> value_of(const Knob& knob, const std::string& formula, const std::vector<Input>& inputs);

/// Returns advice for a workload on machines of a profile, starting from its current settings. A pure function; takes
/// some milliseconds.
///
/// Each knob has one formula. The formula of a knob that the cost model covers has an input `tuned`: 1, or another
/// power of two between 1/16 and 16 if the model predicts a better result with it. The value of the formula is taken if
/// the model predicts that it is better than the current one. For knobs outside the model it is taken if it is at least
/// half as large again or a third less. So advice never gives up a setting that is predicted to be good because a
/// formula says otherwise. A knob returns to its old value if the change gains less than 1 % beside the other changes,
/// or if the interval of its effect includes losses.
Report advise(const Workload& workload, const HardwareProfile& profile);

/// Values of the input `tuned` by name of the knob; 1 for knobs that are absent.
using Tunings = std::map<std::string_view, double>;

/// Evaluates the formulas of all knobs under `settings`, whether or not they change a value.
std::vector<Advice> candidates(const Workload& workload, const HardwareProfile& profile, const Settings& settings,
                               const Tunings& tunings);

}  // namespace fjord::tuner
