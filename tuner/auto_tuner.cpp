#include "fjord/tuner/auto_tuner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <fmt/format.h>

#include "fjord/common/check.h"
#include "fjord/common/yield_controller.h"

namespace fjord::tuner {
namespace {

constexpr std::string_view kVisitors = "visitors";
constexpr std::string_view kMaintenance = "maintenance";
constexpr std::string_view kSplit = "split";
constexpr std::string_view kEntries = "entries";
constexpr std::string_view kCache = "cache";

}  // namespace

/// A controller, its knob and the state that the auto-tuner keeps for it. The controllers run in mode Advise: their
/// value changes when the change was carried out.
class AutoTuner::Loop {
 public:
  Loop(std::string_view called, const Knob& turned, ControlMode chosen) : name(called), knob(turned), mode(chosen) {}
  virtual ~Loop() = default;

  virtual ControlDecision step(const AutoTunerInput& input) = 0;
  /// Takes the value in force, set by this loop (`is_own`) or by another party.
  virtual void set(std::int64_t new_value, bool is_own) = 0;
  virtual void was_taken_back(std::int64_t /*value*/) {}
  virtual Yardstick yardstick() const { return Yardstick::Total; }
  /// The change as the guard rails see it.
  virtual Change change_of(const ControlDecision& decision, const AutoTunerInput& /*input*/) const {
    return {&knob, decision.old_value, decision.new_value, 1, 0, 0};
  }
  /// Returns whether a lower value of the knob protects users' operations.
  virtual bool lowers_in_need() const { return false; }

  const std::string_view name;
  const Knob& knob;
  const ControlMode mode;
  std::optional<std::int64_t> value;
  int hold = 0;
  std::string said;  ///< The last note, kept so that it is not repeated.
};

/// Controls storage.visitors_max or maintenance.bytes_per_s.
class AutoTuner::YieldLoop final : public Loop {
 public:
  using WantsMore = bool (*)(const PeriodFigures&);
  YieldLoop(std::string_view called, const Knob& turned, ControlMode chosen, const YieldOptions& options,
            WantsMore wants_more)
      : Loop(called, turned, chosen), options_(options), wants_more_(wants_more) {}

  ControlDecision step(const AutoTunerInput& input) override {
    follow_floor(input);
    return controller_->step(input.figures.p99_s, wants_more_(input.figures));
  }
  void set(std::int64_t new_value, bool is_own) override {
    value = new_value;
    if (!controller_) make(new_value);
    if (is_own) {
      controller_->took(new_value);
    } else {
      controller_->adopt(new_value);
    }
  }
  void was_taken_back(std::int64_t too_much) override {
    if (value && too_much > *value) controller_->note_too_much(too_much);
  }
  Yardstick yardstick() const override { return Yardstick::Foreground; }
  bool lowers_in_need() const override { return true; }

 private:
  void make(std::int64_t start) {
    options_.start = start;
    controller_.emplace(options_, ControlMode::Advise);
    controller_->took(start);  // even if the value is outside the loop's bounds
  }

  /// Takes the floor from maintenance.bytes_per_s_min: a maximum below that setting is refused.
  void follow_floor(const AutoTunerInput& input) {
    if (name != kMaintenance) return;
    const auto floor = input.values.find("maintenance.bytes_per_s_min");
    if (floor == input.values.end() || floor->second == options_.floor || floor->second > options_.ceiling) return;
    options_.floor = std::max<std::int64_t>(1, floor->second);
    make(*value);
  }

  YieldOptions options_;
  WantsMore wants_more_;
  std::optional<YieldController> controller_;
};

class AutoTuner::SplitLoop final : public Loop {
 public:
  SplitLoop(const Knob& turned, ControlMode chosen, const SplitLimitOptions& options, GuardRails& rails)
      : Loop(kSplit, turned, chosen), controller_(options, ControlMode::Advise, 0, rails) {}

  ControlDecision step(const AutoTunerInput& input) override {
    if (input.size.bytes <= 0) return {};
    return controller_.step(input.size, input.condition);
  }
  void set(std::int64_t new_value, bool /*is_own*/) override {
    value = new_value;
    controller_.took(new_value);
  }

