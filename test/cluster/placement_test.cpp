#include "fjord/cluster/placement.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "fjord/cluster/ownership.h"
#include "straw2.h"

namespace fjord {
namespace {

constexpr unsigned kBits = 16;
constexpr std::uint64_t kBuckets = std::uint64_t{1} << kBits;

ClusterState state_of(const std::string& text) {
  Result<ClusterState> state = ClusterState::parse(text);
  INFO(text);
  REQUIRE(state);
  return *state;
}

DistributionConfig config_of(const std::string& text) {
  Result<DistributionConfig> config = DistributionConfig::parse(text);
  INFO(text << " " << config.status());
  REQUIRE(config);
  return *config;
}

NodeList place(std::uint64_t bucket, const ClusterState& state, const DistributionConfig& config) {
  return Straw2Placement().ideal_nodes(BucketId(kBits, bucket), state, config);
}

std::vector<NodeList> place_all(const ClusterState& state, const DistributionConfig& config) {
  std::vector<NodeList> lists;
  lists.reserve(kBuckets);
  for (std::uint64_t bucket = 0; bucket < kBuckets; ++bucket) lists.push_back(place(bucket, state, config));
  return lists;
}

std::map<std::uint16_t, double> replicas_by_node(const std::vector<NodeList>& lists) {
  std::map<std::uint16_t, double> counts;
  for (const NodeList& list : lists) {
    for (const std::uint16_t node : list) ++counts[node];
  }
  return counts;
}

/// Returns the number of replicas in `after` that are not in `before`.
std::uint64_t moved(const std::vector<NodeList>& before, const std::vector<NodeList>& after) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    for (const std::uint16_t node : after[i]) count += before[i].contains(node) ? 0 : 1;
  }
  return count;
}

/// Returns the fewest replicas that any placement would have to move: the sum of what nodes gain.
std::uint64_t least_movement(const std::vector<NodeList>& before, const std::vector<NodeList>& after) {
  std::map<std::uint16_t, double> old_counts = replicas_by_node(before);
  double gained = 0;
  for (const auto& [node, count] : replicas_by_node(after)) gained += std::max(0.0, count - old_counts[node]);
  return static_cast<std::uint64_t>(gained);
}

bool are_distinct(const NodeList& list) { return std::set(list.begin(), list.end()).size() == list.size(); }

/// True if `count` is within six standard deviations of the mean of a binomial distribution.
bool is_near(double count, double trials, double p) {
  return std::abs(count - trials * p) < 6 * std::sqrt(trials * p * (1 - p));
}

std::string nodes_of(std::uint16_t count) { return "storage:" + std::to_string(count); }

}  // namespace

TEST_CASE("straw2: the logarithm of a draw is right to three parts in a thousand and falls with the hash",
          "[placement]") {
  std::uint64_t hash = 1;
  for (int i = 0; i < 10000; ++i) {
    hash = straw2::mix(hash + 1);
    const std::uint64_t shifted = hash >> (i % 50);
    const double exact = 64 - std::log2(static_cast<double>(shifted | 1));
    const double cost = static_cast<double>(straw2::cost_of_hash(shifted)) / std::exp2(straw2::kCostBits);
    CHECK(cost == Approx(exact).epsilon(0.003).margin(1e-9));
    if (shifted > 1) CHECK(straw2::cost_of_hash(shifted) <= straw2::cost_of_hash(shifted - shifted / 3));
  }
  CHECK(straw2::cost_of_hash(~std::uint64_t{0}) == 1);
  CHECK(straw2::cost_of_hash(0) == std::uint64_t{64} << straw2::kCostBits);
}

TEST_CASE("straw2: the table of logarithms never changes", "[placement][golden]") {
  CHECK(straw2::kLog2Table[0] == 0);
  CHECK(straw2::kLog2Table[1] == 386516077);
  CHECK(straw2::kLog2Table[128] == 40198316959);
  CHECK(straw2::kLog2Table[255] == 68525652141);
}

