#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "fjord/tuner/change_watch.h"
#include "fjord/tuner/period_figures.h"

namespace fjord::tuner {

/// By what a change is judged.
enum class Yardstick {
  Total,       ///< Speed of operations and of visits: for changes that are to make the store better.
  Foreground,  ///< How operations are against their target: for loops that divide what there is.
};

struct WatchedChangeOptions {
  ChangeWatchOptions watch;
  double scan_share = 0.2;
  /// With so much more asked than before, slower answers say nothing about a change.
  double demand_growth_max = 1.25;
  /// So many periods without anything to compare, and nobody knows.
  int unknown_periods_max = 48;
};

/// ChangeWatch on figures of a cluster: chooses the yardstick, and leaves out periods that cannot be compared with
/// those before the change: nothing was asked, more was asked, or visits ran at one time and not at the other. Pure.
///
/// Threading: confined to its owner.
class WatchedChange {
 public:
  enum class Verdict {
    Idle,
    Watching,
    Keep,      ///< Proved itself; said once.
    RollBack,  ///< Worse for long enough; said once.
    Unknown,   ///< Nothing could be compared, before it or for too long after; said once.
  };

  explicit WatchedChange(const WatchedChangeOptions& options) : options_(options) {}

  /// A change was made between the last period and the next. Whatever was watched is watched no more.
  void changed(std::string id, Yardstick yardstick);
  /// Another one of the same kind and direction, while the first is watched: both are judged as one.
  void extended(std::string id);
  /// Somebody else has taken the matter over.
  void drop();
  /// A period has ended. Nothing: it said nothing.
  Verdict observe(const std::optional<Objective>& objective);

  bool is_watching() const { return watch_.has_value(); }
  /// Of what is watched, or was last; the first is the oldest.
  const std::vector<std::string>& ids() const { return ids_; }
  std::size_t periods_before() const { return before_.size(); }
  /// "0.61 of what it was": of the last period that could be compared.
  double ratio() const { return ratio_; }
  /// The ratios of the last periods that were worse, oldest first.
  std::string ratios_text() const;

 private:
  double score(const Objective& objective) const;

  WatchedChangeOptions options_;
  std::deque<Objective> before_;
  std::optional<ChangeWatch> watch_;
  Yardstick yardstick_ = Yardstick::Total;
  std::vector<std::string> ids_;
  bool with_scans_ = false;
  double baseline_demand_ = 0;
  double ratio_ = 1;
  std::deque<double> ratios_;
  int unknown_periods_ = 0;
};

}  // namespace fjord::tuner
