#include "fjord/tuner/period_figures.h"

#include <algorithm>
#include <cmath>

namespace fjord::tuner {

double PeriodFigures::served_share() const {
  const double asked = operations_per_s() + failed_per_s;
  return asked > 0 ? operations_per_s() / asked : 1;
}

double PeriodFigures::search_share() const {
  double search = 0;
  double all = 0;
  for (const NodePuts& node : puts) {
    for (const PutCost& cost : node.costs) {
      search += cost.puts * cost.search_s;
      all += cost.puts * cost.put_s;
    }
  }
  return all > 0 ? search / all : 0;
}

double Objective::total(double scan_share) const {
  return scans ? std::pow(speed, 1 - scan_share) * std::pow(std::max(1.0, *scans), scan_share) : speed;
}

std::optional<Objective> objective_of(const PeriodFigures& figures, double target_s) {
  Objective objective;
  objective.demand = figures.operations_per_s();
  if (figures.visitors_running > 0) objective.scans = figures.scan_bytes_per_s;
  const bool is_stalled = figures.operations == 0 && figures.pending > 0;
  if (is_stalled) return objective;
  if (figures.operations < kLeastOperations || !figures.p99_s || !figures.mean_s || *figures.mean_s <= 0) {
    return std::nullopt;
  }
  objective.foreground = figures.served_share() * std::min(1.0, target_s / std::max(1e-9, *figures.p99_s));
  objective.speed = objective.foreground / *figures.mean_s;
  return objective;
}

}  // namespace fjord::tuner