TEST_CASE("placement: buckets never move between releases", "[placement][golden]") {
  const ClusterState state = state_of("storage:20 distributor:5");
  const DistributionConfig flat = DistributionConfig::flat(10, 3);
  const DistributionConfig tree =
      config_of("redundancy:3 (root (rack_a (host_1 0 1 2) (host_2 3*2 4)) (rack_b*1.5 5 6 7*0.5 8) (rack_c 9 10))");
  struct Golden {
    std::uint64_t bucket;
    NodeList flat;
    NodeList tree;
    std::uint16_t owner;
  };
  const std::vector<Golden> golden = {
      {0, {8, 6, 1}, {1, 10, 8}, 1},    {1, {8, 1, 5}, {9, 8, 1}, 1},     {2, {3, 2, 0}, {2, 10, 6}, 3},
      {3, {7, 8, 5}, {1, 7, 10}, 1},    {100, {4, 6, 0}, {0, 6, 10}, 4},  {255, {6, 4, 7}, {3, 6, 10}, 4},
      {256, {5, 9, 2}, {3, 5, 10}, 2},  {4095, {1, 0, 8}, {3, 8, 10}, 1}, {12345, {8, 5, 6}, {10, 4, 8}, 4},
      {32768, {0, 4, 2}, {4, 5, 9}, 0}, {54321, {9, 0, 3}, {8, 3, 9}, 0}, {65535, {2, 0, 5}, {5, 2, 10}, 2},
  };
  for (const Golden& row : golden) {
    INFO("bucket " << row.bucket);
    CHECK(place(row.bucket, state, flat).to_vector() == row.flat.to_vector());
    CHECK(place(row.bucket, state, tree).to_vector() == row.tree.to_vector());
    CHECK(distributor_of(BucketId(kBits, row.bucket), state) == row.owner);
  }
}

TEST_CASE("placement: only nodes that are up take replicas, and all of them if they are few", "[placement]") {
  const ClusterState state = state_of("storage:11 .1.s:i .2.s:d .3.s:r .4.s:m .5.s:s .6.c:0");
  // Node 10 is up but not configured; node 11 is configured but does not exist.
  const DistributionConfig flat = config_of("redundancy:4 (root 0-9 11)");
  for (std::uint64_t bucket = 0; bucket < 200; ++bucket) {
    const NodeList list = place(bucket, state, flat);
    CHECK(std::set(list.begin(), list.end()) == std::set<std::uint16_t>{0, 7, 8, 9});
  }
  for (const NodeList& list : {place(1, state, flat.with_redundancy(16)), place(2, state, flat.with_redundancy(5))}) {
    CHECK(list.size() == 4);
  }
  CHECK(place(3, state_of(""), flat).empty());
  CHECK(place(3, state, DistributionConfig()).empty());
}

TEST_CASE("placement: retired and maintenance nodes as in the vectors' example", "[placement]") {
  const ClusterState state = state_of("storage:10 .4.s:m .5.s:m .6.s:d .7.s:d .9.s:r");
  std::set<std::uint16_t> used;
  for (std::uint64_t bucket = 0; bucket < 1000; ++bucket) {
    for (const std::uint16_t node : place(bucket, state, DistributionConfig::flat(10, 2))) used.insert(node);
  }
  CHECK(used == std::set<std::uint16_t>{0, 1, 2, 3, 8});
}

TEST_CASE("placement: the number of replicas is right in every tree and for every set of failed nodes", "[placement]") {
  const std::vector<std::string> trees = {
      "(root 0 1 2 3 4 5)",
      "(root (a 0 1) (b 2 3) (c 4 5))",
      "(root (a 0 1 2 3 4) (b 5))",
      "(root (a (a1 0) (a2 1 2)) (b (b1 3)) (c (c1 4) (c2) (c3 5)))",
      "(root (a*0 0 1) (b*0.001 2*0.001 3*1000) (c (d (e (f 4 5)))))",
  };
  for (const std::string& tree : trees) {
    for (unsigned redundancy = 1; redundancy <= 7; ++redundancy) {
      const DistributionConfig config = config_of("redundancy:" + std::to_string(redundancy) + " " + tree);
      for (unsigned up = 0; up < 64; ++up) {
        ClusterState state = state_of("storage:6");
        std::size_t available = 0;
        for (std::uint16_t node = 0; node < 6; ++node) {
          const bool is_up = ((up >> node) & 1) != 0;
          if (!is_up) state.set_node_state(NodeId::storage(node), NodeState::Down);
          const bool has_no_capacity = tree.find("a*0 ") != std::string::npos && node < 2;
          if (is_up && !has_no_capacity) ++available;
        }
        for (std::uint64_t bucket = 0; bucket < 20; ++bucket) {
          const NodeList list = place(bucket, state, config);
          INFO(config << " | " << state << " | bucket " << bucket);
          REQUIRE(list.size() == std::min<std::size_t>(redundancy, available));
          REQUIRE(are_distinct(list));
          for (const std::uint16_t node : list) REQUIRE(state.is_up(NodeId::storage(node)));
        }
      }
    }
  }
}

