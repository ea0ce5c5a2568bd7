#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fjord/tuner/cost_model.h"
#include "fjord/tuner/expression.h"

namespace fjord::tuner {

/// If `input` were `value`, the advice would be `advice`.
struct Flip {
  std::string input;
  double value = 0;
  std::int64_t advice = 0;
};

/// The gain of a change: objective after over objective before. The interval is what the uncertainty of the profile and
/// the error of the model make of it.
struct Effect {
  double gain = 1;
  double low = 1;
  double high = 1;
  /// The constant of the profile that the objective depends on most.
  Constant sensitive_to = Constant::RandomReadS;
  /// p99 under full load. While it is over its target the objective is mostly a matter of how far, so that `gain` can
  /// be any number; these say then what the change does.
  double p99_before_s = 0;
  double p99_after_s = 0;
  /// p99_after_s is within the workload's target.
  bool reaches_target = true;
};

/// A new value for one knob, and everything that led to it.
struct Advice {
  const Knob* knob = nullptr;
  std::int64_t old_value = 0;
  std::int64_t new_value = 0;  ///< value_of(knob, formula, inputs)
  std::string reason;          ///< A sentence.
  std::string source;          ///< "seed 6.3.2", "tuning practice: ..."
  std::string formula;
  std::vector<Input> inputs;
  std::vector<std::string> binding;  ///< The inputs that decide; empty: a bound of the knob does.
  std::vector<Flip> flips;
  /// Nothing if the cost model does not know the knob.
  std::optional<Effect> effect;
};

/// Something that is computed and not turned: traffic, pauses, retention.
struct Figure {
  std::string name;
  double value = 0;
  std::string unit;
  std::string source;
  std::string formula;
  std::vector<Input> inputs;
};

/// A knob that stays as it is, and why.
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
  Effect effect;               ///< Of all changes together.
  std::vector<Advice> advice;  ///< Largest effect first.
  std::vector<Kept> kept;
  std::vector<Figure> figures;
  std::vector<std::string> warnings;
};

/// The value of a formula for a knob: rounded to a whole number, within the bounds of the knob. Bytes of a MiB and more
/// are whole MiB.
Result<std::int64_t> value_of(const Knob& knob, const std::string& formula, const std::vector<Input>& inputs);

/// Advice for a workload on machines of a profile, from its current settings. A pure function; some milliseconds.
///
/// Each knob has one formula. Those that the cost model knows have an input `tuned`, which is 1 unless the model finds
/// another power of two between 1/16 and 16 better. What the formula says is taken if the model finds it better than
/// what is set (or, for knobs that it does not know, if it is at least half as large again or a third less), so advice
/// never trades what is predicted to be good for what a formula likes. It is put back if it gains less than 1 % beside
/// the other changes, or if its interval has losses in it.
Report advise(const Workload& workload, const HardwareProfile& profile);

/// The input `tuned` of the formulas that have it, by the name of the knob; 1 where nothing is said.
using Tunings = std::map<std::string_view, double>;

/// The formulas of all knobs under `settings`, whether they change anything or not.
std::vector<Advice> candidates(const Workload& workload, const HardwareProfile& profile, const Settings& settings,
                               const Tunings& tunings);

}  // namespace fjord::tuner
