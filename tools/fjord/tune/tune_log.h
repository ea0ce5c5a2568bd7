#pragma once

#include "fjord/library/tuning.h"

namespace fjord::cli {

/// Prints and flushes one line for each event, as text or as JSON. Threading: confined to its owner.
class TuneLog {
 public:
  TuneLog(bool json, bool with_periods) : json_(json), with_periods_(with_periods) {}

  void say(const TuningEvent& event) const;
  /// Prints the figures of a period, if requested.
  void period(int number, const tuner::PeriodFigures& figures, const std::optional<tuner::Objective>& objective) const;
  /// Returns callbacks that print. The log must outlive them.
  TuningCallbacks callbacks() const;

 private:
  bool json_;
  bool with_periods_;
};

}  // namespace fjord::cli