TEST_CASE("placement: equal nodes get equal shares, for primaries and for all replicas", "[placement]") {
  for (const std::uint16_t count : std::initializer_list<std::uint16_t>{2, 3, 7, 10, 50, 200}) {
    const std::vector<NodeList> lists = place_all(state_of(nodes_of(count)), DistributionConfig::flat(count, 3));
    std::vector<double> primaries(count);
    for (const NodeList& list : lists) ++primaries[list.front()];
    const double replicas = std::min<double>(3, count);
    for (const auto& [node, replica_count] : replicas_by_node(lists)) {
      INFO(count << " nodes, node " << node);
      if (count > 3) CHECK(is_near(replica_count, kBuckets, replicas / count));
      CHECK(is_near(primaries[node], kBuckets, 1.0 / count));
    }
  }
}

TEST_CASE("placement: with 2 to 50 equal nodes and redundancy 3 the skew stays below a tenth", "[placement]") {
  for (std::uint16_t count = 2; count <= 50; ++count) {
    const auto counts = replicas_by_node(place_all(state_of(nodes_of(count)), DistributionConfig::flat(count, 3)));
    const auto [least, most] = std::minmax_element(counts.begin(), counts.end(),
                                                   [](const auto& a, const auto& b) { return a.second < b.second; });
    INFO(count << " nodes");
    CHECK((most->second - least->second) / most->second < 0.1);
  }
}

TEST_CASE("placement: first replicas follow the capacities of nodes, in the configuration and in the state",
          "[placement]") {
  const ClusterState state = state_of("storage:4 .3.c:2.5");
  const DistributionConfig config = config_of("redundancy:1 (root 0 1*3 2*0.5 3)");
  const auto counts = replicas_by_node(place_all(state, config));
  const std::vector<double> weights = {1, 3, 0.5, 2.5};
  for (std::uint16_t node = 0; node < 4; ++node) {
    INFO("node " << node);
    CHECK(is_near(counts.at(node), kBuckets, weights[node] / 7));
  }
}

TEST_CASE("placement: groups of capacity 1 and 4 share the buckets one to four", "[placement]") {
  const DistributionConfig config = config_of("redundancy:1 (root (a*1 0 1) (b*4 2 3))");
  const auto counts = replicas_by_node(place_all(state_of("storage:4"), config));
  CHECK(is_near(counts.at(0) + counts.at(1), kBuckets, 0.2));
  CHECK(is_near(counts.at(0), kBuckets, 0.1));
  CHECK(is_near(counts.at(2), kBuckets, 0.4));
}

TEST_CASE("placement: a group weighs as much as its nodes", "[placement]") {
  const DistributionConfig config = config_of("redundancy:1 (root (a (a1 0 1) (a2 2)) (b 3*5))");
  const auto counts = replicas_by_node(place_all(state_of("storage:4"), config));
  for (std::uint16_t node = 0; node < 3; ++node) CHECK(is_near(counts.at(node), kBuckets, 1.0 / 8));
  CHECK(is_near(counts.at(3), kBuckets, 5.0 / 8));
}

TEST_CASE("placement: replicas are in different groups as long as there are enough", "[placement]") {
  const DistributionConfig config = config_of("redundancy:3 (root (a 0 1 2) (b 3 4 5) (c 6 7 8) (d 9 10 11))");
  const auto rack = [](std::uint16_t node) { return node / 3; };
  ClusterState state = state_of("storage:12");
  for (int failed = 0; failed < 4; ++failed) {
    const std::size_t racks_up = static_cast<std::size_t>(4 - failed);
    for (const NodeList& list : place_all(state, config)) {
      std::map<int, int> per_rack;
      for (const std::uint16_t node : list) ++per_rack[rack(node)];
      REQUIRE(list.size() == 3);
      REQUIRE(per_rack.size() == std::min<std::size_t>(3, racks_up));
      // With two racks one of them has two replicas, and the first two of the list are in different racks.
      if (racks_up > 1) REQUIRE(rack(list[0]) != rack(list[1]));
    }
    for (int node = failed * 3; node < failed * 3 + 3; ++node) {
      state.set_node_state(NodeId::storage(static_cast<std::uint16_t>(node)), NodeState::Down);
    }
  }
}

