#include "fjord/tuner/model/plant.h"

#include <algorithm>
#include <cmath>

namespace fjord::tuner::model {

double Plant::p99_at(double use) const { return options_.base_s * (1 + 4.6 * use / (1 - std::min(use, 0.995))); }

double Plant::step(double foreground, double background) {
  if (options_.drift > 0) {
    capacity_ *= 1 + options_.drift * (2 * random_.uniform() - 1);
    capacity_ = std::clamp(capacity_, options_.capacity / 2, options_.capacity * 2);
  }
  const double load = foreground + background;
  const double capacity = speed_ * capacity_;
  const double waited = backlog_ / capacity;
  const double p99 = p99_at(load / capacity) / speed_ + waited;
  // For exponentially distributed times p99 is 4.6 times the mean.
  mean_s_ = options_.base_s / speed_ / (1 - std::min(load / capacity, 0.995)) + waited;
  backlog_ = std::max(0.0, backlog_ + (load - capacity) * options_.period_s);
  // Clients give up work that has waited too long.
  backlog_ = std::min(backlog_, 2 * capacity);
  return p99 * (1 + options_.noise * (2 * random_.uniform() - 1));
}

double Plant::leftover(double foreground, double target_s) const {
  // p99 = base * (1 + 4.6 u / (1 - u)), solved for u.
  const double excess = std::max(0.0, target_s / options_.base_s - 1) / 4.6;
  return std::max(0.0, excess / (1 + excess) * capacity_ - foreground);
}

}  // namespace fjord::tuner::model
