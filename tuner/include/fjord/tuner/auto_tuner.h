#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/tuner/controllers.h"
#include "fjord/tuner/guard_rails.h"
#include "fjord/tuner/period_figures.h"
#include "fjord/tuner/watched_change.h"

namespace fjord::tuner {

struct EntriesLoopOptions {
  EntriesOptions controller;
  double least_puts = 30;    ///< Minimum number of timed puts of a slotfile in a period; fewer are ignored.
  int agreeing_periods = 3;  ///< Consecutive periods in which a node must find its puts bound by the search.
  int report_periods = 360;  ///< Periods for which a node's report counts.
};

struct CacheLoopOptions {
  CacheOptions controller;  ///< The budget is set in each period.
  /// No change is made if both waits together take less than this share of the time.
  double least_wait_share = 0.01;
  /// After a roll-back, changes in the same direction are blocked for this many periods. The block ends earlier if one
  /// of the waits differs by the factor `change_ratio` from its value `settle_periods` after the roll-back.
  int retry_periods = 1000;
  double change_ratio = 1.5;
  int settle_periods = 5;
  /// The budget follows the measured memory only after a change by more than this share.
  double budget_dead_band = 0.25;
};

struct AutoTunerOptions {
  /// Mode of each loop, by its name (loop_names()). Loops that are not named are off.
  std::map<std::string, ControlMode, std::less<>> modes;
  double target_s = 0.02;  ///< Target for the p99 of reads and writes, in seconds.
  std::int64_t visitors_ceiling = 64;
  std::int64_t maintenance_ceiling = 1LL << 30;
  SplitLimitOptions split;
  EntriesLoopOptions entries;
  CacheLoopOptions cache;
  GuardOptions guards;
  WatchedChangeOptions watch;
  /// Periods for which a loop leaves its knob alone after another party has set it, or after a roll-back.
  int hold_periods = 30;
  /// Minimum number of observed periods before a change, as a basis for comparison.
  int periods_before = 3;
};

/// Observations at the end of a period.
struct AutoTunerInput {
  PeriodFigures figures;
  ClusterCondition condition;
  ClusterSize size;
  /// Values of the knobs in force, by name. A loop does nothing until the value of its knob appears here.
  std::map<std::string, std::int64_t, std::less<>> values;
};

/// An order to change one setting.
struct SettingChange {
  std::string loop;
  const Knob* knob = nullptr;
  std::int64_t old_value = 0;
  std::int64_t new_value = 0;
  std::string reason;
  /// Identifiers of the changes that the order rolls back, oldest first; empty if it is a new change.
  std::vector<std::string> reverts;
};

/// An entry for the log.
struct AutoTunerNote {
  enum class Kind {
    Advice,   ///< The change that a loop in mode Advise would make; not repeated while it stays the same.
    Held,     ///< A wanted change that is not allowed now; not repeated while it stays the same.
    Adopted,  ///< Another party has set a knob.
    Kept,     ///< A change has proved itself.
    Unknown,  ///< The tuner cannot judge whether a change was good.
    Idle,     ///< The value of a loop's knob is unknown; noted once.
  };
  Kind kind = Kind::Advice;
  std::string loop;
  std::string text;
  const Knob* knob = nullptr;  ///< Set if the note is about a knob, with both values.
  std::int64_t old_value = 0;
  std::int64_t new_value = 0;
};
std::string_view to_string(AutoTunerNote::Kind kind);

struct AutoTunerStep {
  std::vector<AutoTunerNote> notes;
  /// At most one order per period. The caller answers with made() or failed().
  std::optional<SettingChange> order;
};

/// Drives the controllers of one cluster: at the end of each period it returns at most one change, watches each change,
/// and returns the roll-back of a bad one. While a change is watched, only the same loop can go on in the same
/// direction. One exception: a loop whose target is missed can lower its knob at once; that change is not watched,
/// because the loop itself sees its effect. Pure, except for the clock of the guard rails.
///
/// Threading: confined to its owner. Lifetime: the clock outlives it.
class AutoTuner {
 public:
  AutoTuner(const AutoTunerOptions& options, const Clock& clock);
  ~AutoTuner();

  static std::vector<std::string_view> loop_names();

  AutoTunerStep step(const AutoTunerInput& input);
  /// Records that the order of the last step was carried out. Also accepts a change by another party that should be
  /// watched; its `loop` is then unknown.
  void made(const SettingChange& order, const std::string& id);
  /// Records that the order was not carried out: the loop goes on from the value in force. A roll-back is ordered again
  /// in the next period, unless another party has changed the knob by then.
  void failed(const SettingChange& order);

  GuardRails& rails() { return rails_; }
  bool is_watching() const { return watch_.is_watching(); }
  const WatchedChange& watch() const { return watch_; }

 private:
  class Loop;
  class YieldLoop;
  class SplitLoop;
  class EntriesLoop;
  class CacheLoop;
  struct Watched {
    std::string loop;
    const Knob* knob = nullptr;
    std::int64_t before = 0;  ///< Value before the first of the changes.
    std::int64_t last = 0;    ///< Value after the last of them.
  };

  Loop* find(std::string_view name);
  void adopt(const AutoTunerInput& input, AutoTunerStep& step);
  void judge(const AutoTunerInput& input, AutoTunerStep& step);
  void decide(Loop& loop, const AutoTunerInput& input, AutoTunerStep& step);
  std::string why_not(const Loop& loop, const ControlDecision& decision, const AutoTunerInput& input) const;
  bool is_urgent(const Loop& loop, const ControlDecision& decision) const;
  bool goes_on(const SettingChange& order) const;
  void note(AutoTunerStep& step, Loop& loop, AutoTunerNote::Kind kind, const ControlDecision& decision,
            std::string text);

  AutoTunerOptions options_;
  GuardRails rails_;
  WatchedChange watch_;
  std::optional<Watched> watched_;
  std::optional<SettingChange> owed_;  ///< A roll-back that failed and is ordered again.
  std::vector<std::unique_ptr<Loop>> loops_;
  std::size_t first_ = 0;  ///< Index of the loop that is asked first; advances each period.
  int periods_ = 0;
};

}  // namespace fjord::tuner
