#include "fjord/balancer/model.h"

#include <cmath>

namespace fjord::balancer {

std::uint64_t BalanceModel::bytes() const {
  std::uint64_t sum = 0;
  for (const Slice& slice : slices) sum += slice.bytes * slice.holders.size();
  return sum;
}

bool has_uneven_reads(const Slice& slice) {
  return std::any_of(slice.holders.begin(), slice.holders.end(), [&](const Holder& holder) {
    return std::abs(holder.read_share - slice.holders[0].read_share) > 1e-6;
  });
}

std::size_t rows_of(const BalanceModel& model, const Slice& slice) {
  if (model.homes == nullptr) return 0;
  std::size_t rows = has_uneven_reads(slice) ? slice.range.size() : 0;
  for (std::uint32_t bucket = slice.range.begin; bucket < slice.range.end; ++bucket) {
    for (const Holder& holder : slice.holders) rows += (*model.homes)[bucket].contains(holder.node) ? 0 : 1;
  }
  return rows;
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