TEST_CASE("placement: a node that is added gains its share and nothing else moves", "[placement]") {
  for (const std::uint16_t count : std::initializer_list<std::uint16_t>{3, 10, 40}) {
    const auto before = place_all(state_of(nodes_of(count)), DistributionConfig::flat(count, 3));
    const std::uint16_t more = static_cast<std::uint16_t>(count + 1);
    const auto after = place_all(state_of(nodes_of(more)), DistributionConfig::flat(more, 3));
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
      std::size_t kept = 0;
      for (const std::uint16_t node : after[bucket]) {
        if (before[bucket].contains(node))
          ++kept;
        else
          REQUIRE(node == count);
      }
      REQUIRE(kept + 1 >= before[bucket].size());
    }
    INFO(count << " nodes");
    CHECK(is_near(static_cast<double>(moved(before, after)), kBuckets, 3.0 / more));
    CHECK(static_cast<double>(moved(before, after)) <= 1.1 * static_cast<double>(least_movement(before, after)));
  }
}

TEST_CASE("placement: a node that is added but down changes no list", "[placement]") {
  const DistributionConfig config = DistributionConfig::flat(11, 3);
  CHECK(place_all(state_of("storage:10"), config) == place_all(state_of("storage:11 .10.s:d"), config));
  CHECK(place_all(state_of("storage:10"), config) == place_all(state_of("storage:11 .10.s:i"), config));
  CHECK(place_all(state_of("storage:10"), config) ==
        place_all(state_of("storage:10"), DistributionConfig::flat(10, 3)));
}

TEST_CASE("placement: when a node fails each of its buckets loses that node only and gains one", "[placement]") {
  const DistributionConfig config = DistributionConfig::flat(10, 3);
  const auto before = place_all(state_of("storage:10"), config);
  const auto after = place_all(state_of("storage:10 .0.s:d"), config);
  std::uint64_t lost = 0;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    std::vector<std::uint16_t> rest = before[bucket].to_vector();
    lost += std::erase(rest, 0);
    // The remaining nodes keep their order, and the new one comes last.
    const std::vector<std::uint16_t> now = after[bucket].to_vector();
    REQUIRE(std::equal(rest.begin(), rest.end(), now.begin()));
  }
  CHECK(moved(before, after) == lost);
  CHECK(static_cast<double>(moved(before, after)) <= 1.1 * static_cast<double>(least_movement(before, after)));
}

TEST_CASE("placement: a change of weight moves replicas only to or from that node", "[placement]") {
  const auto before = place_all(state_of("storage:10"), DistributionConfig::flat(10, 3));
  const auto after = place_all(state_of("storage:10 .4.c:2"), DistributionConfig::flat(10, 3));
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    for (const std::uint16_t node : after[bucket]) REQUIRE((node == 4 || before[bucket].contains(node)));
  }
  CHECK(static_cast<double>(moved(before, after)) <= 1.1 * static_cast<double>(least_movement(before, after)));
}

TEST_CASE("placement: in a hierarchy the failure of a node is carried by its own group", "[placement]") {
  const DistributionConfig config = config_of("redundancy:2 (root (a (a1 0) (a2 1)) (b (b1 2) (b2 3)))");
  const auto before = place_all(state_of("storage:4"), config);
  const auto after = place_all(state_of("storage:4 .0.s:d"), config);
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    REQUIRE(after[bucket].contains(1));
    for (const std::uint16_t node : std::initializer_list<std::uint16_t>{1, 2, 3}) {
      if (before[bucket].contains(node)) REQUIRE(after[bucket].contains(node));
    }
  }
}

TEST_CASE("placement: a group keeps its share while one of its nodes is down", "[placement]") {
  const DistributionConfig config = config_of("redundancy:2 (root (a 0-3) (b 4-7) (c (c1 8 9) (c2 10 11)))");
  const auto before = place_all(state_of("storage:12"), config);
  for (const char* state : {"storage:12 .1.s:d", "storage:12 .10.s:d", "storage:12 .11.s:m"}) {
    const auto after = place_all(state_of(state), config);
    const ClusterState with_failure = state_of(state);
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
      for (std::size_t i = 0; i < 2; ++i) {
        const std::uint16_t node = before[bucket][i];
        REQUIRE(node / 4 == after[bucket][i] / 4);
        if (with_failure.is_up(NodeId::storage(node))) REQUIRE(after[bucket][i] == node);
      }
    }
  }
}

