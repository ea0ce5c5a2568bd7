#pragma once

#include "fjord/balancer/algorithm.h"

namespace fjord::balancer {

const BalancingAlgorithm& descent();
const BalancingAlgorithm& weighted_move();
const BalancingAlgorithm& random_placement();
const BalancingAlgorithm& bin_packing();
const BalancingAlgorithm& neighbour();
const BalancingAlgorithm& diffusion();
const BalancingAlgorithm& autoplacer();
const BalancingAlgorithm& topic_spread();
const BalancingAlgorithm& two_tier();
const BalancingAlgorithm& stochastic();
const BalancingAlgorithm& local_search();
/// Consistent hashing with the three token strategies, bounded loads, weighted rendezvous hashing.
std::vector<const BalancingAlgorithm*> hashing_algorithms();
/// Consistent hashing that moves tokens by load.
std::vector<const BalancingAlgorithm*> token_algorithms();

}  // namespace fjord::balancer
