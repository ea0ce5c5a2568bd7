#include "fjord/cluster/placement_plan.h"

#include <set>

#include "placement_tools.h"

namespace fjord {
namespace {

using test::config_of;
using test::state_of;
using test::storage;

/// Returns sizes of buckets in bytes that vary by up to `spread` times; equal arguments give equal sizes.
std::vector<std::uint64_t> bytes_of_buckets(unsigned bits, std::uint64_t spread, std::uint64_t seed = 1) {
  std::vector<std::uint64_t> bytes(std::size_t{1} << bits);
  for (std::size_t bucket = 0; bucket < bytes.size(); ++bucket) {
    bytes[bucket] = 1'000'000 + mix64(bucket, seed) % (1'000'000 * spread);
  }
  return bytes;
}

double max_over_mean(const ClusterState& state, const DistributionConfig& config,
                     const std::vector<std::uint64_t>& bytes) {
  return balance_of(bytes_by_node(place_all_buckets(state, config), bytes), fair_shares(state, config)).max_over_mean;
}

ClusterState with(ClusterState state, const ExceptionPlan& plan) {
  state.set_exceptions(plan.exceptions);
  return state;
}

std::size_t common_rows(const ExceptionPlan& a, const ExceptionPlan& b) {
  std::size_t count = 0;
  for (const PlacementException& one : a.exceptions) {
    count += static_cast<std::size_t>(std::count(b.exceptions.begin(), b.exceptions.end(), one));
  }
  return count;
}

}  // namespace

TEST_CASE("placement plan: a few exceptions bring max/mean of bytes to the limit", "[placement]") {
  struct Case {
    std::string config;
    std::string state;
    unsigned bits;
  };
  const std::vector<Case> cases = {
      {"redundancy:3 (root 0-9)", storage(10, 12), 12},
      {"redundancy:2 (root 0-9)", storage(10, 8), 8},
      {"redundancy:3 (root 0-99)", storage(100, 16), 16},
      {"redundancy:3 (root (a 0-4) (b 5-9) (c 10-14) (d 15-19))", storage(20, 12), 12},
      {"redundancy:3 (root (a (a1 0-2) (a2 3-5)) (b (b1 6-8) (b2 9-11)) (c 12-17))", storage(18, 12), 12},
      {"redundancy:3 algorithm:consistent (root 0-9)", storage(10, 12), 12},
      {"redundancy:3 (root 0-3 4*2 5*2 6-9)", storage(10, 12), 12},
      {"redundancy:3 (root 0-9)", storage(10, 12) + " .3.s:d .4.c:0.5", 12},
  };
  for (const Case& one : cases) {
    const DistributionConfig config = config_of(one.config);
    const ClusterState state = state_of(one.state);
    const auto bytes = bytes_of_buckets(one.bits, 4);
    const ExceptionPlan plan = plan_exceptions(bytes, state, config);
    INFO(one.config << " | " << one.state << ": " << plan.without << " -> " << plan.after << " with "
                    << plan.exceptions.size());
    CHECK(plan.before == plan.without);
    CHECK(plan.without == Approx(max_over_mean(state, config, bytes)));
    CHECK(plan.without > 1.02);
    CHECK(plan.after <= 1.02);
    CHECK(plan.after == Approx(max_over_mean(with(state, plan), config, bytes)));
    CHECK(plan.exceptions.size() <= bytes.size() / 10);
  }
}

TEST_CASE("placement plan: what it does is what has to be done, and groups stay apart", "[placement]") {
  const DistributionConfig config = config_of("redundancy:3 (root (a 0-4) (b 5-9) (c 10-14) (d 15-19))");
  const ClusterState state = state_of(storage(20, 12));
  const auto bytes = bytes_of_buckets(12, 4);
  const ExceptionPlan plan = plan_exceptions(bytes, state, config);
  const auto before = place_all_buckets(state, config);
  const auto after = place_all_buckets(with(state, plan), config);
  CHECK(moved_replicas(before, after) == plan.exceptions.size());
  for (const NodeList& list : after) {
    REQUIRE(std::set({list[0] / 5, list[1] / 5, list[2] / 5}).size() == 3);
  }
  // Equal input gives an equal plan, and a balanced cluster needs no exceptions.
  CHECK(plan_exceptions(bytes, state, config).exceptions == plan.exceptions);
  CHECK(plan_exceptions(bytes, with(state, plan), config).exceptions == plan.exceptions);
  CHECK(plan_exceptions(std::vector<std::uint64_t>(bytes.size(), 0), state, config).exceptions.empty());
}

TEST_CASE("placement plan: the table stays nearly the same when the cluster changes a little", "[placement]") {
  const DistributionConfig config = config_of("redundancy:3 (root 0-19)");
  const ClusterState state = state_of(storage(20, 12));
  auto bytes = bytes_of_buckets(12, 4);
  const ExceptionPlan first = plan_exceptions(bytes, state, config);
  REQUIRE(first.exceptions.size() > 10);
  // Each bucket grows by up to 40 kB, about 1 % on average.
  for (std::size_t bucket = 0; bucket < bytes.size(); ++bucket) bytes[bucket] += mix64(bucket, 7) % 40'000;
  const ExceptionPlan grown = plan_exceptions(bytes, with(state, first), config);
  CHECK(grown.after <= 1.02);
  CHECK(common_rows(first, grown) * 10 >= first.exceptions.size() * 9);

  // Node 3 fails: rows that move a bucket to it are suspended until it is back.
  ClusterState failed = with(state, first);
  failed.set_node_state(NodeId::storage(3), NodeState::Down);
  const auto lists = place_all_buckets(failed, config);
  for (const NodeList& list : lists) REQUIRE((list.size() == 3 && !list.contains(3)));
  const ExceptionPlan without_it = plan_exceptions(bytes, failed, config);
  CHECK(without_it.after <= 1.02);
  std::size_t of_others = 0;
  for (const PlacementException& one : first.exceptions) of_others += one.from != 3 && one.to != 3 ? 1 : 0;
  CHECK(common_rows(first, without_it) * 10 >= of_others * 5);
  failed.set_node_state(NodeId::storage(3), NodeState::Up);
  CHECK(place_all_buckets(failed, config) == place_all_buckets(with(state, first), config));
}

TEST_CASE("placement plan: a row goes when its bucket fits where the algorithm puts it", "[placement]") {
  const DistributionConfig config = config_of("redundancy:2 (root 0-9)");
  const ClusterState state = state_of(storage(10, 12));
  const ExceptionPlan first = plan_exceptions(bytes_of_buckets(12, 4), state, config);
  REQUIRE(!first.exceptions.empty());
  const ExceptionPlanOptions loose{1.5, 4096};
  CHECK(plan_exceptions(bytes_of_buckets(12, 4), with(state, first), config, loose).exceptions.empty());
}

TEST_CASE("placement plan: what cannot be balanced stays, and the table has an end", "[placement]") {
  const DistributionConfig config = config_of("redundancy:1 (root 0-9)");
  const ClusterState state = state_of(storage(10, 4));
  std::vector<std::uint64_t> bytes(16, 1000);
  bytes[5] = 1'000'000;  // Bucket 5 alone exceeds the mean of ten nodes.
  const ExceptionPlan plan = plan_exceptions(bytes, state, config);
  CHECK(plan.after > 9);
  CHECK(plan.after <= plan.without);
  const ExceptionPlanOptions tight{1.0, 7};
  const auto many = bytes_of_buckets(12, 4);
  const ExceptionPlan limited = plan_exceptions(many, state_of(storage(10, 12)), config, tight);
  CHECK(limited.exceptions.size() == 7);
  CHECK(limited.after < limited.without);
  CHECK(plan_exceptions(many, state_of("bits:12"), config).exceptions.empty());
}

TEST_CASE("placement exceptions: they hold only while all that they say is true", "[placement]") {
  const DistributionConfig config = config_of("redundancy:2 (root (a 0 1) (b 2 3) (c*0 4))");
  const ClusterState plain = state_of("bits:4 storage:5");
  const BucketId bucket(4, 9);
  const NodeList list = placement_algorithm().ideal_nodes(bucket, plain, config);
  const auto with_row = [&](unsigned from, unsigned to, const std::string& more = "") {
    return placement_algorithm().ideal_nodes(
        bucket, state_of("bits:4 except:9=" + std::to_string(from) + ">" + std::to_string(to) + " storage:5" + more),
        config);
  };
  const std::uint16_t neighbour = list[0] ^ 1;  // A node of the same group as list[0].
  const std::uint16_t elsewhere = list[1] ^ 1;  // A node of the same group as list[1].
  CHECK(with_row(list[0], neighbour) == NodeList{neighbour, list[1]});
  CHECK(with_row(list[1], elsewhere) == NodeList{list[0], elsewhere});
  CHECK(with_row(list[0], elsewhere) == list);  // Ignored: both replicas would be in one group.
  CHECK(with_row(list[0], list[1]) == list);
  CHECK(with_row(neighbour, list[0]) == list);
  CHECK(with_row(list[0], 4) == list);     // The group of node 4 has no capacity.
  CHECK(with_row(list[0], 4000) == list);  // There is no node 4000.
  for (const char* state : {"d", "r", "m", "i"}) {
    CHECK(with_row(list[0], neighbour, " ." + std::to_string(neighbour) + ".s:" + state) == list);
  }
  // The row does not affect other buckets. It does affect the parts of its bucket.
  const ClusterState state =
      state_of("bits:4 except:9=" + std::to_string(list[0]) + ">" + std::to_string(neighbour) + " storage:5");
  CHECK(placement_algorithm().ideal_nodes(BucketId(4, 8), state, config) ==
        placement_algorithm().ideal_nodes(BucketId(4, 8), plain, config));
  CHECK(placement_algorithm().ideal_nodes(BucketId(9, 9 + 16), state, config) == NodeList{neighbour, list[1]});
}

}  // namespace fjord