TEST_CASE("placement: a new host in a hierarchy moves little more than its share", "[placement]") {
  const auto before = place_all(state_of("storage:30"), config_of("redundancy:3 (root (a 0-9) (b 10-19) (c 20-29))"));
  const auto host = place_all(state_of("storage:31"), config_of("redundancy:3 (root (a 0-9 30) (b 10-19) (c 20-29))"));
  const auto rack =
      place_all(state_of("storage:40"), config_of("redundancy:3 (root (a 0-9) (b 10-19) (c 20-29) (d 30-39))"));
  for (const auto& after : {host, rack}) {
    CHECK(static_cast<double>(moved(before, after)) <= 1.1 * static_cast<double>(least_movement(before, after)));
  }
}

TEST_CASE("placement: with two racks of three every node is first about equally often", "[placement]") {
  const auto lists = place_all(state_of("storage:6"), config_of("redundancy:4 (root (a 0-2) (b 3-5))"));
  std::vector<double> first(6);
  for (const NodeList& list : lists) ++first[list.front()];
  for (const double count : first) CHECK(is_near(count, kBuckets, 1.0 / 6));
}

TEST_CASE("placement: redundancy above the number of nodes puts every bucket on all that are up", "[placement]") {
  const auto all = [](const NodeList& list) { return std::set(list.begin(), list.end()); };
  const DistributionConfig flat = DistributionConfig::flat(3, 3);
  CHECK(all(place(5, state_of("storage:3"), flat)) == std::set<std::uint16_t>{0, 1, 2});
  CHECK(all(place(5, state_of("storage:3 .1.s:d"), flat)) == std::set<std::uint16_t>{0, 2});
  const DistributionConfig racks = config_of("redundancy:6 (root (a 0-2) (b 3-5))");
  CHECK(all(place(5, state_of("storage:6 .1.s:d .5.s:d"), racks)) == std::set<std::uint16_t>{0, 2, 3, 4});
  const DistributionConfig switches = config_of("redundancy:4 (root (a (a1 0) (a2 1)) (b (b1 2) (b2 3)))");
  CHECK(all(place(5, state_of("storage:4 .2.s:d"), switches)) == std::set<std::uint16_t>{0, 1, 3});
}

TEST_CASE("placement: split buckets stay where they are", "[placement]") {
  const ClusterState state = state_of("bits:16 storage:10 distributor:10");
  const DistributionConfig config = DistributionConfig::flat(10, 3);
  const std::uint64_t location = 0x2a5c3f17b2469ULL;
  for (unsigned bits = 16; bits <= 58; ++bits) {
    const BucketId bucket(bits, location);
    CHECK(Straw2Placement().ideal_nodes(bucket, state, config) == place(location & 0xffff, state, config));
    CHECK(distributor_of(bucket, state) == distributor_of(BucketId(16, location), state));
  }
  CHECK(placement_key(BucketId(20, 0xfffff), 8) == 0xff);
  CHECK(placement_key(BucketId(4, 0xfffff), 8) == 0xf);
}

TEST_CASE("ownership: only distributors that are up own buckets, in equal shares", "[placement]") {
  CHECK_FALSE(distributor_of(BucketId(kBits, 1), state_of("storage:4")));
  CHECK_FALSE(distributor_of(BucketId(kBits, 1), state_of("distributor:1 .0.s:s")));
  const ClusterState state = state_of("distributor:8 .1.s:i .2.s:d .3.s:r .4.s:m .5.s:s");
  std::map<std::uint16_t, double> counts;
  for (std::uint64_t bucket = 0; bucket < kBuckets; ++bucket)
    ++counts[distributor_of(BucketId(kBits, bucket), state).value()];
  REQUIRE(counts.size() == 3);
  for (const std::uint16_t node : std::initializer_list<std::uint16_t>{0, 6, 7})
    CHECK(is_near(counts.at(node), kBuckets, 1.0 / 3));
}

TEST_CASE("ownership: when a distributor fails only its buckets change owner", "[placement]") {
  const ClusterState before = state_of("distributor:4");
  const ClusterState after = state_of("distributor:4 .2.s:d");
  for (std::uint64_t number = 0; number < kBuckets; ++number) {
    const BucketId bucket(kBits, number);
    const auto old_owner = distributor_of(bucket, before);
    if (old_owner == 2)
      REQUIRE(distributor_of(bucket, after) != 2);
    else
      REQUIRE(distributor_of(bucket, after) == old_owner);
  }
}

}  // namespace fjord
