#include "fjord/balancer/model.h"

namespace fjord::balancer {

std::uint64_t BalanceModel::bytes() const {
  std::uint64_t sum = 0;
  for (const Slice& slice : slices) sum += slice.bytes * slice.holders.size();
  return sum;
}

std::vector<double> node_loads(const BalanceModel& model) {
  std::vector<double> loads(model.nodes.size(), 0.0);
  for (const Slice& slice : model.slices) {
    for (const Holder& holder : slice.holders) loads[holder.node] += slice.load_at(holder);
  }
  for (std::size_t node = 0; node < loads.size(); ++node) loads[node] /= model.nodes[node].capacity;
  return loads;
}

double imbalance(const BalanceModel& model, const std::vector<double>& loads) {
  double most = 0.0;
  double sum = 0.0;
  double capacity = 0.0;
  for (std::size_t node = 0; node < loads.size(); ++node) {
    if (!model.nodes[node].usable) continue;
    most = std::max(most, loads[node]);
    sum += loads[node] * model.nodes[node].capacity;
    capacity += model.nodes[node].capacity;
  }
  return sum <= 0.0 ? 1.0 : most * capacity / sum;
}

}  // namespace fjord::balancer
