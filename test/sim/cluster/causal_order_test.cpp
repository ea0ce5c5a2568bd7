#include "causal_order.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <vector>

#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {
namespace {

constexpr std::uint16_t kNodes = 5;
constexpr unsigned kBits = 1;
const BucketId kBucket(kBits, 0);

/// A distributor that writes to a bucket under state 1 and acts on it under state 2. Five storage nodes, three
/// replicas.
class World {
 public:
  World() {
    options_.storage_nodes = kNodes;
    options_.redundancy = 3;
    options_.bits = kBits;
    cluster_.emplace(options_);
    checker.watch(*cluster_);
    distribution_ = DistributionConfig::flat(kNodes, options_.redundancy);
    ideal = ClusterView::make(state(1), distribution_).ideal_nodes(kBucket).to_vector();
  }

  ClusterState state(std::uint64_t version) const {
    ClusterState state;
    state.set_version(version);
    state.set_bits(kBits);
    state.set_node_state(NodeId::distributor(0), NodeState::Up);
    for (std::uint16_t i = 0; i < kNodes; ++i) state.set_node_state(NodeId::storage(i), NodeState::Up);
    return state;
  }
  std::vector<std::uint16_t> ideal_of(const ClusterState& state) const {
    return ClusterView::make(state, distribution_).ideal_nodes(kBucket).to_vector();
  }
  /// Returns a node that is not in the list and not `other`.
  std::uint16_t node_outside(const std::vector<std::uint16_t>& list, std::uint16_t other = kNodes) const {
    std::uint16_t node = 0;
    while (node == other || std::count(list.begin(), list.end(), node) > 0) ++node;
    return node;
  }

  void see(const ClusterState& state) {
    checker.see_state(state.version(), state.to_string(), distribution_.to_string(), true);
  }
  void write(std::uint64_t version) {
    rpc::Apply request;
    request.state_version = version;
    request.operations.push_back({.kind = rpc::OperationKind::Put, .bucket = kBucket});
    checker.see_request("distributor.0", "storage.0", request);
  }
  void collect(std::uint64_t version) {
    for (std::uint16_t i = 0; i < kNodes; ++i) {
      rpc::GetBucketInfo question;
      question.state_version = version;
      question.all = true;
      checker.see_request("distributor.0", NodeId::storage(i).to_string(),
                          question)(rpc::Reply(rpc::GetBucketInfoReply()));
    }
  }
  void act(std::uint64_t version) {
    rpc::SetReplicaSets request;
    request.state_version = version;
    request.buckets.push_back({.bucket = kBucket});
    checker.see_request("distributor.0", "storage.0", request);
  }

  CausalOrderChecker checker;
  std::vector<std::uint16_t> ideal;  ///< The nodes of the bucket while all are up and there are no rows.

 private:
  SimClusterOptions options_;
  std::optional<SimCluster> cluster_;
  DistributionConfig distribution_;
};

TEST_CASE("a bucket that was not collected is not acted on under other rows", "[causal_order]") {
  World world;
  world.see(world.state(1));
  ClusterState moved = world.state(2);
  moved.set_exceptions({{.bucket = 0, .from = world.ideal[2], .to = world.node_outside(world.ideal)}});
  world.see(moved);

  world.write(1);
  const bool is_collected = GENERATE(false, true);
  if (is_collected) world.collect(2);
  world.act(2);
  CHECK(world.checker.rows_acted_on() == 1);
  if (is_collected) {
    CHECK(world.checker.failure().empty());
  } else {
    CHECK_THAT(world.checker.failure(), Catch::Contains("I21: distributor.0 acts on"));
  }
}

// chaos 30000019048: as long as an ideal node is in maintenance, the distributor keeps the member that a row put on the
// bucket, although the row has gone. When the row comes back the replica set is right as it is.
TEST_CASE("rows that come back while an ideal node is away change no replica set", "[causal_order]") {
  World world;
  const std::uint16_t away = world.ideal[2];
  ClusterState before = world.state(1);
  before.set_node_state(NodeId::storage(away), NodeState::Maintenance);
  const std::vector<std::uint16_t> with_substitute = world.ideal_of(before);
  const std::uint16_t substitute = *std::find_if(with_substitute.begin(), with_substitute.end(), [&](auto node) {
    return std::count(world.ideal.begin(), world.ideal.end(), node) == 0;
  });

  // The substitute goes down, so that the node of the row takes its place also by the algorithm.
  ClusterState now = world.state(2);
  now.set_node_state(NodeId::storage(away), NodeState::Maintenance);
  now.set_node_state(NodeId::storage(substitute), NodeState::Down);
  now.set_exceptions({{.bucket = 0, .from = away, .to = world.node_outside(world.ideal, substitute)}});

  world.see(before);
  world.see(now);
  world.write(1);
  world.act(2);
  CHECK(world.checker.failure().empty());
}

}  // namespace
}  // namespace fjord::sim