 private:
  SplitLimitController controller_;
};

/// Controls storage.entries_max [VDS 2007, 5.3.3]. A node reports if for several periods the search for entries has
/// taken more than its allowed share of the puts' time. It reports the number of entries at which the search, whose
/// time grows with them, would take only that share. So the limit is reached in few changes; each change splits many
/// files.
class AutoTuner::EntriesLoop final : public Loop {
 public:
  EntriesLoop(const Knob& turned, ControlMode chosen, const EntriesLoopOptions& options)
      : Loop(kEntries, turned, chosen), options_(options), controller_(options.controller, ControlMode::Advise) {}

  ControlDecision step(const AutoTunerInput& input) override {
    const std::uint64_t nodes = std::max<std::uint64_t>(1, input.figures.puts.size());
    controller_.set_quorum(std::min(options_.controller.quorum, nodes));
    ControlDecision decision;
    for (const NodePuts& node : input.figures.puts) {
      Found& found = found_[node.node];
      if (!note(node, found)) continue;
      decision = controller_.report(node.node, found.entries, found.share);
      decision.reason += fmt::format(", the last one for {:.0f} % of their time", 100 * found.share);
    }
    for (auto& [node, found] : found_) {
      if (++found.silent == options_.report_periods) controller_.forget(node);
    }
    return decision;
  }
  void set(std::int64_t new_value, bool is_own) override {
    value = new_value;
    controller_.took(new_value);
    if (is_own) return;
    // Another party has set the value, for instance after it replaced slow nodes: earlier reports no longer hold.
    found_.clear();
    static_cast<void>(controller_.reset());
    controller_.set_floor(options_.controller.floor);
  }
  void was_taken_back(std::int64_t too_few) override {
    if (value && too_few < *value) controller_.set_floor(std::min(*value, 2 * too_few));
  }
  /// Predicts the gain from the search time that puts would save, relative to the time of all operations.
  Change change_of(const ControlDecision& decision, const AutoTunerInput& input) const override {
    double saved = 0;
    double puts = 0;
    for (const NodePuts& node : input.figures.puts) {
      for (const PutCost& cost : node.costs) {
        puts += cost.puts;
        saved += cost.puts * cost.search_s *
                 std::max(0.0, 1 - static_cast<double>(decision.new_value) / std::max(1.0, cost.entries));
      }
    }
    Change change{&knob, decision.old_value, decision.new_value, 1, 0, 0};
    const PeriodFigures& figures = input.figures;
    if (puts <= 0 || !figures.mean_s || figures.operations_per_s() <= 0) return change;
    const double mean = *figures.mean_s;
    const double less = saved / puts * figures.writes_per_s / figures.operations_per_s();
    change.predicted_gain = mean / (mean - std::min(less, 0.9 * mean));
    return change;
  }

 private:
  struct Found {
    std::deque<std::int64_t> recent;  ///< Results of the latest periods, without a gap, in which the puts were bound.
    int silent = 0;                   ///< Periods since the node's last report.
    std::int64_t entries = 0;         ///< The largest element of `recent`.
    double share = 0;
  };

  /// Takes a node's observation of one period. Returns whether it should be reported.
  bool note(const NodePuts& node, Found& found) const {
    const PutCost* bound = nullptr;
    bool says_something = false;
    for (const PutCost& cost : node.costs) {
      if (cost.puts < options_.least_puts || cost.put_s <= 0) continue;
      says_something = true;
      if (cost.search_s < options_.controller.cpu_share_min * cost.put_s) continue;
      if (bound == nullptr || cost.entries < bound->entries) bound = &cost;
    }
    if (!says_something) return false;
    if (bound == nullptr) {
      found.recent.clear();
      return false;
    }
    const double share = std::min(bound->search_s / bound->put_s, 0.999);
    const double allowed = std::min(options_.controller.cpu_share_min, 0.99);
    // Solves search / (search + rest) = `allowed`, where search is proportional to the entries.
    const double entries = bound->entries * (allowed / (1 - allowed)) * ((1 - share) / share);
    const auto rounded = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max(1.0, entries))));
    found.recent.push_back(rounded);
    const auto agreeing = static_cast<std::size_t>(options_.agreeing_periods);
    while (found.recent.size() > agreeing) found.recent.pop_front();
    found.entries = *std::max_element(found.recent.begin(), found.recent.end());
    found.share = share;
    if (found.recent.size() < agreeing) return false;
    found.silent = 0;
    return true;
  }

  EntriesLoopOptions options_;
  EntriesController controller_;
  std::map<std::uint64_t, Found> found_;
};

