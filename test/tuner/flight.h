#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "fjord/tuner/pilot.h"
#include "hand_clock.h"

/// A pilot under test with its input.
namespace fjord::tuner {

inline constexpr const char* kVisitorsMax = "storage.visitors_max";
inline constexpr const char* kSplitLimit = "distributor.bucket_bytes_max";

/// Returns the input of a period in which the cluster is busy.
inline PilotInput busy(double p99_s, double mean_s = 0.002) {
  PilotInput input;
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

inline PilotOptions only(std::string_view loop, ControlMode mode) {
  PilotOptions options;
  options.modes[std::string(loop)] = mode;
  return options;
}

/// A pilot, and the settings that its orders have changed.
struct Flight {
  explicit Flight(const PilotOptions& options) : pilot(options, clock) {}

  PilotStep step(PilotInput input) {
    clock.advance(seconds(10));
    for (auto& [name, value] : input.values) {
      if (const auto set = values.find(name); set != values.end()) value = set->second;
    }
    PilotStep step = pilot.step(input);
    for (const PilotNote& note : step.notes) notes.push_back(note);
    if (step.order) {
      orders.push_back(*step.order);
      values[std::string(step.order->knob->name)] = step.order->new_value;
      pilot.made(*step.order, "tune-" + std::to_string(orders.size()));
    }
    return step;
  }
  void steps(int count, const PilotInput& input) {
    for (int i = 0; i < count; ++i) static_cast<void>(step(input));
  }
  bool noted(PilotNote::Kind kind, const std::string& part = "") const {
    return std::any_of(notes.begin(), notes.end(), [&](const PilotNote& note) {
      return note.kind == kind && note.text.find(part) != std::string::npos;
    });
  }

  HandClock clock;
  Pilot pilot;
  std::map<std::string, std::int64_t> values;
  std::vector<PilotOrder> orders;
  std::vector<PilotNote> notes;
};

}  // namespace fjord::tuner
