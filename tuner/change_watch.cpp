#include "fjord/tuner/change_watch.h"

#include <algorithm>
#include <vector>

namespace fjord::tuner {

void ChangeWatch::changed(std::string id) {
  id_ = std::move(id);
  std::vector<double> sorted(before_.begin(), before_.end());
  std::sort(sorted.begin(), sorted.end());
  baseline_ = sorted.empty() ? 0 : sorted[sorted.size() / 2];
  is_watching_ = !sorted.empty();
  periods_ = 0;
  worse_ = 0;
}

ChangeWatch::Verdict ChangeWatch::observe(double objective) {
  Verdict verdict = Verdict::Idle;
  if (is_watching_) {
    ++periods_;
    worse_ = objective < (1 - options_.worse_share) * baseline_ ? worse_ + 1 : 0;
    verdict = Verdict::Watching;
    if (worse_ >= options_.worse_periods) {
      verdict = Verdict::RollBack;
    } else if (periods_ >= options_.watched_periods && worse_ == 0) {
      verdict = Verdict::Keep;
    }
    if (verdict != Verdict::Watching) is_watching_ = false;
    // After a roll-back the old periods are the baseline again; after a change that proved itself they are obsolete.
    if (verdict == Verdict::Keep) before_.clear();
  }
  // The periods of a bad change are no basis for judging later changes.
  if (verdict == Verdict::RollBack || verdict == Verdict::Watching) return verdict;
  before_.push_back(objective);
  while (before_.size() > static_cast<std::size_t>(options_.baseline_periods)) before_.pop_front();
  return verdict;
}

}  // namespace fjord::tuner