/// Controls storage.index_bytes_max: memory for indexes against memory for the page cache.
class AutoTuner::CacheLoop final : public Loop {
 public:
  CacheLoop(const Knob& turned, ControlMode chosen, const CacheLoopOptions& options)
      : Loop(kCache, turned, chosen), options_(options), controller_(options.controller, ControlMode::Advise, 0) {}

  ControlDecision step(const AutoTunerInput& input) override {
    const PeriodFigures& figures = input.figures;
    if (figures.cache_bytes <= 0) return {};
    if (std::abs(figures.cache_bytes - budget_) > options_.budget_dead_band * budget_) budget_ = figures.cache_bytes;
    controller_.set_budget(budget_);
    if (figures.index_wait_share + figures.document_wait_share < options_.least_wait_share) return {};
    ControlDecision decision =
        controller_.step({figures.index_wait_share, figures.document_wait_share, figures.index_bytes_all});
    seen_ = {figures.index_wait_share, figures.document_wait_share};
    if (blocked_ &&
        (++blocked_->periods > options_.retry_periods || (blocked_->seen && has_changed(*blocked_->seen)))) {
      blocked_.reset();
    }
    // The waits of a period some time after the roll-back are the basis with which later waits are compared.
    if (blocked_ && blocked_->periods == options_.settle_periods) blocked_->seen = seen_;
    if (!decision.is_change) return decision;
    if (blocked_ && blocked_->is_up == (decision.new_value > decision.old_value)) return {};
    constexpr std::int64_t kMiB = 1 << 20;
    decision.new_value = std::max(kMiB, decision.new_value / kMiB * kMiB);
    decision.is_change = decision.new_value != decision.old_value;
    decision.reason += fmt::format(": {:.1f} % and {:.1f} % of the time",
                                   100 * std::max(figures.index_wait_share, figures.document_wait_share),
                                   100 * std::min(figures.index_wait_share, figures.document_wait_share));
    return decision;
  }
  void set(std::int64_t new_value, bool is_own) override {
    value = new_value;
    controller_.took(new_value);
    if (!is_own) blocked_.reset();
  }
  /// Blocks the direction after a roll-back: the kind of miss that costs more in total may still gain less from one
  /// more byte.
  void was_taken_back(std::int64_t tried) override {
    if (value) blocked_ = Blocked{tried > *value, std::nullopt, 0};
  }
  Change change_of(const ControlDecision& decision, const AutoTunerInput& /*input*/) const override {
    const double more = static_cast<double>(decision.new_value - decision.old_value);
    return {&knob, decision.old_value, decision.new_value, 1, 0, std::max(0.0, more)};
  }

 private:
  struct Waits {
    double index = 0;
    double document = 0;
  };
  struct Blocked {
    bool is_up = false;
    std::optional<Waits> seen;
    int periods = 0;
  };
  bool has_changed(const Waits& then) const {
    const auto differs = [&](double a, double b) {
      const double least = options_.least_wait_share / 4;
      return std::max(a, least) > options_.change_ratio * std::max(b, least);
    };
    return differs(seen_.index, then.index) || differs(then.index, seen_.index) ||
           differs(seen_.document, then.document) || differs(then.document, seen_.document);
  }

  CacheLoopOptions options_;
  CacheController controller_;
  double budget_ = 0;
  Waits seen_;
  std::optional<Blocked> blocked_;
};

std::string_view to_string(AutoTunerNote::Kind kind) {
  switch (kind) {
    case AutoTunerNote::Kind::Advice:
      return "advice";
    case AutoTunerNote::Kind::Held:
      return "held";
    case AutoTunerNote::Kind::Adopted:
      return "adopted";
    case AutoTunerNote::Kind::Kept:
      return "kept";
    case AutoTunerNote::Kind::Unknown:
      return "unknown";
    case AutoTunerNote::Kind::Idle:
      return "idle";
  }
  return "";
}

