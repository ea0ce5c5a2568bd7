#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "fjord/tuner/auto_tuner.h"
#include "hand_clock.h"

/// An auto-tuner under test with its input.
namespace fjord::tuner {

inline constexpr const char* kVisitorsMax = "storage.visitors_max";
inline constexpr const char* kSplitLimit = "distributor.bucket_bytes_max";

/// Returns the input of a period in which the cluster is busy.
inline AutoTunerInput busy(double p99_s, double mean_s = 0.002) {
  AutoTunerInput input;
  input.figures.seconds = 10;
  input.figures.reads_per_s = 500;
  input.figures.writes_per_s = 500;
  input.figures.operations = 10'000;
  input.figures.mean_s = mean_s;
  input.figures.p99_s = p99_s;
  input.figures.visitors_queued = 1;
  input.values = {{kVisitorsMax, 8}, {"maintenance.bytes_per_s", 128 << 20}, {kSplitLimit, 64 << 20}};
  input.condition.memory_left_bytes = 1e12;
  return input;
}

inline AutoTunerOptions only(std::string_view loop, ControlMode mode) {
  AutoTunerOptions options;
  options.modes[std::string(loop)] = mode;
  return options;
}

/// An auto-tuner, and the settings that its orders have changed.
struct Flight {
  explicit Flight(const AutoTunerOptions& options) : tuner(options, clock) {}

  AutoTunerStep step(AutoTunerInput input) {
    clock.advance(seconds(10));
    for (auto& [name, value] : input.values) {
      if (const auto set = values.find(name); set != values.end()) value = set->second;
    }
    AutoTunerStep step = tuner.step(input);
    for (const AutoTunerNote& note : step.notes) notes.push_back(note);
    if (step.order) {
      orders.push_back(*step.order);
      values[std::string(step.order->knob->name)] = step.order->new_value;
      tuner.made(*step.order, "tune-" + std::to_string(orders.size()));
    }
    return step;
  }
  void steps(int count, const AutoTunerInput& input) {
    for (int i = 0; i < count; ++i) static_cast<void>(step(input));
  }
  bool noted(AutoTunerNote::Kind kind, const std::string& part = "") const {
    return std::any_of(notes.begin(), notes.end(), [&](const AutoTunerNote& note) {
      return note.kind == kind && note.text.find(part) != std::string::npos;
    });
  }

  HandClock clock;
  AutoTuner tuner;
  std::map<std::string, std::int64_t> values;
  std::vector<SettingChange> orders;
  std::vector<AutoTunerNote> notes;
};

}  // namespace fjord::tuner
