#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "fjord/tuner/change_watch.h"
#include "fjord/tuner/period_figures.h"

namespace fjord::tuner {

/// The measure by which a change is judged.
enum class Yardstick {
  Total,  ///< Speed of operations and of visits: for changes that should improve the store.
  /// How well operations meet their target: for loops that divide a resource between users and background work.
  Foreground,
};

struct WatchedChangeOptions {
  ChangeWatchOptions watch;
  double scan_share = 0.2;
  /// If demand exceeds the earlier demand by more than this factor, slower answers do not count against the change.
  double demand_growth_max = 1.25;
  /// After this many periods without a comparable one the verdict is Unknown.
  int unknown_periods_max = 48;
};

/// Applies ChangeWatch to the figures of a cluster. Chooses the yardstick and leaves out periods that are not
/// comparable with those before the change: there were too few operations, demand was higher, or visits ran only before
/// or only after. Pure.
///
/// Threading: confined to its owner.
class WatchedChange {
 public:
  enum class Verdict {
    Idle,
    Watching,
    Keep,      ///< The change has proved itself; returned once.
    RollBack,  ///< The objective was worse for long enough; returned once.
    Unknown,   ///< No comparable period before the change, or none for too long after it; returned once.
  };

  explicit WatchedChange(const WatchedChangeOptions& options) : options_(options) {}

  /// Starts to watch a change that was made between the last period and the next. Replaces the change watched so far.
  void changed(std::string id, Yardstick yardstick);
  /// Adds a change of the same kind and direction to the watched one: both are judged as one.
  void extended(std::string id);
  /// Ends the watch without a verdict, because another party has changed the setting.
  void drop();
  /// Takes the objective of an ended period; nullopt if the period says nothing.
  Verdict observe(const std::optional<Objective>& objective);

  bool is_watching() const { return watch_.has_value(); }
  /// Identifiers of the changes being watched, or of the last ones watched, oldest first.
  const std::vector<std::string>& ids() const { return ids_; }
  std::size_t periods_before() const { return before_.size(); }
  /// Score of the last comparable period relative to the score before the change; below 1 is worse.
  double ratio() const { return ratio_; }
  /// Ratios of the latest comparable periods, oldest first, at most `worse_periods` of them, as text.
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
