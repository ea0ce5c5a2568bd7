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
/// Returns the algorithms that place slices by hashing: consistent hashing with three token strategies, with bounded
/// loads, and weighted rendezvous hashing.
std::vector<const BalancingAlgorithm*> hashing_algorithms();
/// Returns the variants of consistent hashing that move tokens by load.
std::vector<const BalancingAlgorithm*> token_algorithms();

}  // namespace fjord::balancer
