#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fjord/tuner/period_figures.h"
#include "fjord/tuner/settings.h"

namespace fjord::cli {

/// One event of the log.
struct TuneEvent {
  std::string_view event;  ///< "started", "advice", "changed", "taken back", ...
  std::string loop = {};
  const tuner::Knob* knob = nullptr;
  std::int64_t old_value = 0;
  std::int64_t new_value = 0;
  std::string id = {};
  std::uint64_t config_version = 0;  ///< New version of the configuration; 0: unchanged.
  std::string text = {};
};

/// Prints and flushes one line for each event, as text or as JSON. Threading: confined to its owner.
class TuneLog {
 public:
  TuneLog(bool json, bool with_periods) : json_(json), with_periods_(with_periods) {}

  void say(const TuneEvent& event) const;
  /// Prints the figures of a period, if requested.
  void period(int number, const tuner::PeriodFigures& figures, const std::optional<tuner::Objective>& objective) const;

 private:
  bool json_;
  bool with_periods_;
};

}  // namespace fjord::cli
