#include "fjord/cluster/cluster_view.h"

#include <catch2/catch.hpp>
#include <set>

namespace fjord {
namespace {

ClusterView view_of(const std::string& state, const std::string& config) {
  return ClusterView::make(ClusterState::parse(state).value(), DistributionConfig::parse(config).value());
}

/// A placement that counts the calls of ideal_nodes().
class CountingPlacement final : public PlacementAlgorithm {
 public:
  NodeList ideal_nodes(BucketId bucket, const ClusterState& state, const DistributionConfig& config) const override {
    ++calls;
    return Straw2Placement().ideal_nodes(bucket, state, config);
  }
  mutable int calls = 0;
};

}  // namespace

TEST_CASE("placement cache: it answers as the view does and computes each distribution bucket once", "[cluster]") {
  const ClusterView view = view_of("bits:8 distributor:3 storage:6 .2.s:d", "redundancy:3 (root 0-5)");
  const CountingPlacement algorithm;
  PlacementCache cache(view, algorithm);
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t number = 0; number < 4096; ++number) {
      const BucketId bucket(12, number);
      REQUIRE(cache.ideal_nodes(bucket) == view.ideal_nodes(bucket));
      REQUIRE(cache.owner(bucket) == view.owner(bucket));
      REQUIRE(cache.owns(1, bucket) == view.owns(1, bucket));
    }
  }
  CHECK(algorithm.calls == 256);
}

TEST_CASE("placement cache: clusters without nodes have no owners and no replicas", "[cluster]") {
  PlacementCache cache((ClusterView()));
  for (int round = 0; round < 2; ++round) {
    CHECK(cache.ideal_nodes(BucketId(16, 3)).empty());
    CHECK_FALSE(cache.owner(BucketId(16, 3)));
  }
}

TEST_CASE("placement cache: with more distribution bits than it keeps it computes each time", "[cluster]") {
  const ClusterView view = view_of("bits:40 distributor:3 storage:6", "redundancy:2 (root 0-5)");
  PlacementCache cache(view);
  const BucketId bucket(58, 0x1ffffffffffffff);
  CHECK(cache.ideal_nodes(bucket) == view.ideal_nodes(bucket));
  CHECK(cache.owner(bucket) == view.owner(bucket));
}

TEST_CASE("cluster view: a node in maintenance keeps its place, and new buckets are made on the others", "[cluster]") {
  const ClusterView up = view_of("bits:8 storage:6", "redundancy:3 (root 0-5)");
  const ClusterView away = view_of("bits:8 storage:6 .2.s:m", "redundancy:3 (root 0-5)");
  const ClusterView down = view_of("bits:8 storage:6 .2.s:d", "redundancy:3 (root 0-5)");
  const ClusterView places = view_of_places(away);
  const ClusterState for_new = state_for_new_buckets(*away.state, *away.distribution);
  for (std::uint64_t number = 0; number < 256; ++number) {
    const BucketId bucket(8, number);
    REQUIRE(places.ideal_nodes(bucket) == up.ideal_nodes(bucket));
    REQUIRE(placement_algorithm().ideal_nodes(bucket, for_new, *away.distribution) == down.ideal_nodes(bucket));
  }
}

TEST_CASE("cluster view: retired nodes keep their places only while no other node takes replicas", "[cluster]") {
  const auto places = [](const std::string& nodes) {
    const ClusterView view = view_of("bits:4 " + nodes, "redundancy:2 (root 0-2)");
    std::set<std::uint16_t> used;
    for (std::uint64_t number = 0; number < 16; ++number) {
      for (const std::uint16_t node : view_of_places(view).ideal_nodes(BucketId(4, number))) used.insert(node);
    }
    return used;
  };
  const auto born = [](const std::string& nodes) {
    const ClusterView view = view_of("bits:4 " + nodes, "redundancy:2 (root 0-2)");
    return replicas_at_birth(*view.state, *view.distribution);
  };
  CHECK(places("storage:3 .0.s:r .1.s:r") == std::set<std::uint16_t>{2});
  CHECK(born("storage:3 .0.s:r .1.s:r") == 1);
  CHECK(places("storage:3 .0.s:r .1.s:r .2.s:r") == std::set<std::uint16_t>{0, 1, 2});
  CHECK(born("storage:3 .0.s:r .1.s:r .2.s:r") == 2);
  CHECK(places("storage:3 .0.s:r .1.s:r .2.s:d") == std::set<std::uint16_t>{0, 1});
  CHECK(places("storage:3 .0.s:r .1.s:r .2.s:m") == std::set<std::uint16_t>{2});
  CHECK(born("storage:3 .0.s:r .1.s:r .2.s:m") == 1);
  CHECK(places("storage:3 .0.s:d .1.s:d .2.s:d").empty());
}

TEST_CASE("cluster view: the default is empty and usable", "[cluster]") {
  const ClusterView view;
  CHECK(view.version() == 0);
  CHECK(view.bits() == 16);
  CHECK(view.redundancy() == 1);
  CHECK_FALSE(view.is_up(NodeId::storage(0)));
}

}  // namespace fjord
