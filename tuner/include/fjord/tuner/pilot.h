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
  double least_puts = 30;    ///< Fewer in a period say nothing of a slotfile's size.
  int agreeing_periods = 3;  ///< So often in a row a node has to find its puts bound.
  int report_periods = 360;  ///< For so long after that a node counts.
};

struct CacheLoopOptions {
  CacheOptions controller;  ///< The budget comes with each period.
  /// Below that share of the time in waits for either nothing is worth a change.
  double least_wait_share = 0.01;
  /// A direction that was taken back is not tried again for so many periods, unless a wait has changed by this factor
  /// since some periods after that.
  int retry_periods = 1000;
  double change_ratio = 1.5;
  int settle_periods = 5;
  double budget_dead_band = 0.25;  ///< The budget is what it was until it has changed by so much.
};

struct PilotOptions {
  /// By the name of the loop, see loop_names(). What is not named is off.
  std::map<std::string, ControlMode, std::less<>> modes;
  double target_s = 0.02;  ///< p99 of reads and writes.
  std::int64_t visitors_ceiling = 64;
  std::int64_t maintenance_ceiling = 1LL << 30;
  SplitLimitOptions split;
  EntriesLoopOptions entries;
  CacheLoopOptions cache;
  GuardOptions guards;
  WatchedChangeOptions watch;
  /// For so many periods a loop leaves its knob alone after somebody else has set it, or after it was taken back.
  int hold_periods = 30;
  /// So many periods are needed before a change, so that there is something to compare with.
  int periods_before = 3;
};

/// What is known at the end of a period.
struct PilotInput {
  PeriodFigures figures;
  ClusterCondition condition;
  ClusterSize size;
  /// What the knobs are set to now, by name. A knob that is not there is not turned.
  std::map<std::string, std::int64_t, std::less<>> values;
};

/// One setting that is to be changed.
struct PilotOrder {
  std::string loop;
  const Knob* knob = nullptr;
  std::int64_t old_value = 0;
  std::int64_t new_value = 0;
  std::string reason;
  /// Takes back these changes, oldest first; empty: something new.
  std::vector<std::string> reverts;
};

/// Something to be written down.
struct PilotNote {
  enum class Kind {
    Advice,   ///< What a loop in mode advise would do; once, until it says something else.
    Held,     ///< A loop may not do now what it wants to do; once.
    Adopted,  ///< Somebody else has set a knob.
    Kept,     ///< A change has proved itself.
    Unknown,  ///< Nobody can say whether a change was good.
    Idle,     ///< A loop has nothing to turn; once.
  };
  Kind kind = Kind::Advice;
  std::string loop;
  std::string text;
  const Knob* knob = nullptr;  ///< Advice, Held: with both values.
  std::int64_t old_value = 0;
  std::int64_t new_value = 0;
};
std::string_view to_string(PilotNote::Kind kind);

struct PilotStep {
  std::vector<PilotNote> notes;
  /// At most one a period. To be answered by made(), or by failed().
  std::optional<PilotOrder> order;
};

/// Drives the controllers of one cluster: at the end of each period it says what is to be changed, watches each change,
/// and says when one is to be taken back. One change at a time: while one is watched only the same loop may go on in
/// the same direction, and a loop whose target is broken may lower its knob, which is not watched: whether it helps,
/// the loop sees itself. Pure but for the clock of the guard rails.
///
/// Threading: confined to its owner. Lifetime: the clock outlives it.
class Pilot {
 public:
  Pilot(const PilotOptions& options, const Clock& clock);
  ~Pilot();

  static std::vector<std::string_view> loop_names();

  PilotStep step(const PilotInput& input);
  /// The order of the last step was carried out. Also for a change that somebody else made and that is to be watched;
  /// its loop is then unknown.
  void made(const PilotOrder& order, const std::string& id);
  /// It was not: the loop goes on from the value that is there. A roll-back is ordered again in the next period, unless
  /// somebody else has set the knob then.
  void failed(const PilotOrder& order);

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
    std::int64_t before = 0;  ///< What it was before the first of the changes.
    std::int64_t last = 0;
  };

  Loop* find(std::string_view name);
  void adopt(const PilotInput& input, PilotStep& step);
  void judge(const PilotInput& input, PilotStep& step);
  void decide(Loop& loop, const PilotInput& input, PilotStep& step);
  std::string why_not(const Loop& loop, const Decision& decision, const PilotInput& input) const;
  bool is_urgent(const Loop& loop, const Decision& decision) const;
  bool goes_on(const PilotOrder& order) const;
  void note(PilotStep& step, Loop& loop, PilotNote::Kind kind, const Decision& decision, std::string text);

  PilotOptions options_;
  GuardRails rails_;
  WatchedChange watch_;
  std::optional<Watched> watched_;
  std::optional<PilotOrder> owed_;  ///< A roll-back that failed.
  std::vector<std::unique_ptr<Loop>> loops_;
  std::size_t first_ = 0;  ///< Who may speak first; goes round.
  int periods_ = 0;
};

}  // namespace fjord::tuner