AutoTuner::AutoTuner(const AutoTunerOptions& options, const Clock& clock)
    : options_(options), rails_(options.guards, clock), watch_(options.watch) {
  const auto mode_of = [&](std::string_view name) {
    const auto found = options_.modes.find(name);
    return found == options_.modes.end() ? ControlMode::Off : found->second;
  };
  YieldOptions visitors;
  visitors.target_s = options_.target_s;
  visitors.floor = 1;
  visitors.ceiling = options_.visitors_ceiling;
  visitors.unit = 1;
  loops_.push_back(std::make_unique<YieldLoop>(kVisitors, *find_knob("storage.visitors_max"), mode_of(kVisitors),
                                               visitors, [](const PeriodFigures& f) { return f.visitors_queued > 0; }));
  YieldOptions maintenance;
  maintenance.target_s = options_.target_s;
  maintenance.floor = std::int64_t{1} << 20;
  maintenance.ceiling = options_.maintenance_ceiling;
  maintenance.unit = std::int64_t{4} << 20;
  loops_.push_back(std::make_unique<YieldLoop>(kMaintenance, *find_knob("maintenance.bytes_per_s"),
                                               mode_of(kMaintenance), maintenance,
                                               [](const PeriodFigures& f) { return f.throttled_share > 0; }));
  loops_.push_back(
      std::make_unique<SplitLoop>(*find_knob("distributor.bucket_bytes_max"), mode_of(kSplit), options_.split, rails_));
  loops_.push_back(
      std::make_unique<EntriesLoop>(*find_knob("storage.entries_max"), mode_of(kEntries), options_.entries));
  loops_.push_back(std::make_unique<CacheLoop>(*find_knob("storage.index_bytes_max"), mode_of(kCache), options_.cache));
}

AutoTuner::~AutoTuner() = default;

std::vector<std::string_view> AutoTuner::loop_names() { return {kVisitors, kMaintenance, kSplit, kEntries, kCache}; }

AutoTuner::Loop* AutoTuner::find(std::string_view name) {
  for (const auto& loop : loops_) {
    if (loop->name == name) return loop.get();
  }
  return nullptr;
}

void AutoTuner::note(AutoTunerStep& step, Loop& loop, AutoTunerNote::Kind kind, const ControlDecision& decision,
                     std::string text) {
  const std::string said = fmt::format("{} {} {} {}", to_string(kind), decision.old_value, decision.new_value,
                                       kind == AutoTunerNote::Kind::Held ? text : "");
  if (said == loop.said) return;
  loop.said = said;
  step.notes.push_back(
      {kind, std::string(loop.name), std::move(text), &loop.knob, decision.old_value, decision.new_value});
}

void AutoTuner::adopt(const AutoTunerInput& input, AutoTunerStep& step) {
  for (const auto& loop : loops_) {
    if (loop->mode == ControlMode::Off) continue;
    const auto found = input.values.find(loop->knob.name);
    if (found == input.values.end()) {
      if (!loop->value) {
        note(step, *loop, AutoTunerNote::Kind::Idle, {},
             fmt::format("no node says what {} is set to", loop->knob.name));
      }
      continue;
    }
    if (loop->value == found->second) continue;
    const std::optional<std::int64_t> before = loop->value;
    loop->set(found->second, false);
    if (!before) continue;
    loop->hold = options_.hold_periods;
    loop->said.clear();
    step.notes.push_back({AutoTunerNote::Kind::Adopted, std::string(loop->name),
                          fmt::format("another client has set it; it stays for {} periods at least", loop->hold),
                          &loop->knob, *before, found->second});
  }
  if (!watched_ || watched_->knob == nullptr) return;
  const auto found = input.values.find(watched_->knob->name);
  if (found == input.values.end() || found->second == watched_->last) return;
  watch_.drop();
  watched_.reset();
}

void AutoTuner::judge(const AutoTunerInput& input, AutoTunerStep& step) {
  // Periods with maintenance do not count: its effects would be taken for effects of the change.
  if (input.condition.is_under_maintenance) return;
  const WatchedChange::Verdict verdict = watch_.observe(objective_of(input.figures, options_.target_s));
  if (!watched_ || verdict == WatchedChange::Verdict::Idle || verdict == WatchedChange::Verdict::Watching) return;
  const Watched watched = *watched_;
  watched_.reset();
  if (verdict == WatchedChange::Verdict::RollBack) {
    step.order = SettingChange{watched.loop,
                               watched.knob,
                               watched.last,
                               watched.before,
                               fmt::format("the objective is {} of what it was before, in {} periods",
                                           watch_.ratios_text(), options_.watch.watch.worse_periods),
                               watch_.ids()};
    return;
  }
  const bool is_kept = verdict == WatchedChange::Verdict::Keep;
  step.notes.push_back(
      {is_kept ? AutoTunerNote::Kind::Kept : AutoTunerNote::Kind::Unknown, watched.loop,
       is_kept ? fmt::format("{} has proved itself: the objective is {:.2f} of what it was before", watch_.ids().back(),
                             watch_.ratio())
               : fmt::format("{} cannot be judged: too little was asked before or after it", watch_.ids().back()),
       watched.knob, watched.before, watched.last});
}

