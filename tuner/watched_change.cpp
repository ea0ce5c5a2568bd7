#include "fjord/tuner/watched_change.h"

#include <algorithm>
#include <fmt/format.h>

namespace fjord::tuner {

double WatchedChange::score(const Objective& objective) const {
  if (yardstick_ == Yardstick::Foreground) return objective.foreground;
  return with_scans_ ? objective.total(options_.scan_share) : objective.speed;
}

void WatchedChange::changed(std::string id, Yardstick yardstick) {
  yardstick_ = yardstick;
  ids_ = {std::move(id)};
  unknown_periods_ = 0;
  ratio_ = 1;
  ratios_.clear();
  const auto with = std::count_if(before_.begin(), before_.end(), [](const Objective& one) { return !!one.scans; });
  with_scans_ = 2 * static_cast<std::size_t>(with) > before_.size();
  watch_.emplace(options_.watch);
  std::vector<double> demands;
  for (const Objective& one : before_) {
    if (with_scans_ && !one.scans) continue;
    static_cast<void>(watch_->observe(score(one)));
    demands.push_back(one.demand);
  }
  std::sort(demands.begin(), demands.end());
  baseline_demand_ = demands.empty() ? 0 : demands[demands.size() / 2];
  watch_->changed(ids_.front());
}

void WatchedChange::extended(std::string id) { ids_.push_back(std::move(id)); }

void WatchedChange::drop() {
  watch_.reset();
  before_.clear();
}

WatchedChange::Verdict WatchedChange::observe(const std::optional<Objective>& objective) {
  if (!watch_) {
    if (!objective) return Verdict::Idle;
    before_.push_back(*objective);
    while (before_.size() > static_cast<std::size_t>(options_.watch.baseline_periods)) before_.pop_front();
    return Verdict::Idle;
  }
  const double baseline = watch_->baseline();
  bool says_something = objective.has_value() && baseline > 0;
  const bool is_stalled = objective.has_value() && objective->speed == 0;
  if (says_something && with_scans_ && yardstick_ == Yardstick::Total) {
    says_something = objective->scans.has_value() || is_stalled;
  }
  if (says_something && score(*objective) < baseline && !is_stalled) {
    says_something = objective->demand <= options_.demand_growth_max * baseline_demand_;
  }
  if (!says_something) {
    if (baseline > 0 && ++unknown_periods_ < options_.unknown_periods_max) return Verdict::Watching;
    drop();
    return Verdict::Unknown;
  }
  ratio_ = score(*objective) / baseline;
  ratios_.push_back(ratio_);
  while (ratios_.size() > static_cast<std::size_t>(options_.watch.worse_periods)) ratios_.pop_front();
  switch (watch_->observe(score(*objective))) {
    case ChangeWatch::Verdict::RollBack:
      watch_.reset();  // the periods before the change are the baseline again
      return Verdict::RollBack;
    case ChangeWatch::Verdict::Keep:
      drop();
      before_.push_back(*objective);
      return Verdict::Keep;
    case ChangeWatch::Verdict::Idle:
    case ChangeWatch::Verdict::Watching:
      break;
  }
  return Verdict::Watching;
}

std::string WatchedChange::ratios_text() const {
  std::string text;
  for (const double ratio : ratios_) text += fmt::format("{}{:.2f}", text.empty() ? "" : ", ", ratio);
  return text;
}

}  // namespace fjord::tuner
