#include "algorithms/all.h"

namespace fjord::balancer {

const std::vector<const BalancingAlgorithm*>& algorithms() {
  static const std::vector<const BalancingAlgorithm*> all = [] {
    std::vector<const BalancingAlgorithm*> list{&descent(),   &weighted_move(), &random_placement(), &bin_packing(),
                                                &neighbour(), &diffusion(),     &autoplacer(),       &topic_spread(),
                                                &two_tier(),  &stochastic(),    &local_search()};
    for (const auto* algorithm : hashing_algorithms()) list.push_back(algorithm);
    for (const auto* algorithm : token_algorithms()) list.push_back(algorithm);
    return list;
  }();
  return all;
}

const BalancingAlgorithm* find_algorithm(std::string_view name) {
  for (const BalancingAlgorithm* algorithm : algorithms()) {
    if (algorithm->name() == name) return algorithm;
  }
  return nullptr;
}

}  // namespace fjord::balancer