bool AutoTuner::is_urgent(const Loop& loop, const ControlDecision& decision) const {
  return loop.lowers_in_need() && decision.new_value < decision.old_value;
}

bool AutoTuner::goes_on(const SettingChange& order) const {
  return watch_.is_watching() && watched_ && watched_->knob == order.knob &&
         (order.new_value > order.old_value) == (watched_->last > watched_->before);
}

std::string AutoTuner::why_not(const Loop& loop, const ControlDecision& decision, const AutoTunerInput& input) const {
  if (loop.hold > 0) return "it was set by another client, or taken back, a short time ago";
  if (periods_ < options_.periods_before) return "there is too little to compare with yet";
  const Change change = loop.change_of(decision, input);
  if (const Status allowed = rails_.check(change, input.condition); !allowed) return allowed.message();
  if (is_urgent(loop, decision)) return {};
  if (watch_.is_watching()) {
    const bool is_same = watched_ && watched_->knob == &loop.knob &&
                         (decision.new_value > decision.old_value) == (watched_->last > watched_->before);
    return is_same ? "" : "another change is being watched";
  }
  // Without operations no user can be hurt and there is nothing to compare.
  const bool is_compared = input.figures.p99_s.has_value();
  if (is_compared && watch_.periods_before() < static_cast<std::size_t>(options_.periods_before)) {
    return "there is too little to compare with yet";
  }
  return {};
}

void AutoTuner::decide(Loop& loop, const AutoTunerInput& input, AutoTunerStep& step) {
  const ControlDecision decision = loop.step(input);
  if (!decision.is_change) return;
  if (loop.mode == ControlMode::Advise) {
    return note(step, loop, AutoTunerNote::Kind::Advice, decision, decision.reason);
  }
  if (const std::string why = why_not(loop, decision, input); !why.empty()) {
    return note(step, loop, AutoTunerNote::Kind::Held, decision, fmt::format("{}; not now: {}", decision.reason, why));
  }
  loop.said.clear();
  step.order =
      SettingChange{std::string(loop.name), &loop.knob, decision.old_value, decision.new_value, decision.reason, {}};
}

AutoTunerStep AutoTuner::step(const AutoTunerInput& input) {
  AutoTunerStep step;
  adopt(input, step);
  if (owed_) {
    const auto found = input.values.find(owed_->knob->name);
    if (found != input.values.end() && found->second == owed_->old_value) step.order = owed_;
    owed_.reset();
  }
  if (!step.order) judge(input, step);
  ++periods_;
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    Loop& loop = *loops_[(first_ + i) % loops_.size()];
    if (loop.mode == ControlMode::Off || !loop.value || step.order) continue;
    decide(loop, input, step);
  }
  for (const auto& loop : loops_) loop->hold = std::max(0, loop->hold - 1);
  first_ = (first_ + 1) % loops_.size();
  return step;
}

void AutoTuner::made(const SettingChange& order, const std::string& id) {
  Loop* loop = find(order.loop);
  if (loop != nullptr) loop->set(order.new_value, true);
  if (!order.reverts.empty()) {
    if (loop == nullptr) return;
    loop->was_taken_back(order.old_value);
    loop->hold = options_.hold_periods;
    return;
  }
  rails_.made({order.knob, order.old_value, order.new_value, 1, 0, 0});
  if (goes_on(order)) {
    watched_->last = order.new_value;
    watch_.extended(id);
    return;
  }
  if (loop != nullptr && loop->lowers_in_need() && order.new_value < order.old_value) {
    // A lower value cannot hurt users' operations. If they are slower than before the breach, the cause is another one,
    // and a roll-back of this change would make it worse. The change of another loop can be that cause, so it stays
    // under watch; a change of this loop is corrected by the lower value. Periods of a breach are no baseline for later
    // changes.
    if (watched_ && watched_->knob != order.knob) return;
    watched_.reset();
    watch_.drop();
    return;
  }
  watched_ = Watched{order.loop, order.knob, order.old_value, order.new_value};
  watch_.changed(id, loop == nullptr ? Yardstick::Total : loop->yardstick());
}

void AutoTuner::failed(const SettingChange& order) {
  // The roll-back is ordered again in the next period.
  if (!order.reverts.empty()) owed_ = order;
}

}  // namespace fjord::tuner
