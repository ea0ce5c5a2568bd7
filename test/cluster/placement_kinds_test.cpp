// Guarantees of every placement algorithm, and the differences between them.

#include <set>

#include "placement/murmur3.h"
#include "placement_tools.h"

namespace fjord {
namespace {

using test::config_of;
using test::is_near;
using test::name_of;
using test::range;
using test::state_of;
using test::storage;

constexpr unsigned kBits = 14;
constexpr double kBuckets = 1 << kBits;

std::string config_text(PlacementKind kind, unsigned redundancy, const std::string& tree) {
  return "redundancy:" + std::to_string(redundancy) + " algorithm:" + name_of(kind) + " " + tree;
}

std::vector<NodeList> place_all(PlacementKind kind, unsigned redundancy, const std::string& tree,
                                const std::string& state) {
  return place_all_buckets(state_of(state), config_of(config_text(kind, redundancy, tree)));
}

/// Returns the number of moved replicas as a multiple of the least possible number.
double movement(const std::vector<NodeList>& before, const std::vector<NodeList>& after, double least) {
  return static_cast<double>(moved_replicas(before, after)) / least;
}

std::uint64_t replicas_of(const std::vector<NodeList>& lists, std::size_t node) {
  return replicas_by_node(lists)[node];
}

double max_over_mean(const std::vector<NodeList>& lists, std::size_t nodes) {
  const std::vector<double> shares(nodes, 1.0 / static_cast<double>(nodes));
  return balance_of(replicas_by_node(lists), shares).max_over_mean;
}

}  // namespace

TEST_CASE("placement kinds: as many distinct available nodes as there should be, in every tree", "[placement]") {
  const std::vector<std::string> trees = {
      "(root 0 1 2 3 4 5)",
      "(root (a 0 1) (b 2 3) (c 4 5))",
      "(root (a 0 1 2 3 4) (b 5))",
      "(root (a (a1 0) (a2 1 2)) (b (b1 3)) (c (c1 4) (c2) (c3 5)))",
      "(root (a*0 0 1) (b*0.001 2*0.001 3*1000) (c (d (e (f 4 5)))))",
  };
  for (const PlacementKind kind : kPlacementKinds) {
    for (const std::string& tree : trees) {
      for (unsigned redundancy = 1; redundancy <= 7; ++redundancy) {
        const DistributionConfig config = config_of(config_text(kind, redundancy, tree));
        for (unsigned up = 0; up < 64; ++up) {
          ClusterState state = state_of("bits:4 storage:6");
          std::size_t available = 0;
          for (std::uint16_t node = 0; node < 6; ++node) {
            const bool is_up = ((up >> node) & 1) != 0;
            if (!is_up) state.set_node_state(NodeId::storage(node), NodeState::Down);
            if (is_up && !(tree.find("a*0 ") != std::string::npos && node < 2)) ++available;
          }
          INFO(config << " | " << state);
          for (const NodeList& list : place_all_buckets(state, config)) {
            REQUIRE(list.size() == std::min<std::size_t>(redundancy, available));
            REQUIRE(std::set(list.begin(), list.end()).size() == list.size());
            for (const std::uint16_t node : list) {
              REQUIRE(state.is_up(NodeId::storage(node)));
              REQUIRE_FALSE((node < 2 && tree.find("a*0 ") != std::string::npos));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("placement kinds: a prepared map and a single question have the same answer", "[placement]") {
  const std::string tree = "(root (a (a1 0 1*2) (a2 2 3)) (b*0.5 (b1 4 5 6*0.1)) (c (c1 7) (c2 8 9)))";
  const auto state = std::make_shared<const ClusterState>(state_of("bits:8 storage:10 .3.s:d .5.c:3 except:7=1>8"));
  for (const PlacementKind kind : kPlacementKinds) {
    INFO(kind);
    const auto config = std::make_shared<const DistributionConfig>(config_of(config_text(kind, 3, tree)));
    const auto map = placement_algorithm().prepare(state, config);
    const auto other = placement_algorithm(kind).prepare(state, config);
    for (std::uint64_t number = 0; number < 256; ++number) {
      const BucketId bucket(20, number);
      REQUIRE(map->ideal_nodes(bucket) == placement_algorithm().ideal_nodes(bucket, *state, *config));
      REQUIRE(map->ideal_nodes(bucket) == other->ideal_nodes(bucket));
      REQUIRE(map->ideal_nodes(bucket) == placement_algorithm(kind).ideal_nodes(bucket, *state, *config));
      if (kind == PlacementKind::Straw2) {
        REQUIRE(map->ideal_nodes(bucket) == Straw2Placement().ideal_nodes(bucket, *state, *config));
      }
    }
  }
}

TEST_CASE("placement kinds: I12, replicas are in different groups as long as there are enough", "[placement]") {
  const std::string tree = "(root (a 0-2) (b 3-5) (c 6-8) (d 9-11))";
  for (const PlacementKind kind : kPlacementKinds) {
    // RUSH takes the groups as batches, and does not keep replicas in different ones.
    if (kind == PlacementKind::Rush) continue;
    for (const auto& [state, racks] : {std::pair("storage:12", 4),
                                       {"storage:12 .3.s:d .4.s:d .5.s:d", 3},
                                       {"storage:12 .3.s:d .4.s:d .5.s:d .9.s:d .10.s:d .11.s:d", 2}}) {
      INFO(kind << " " << state);
      for (const NodeList& list : place_all(kind, 3, tree, std::string("bits:10 ") + state)) {
        std::map<int, int> replicas;
        for (const std::uint16_t node : list) ++replicas[node / 3];
        REQUIRE(replicas.size() == std::min<std::size_t>(3, static_cast<std::size_t>(racks)));
        REQUIRE(list[0] / 3 != list[1] / 3);
      }
    }
  }
}

TEST_CASE("placement kinds: equal nodes are as even as the algorithm promises", "[placement]") {
  for (const PlacementKind kind : kPlacementKinds) {
    for (const unsigned count : {10u, 50u}) {
      const auto lists = place_all(kind, 3, "(root " + range(0, count) + ")", storage(count, kBits));
      INFO(kind << ", " << count << " nodes: " << max_over_mean(lists, count));
      if (kind == PlacementKind::Modulo) {
        CHECK(max_over_mean(lists, count) < 1.002);
      } else if (kind == PlacementKind::Consistent) {
        // The shares that the nodes have of the ring vary by 1 / sqrt(tokens).
        CHECK(max_over_mean(lists, count) < 1 + 4 / std::sqrt(200.0));
        CHECK(max_over_mean(lists, count) > 1.04);
      } else {
        for (const std::uint64_t replicas : replicas_by_node(lists)) {
          CHECK(is_near(static_cast<double>(replicas), kBuckets, 3.0 / count));
        }
      }
    }
  }
}

TEST_CASE("placement kinds: first replicas follow the capacities where the algorithm knows any", "[placement]") {
  const std::vector<double> weights = {1, 3, 0.5, 2.5};
  for (const PlacementKind kind : kPlacementKinds) {
    const auto counts = replicas_by_node(
        place_all(kind, 1, "(root 0 1*3 2*0.5 3)", "bits:" + std::to_string(kBits) + " storage:4 .3.c:2.5"));
    for (std::size_t node = 0; node < 4; ++node) {
      INFO(kind << ", node " << node << ": " << counts[node]);
      const double count = static_cast<double>(counts[node]);
      if (kind == PlacementKind::Uniform || kind == PlacementKind::Modulo || kind == PlacementKind::Rush) {
        CHECK(is_near(count, kBuckets, 0.25));
      } else if (kind == PlacementKind::Consistent) {
        CHECK(count / kBuckets == Approx(weights[node] / 7).epsilon(0.3));
      } else {
        CHECK(is_near(count, kBuckets, weights[node] / 7));
      }
    }
  }
  // The weight of a RUSH batch is the sum of its nodes' weights; the nodes share it equally.
  const auto rush =
      replicas_by_node(place_all(PlacementKind::Rush, 1, "(root (a*2 0 1) (b 2 3*3))", storage(4, kBits)));
  for (const std::uint64_t count : rush) CHECK(is_near(static_cast<double>(count), kBuckets, 0.25));
}

TEST_CASE("placement kinds: groups share in proportion to their capacities", "[placement]") {
  for (const PlacementKind kind : {PlacementKind::Straw2, PlacementKind::List, PlacementKind::Tree,
                                   PlacementKind::Consistent, PlacementKind::Rendezvous, PlacementKind::Rush}) {
    INFO(kind);
    const auto counts = replicas_by_node(place_all(kind, 1, "(root (a 0 1) (b*4 2 3))", storage(4, kBits)));
    CHECK(static_cast<double>(counts[0] + counts[1]) / kBuckets == Approx(0.2).epsilon(0.15));
  }
}

TEST_CASE("placement kinds: a node that fails loses its replicas, nothing else moves", "[placement]") {
  for (const PlacementKind kind : kPlacementKinds) {
    INFO(kind);
    const auto before = place_all(kind, 3, "(root 0-19)", storage(20, kBits));
    const auto after = place_all(kind, 3, "(root 0-19)", storage(20, kBits) + " .7.s:d");
    for (std::size_t bucket = 0; bucket < before.size(); ++bucket) {
      std::vector<std::uint16_t> kept = before[bucket].to_vector();
      std::erase(kept, 7);
      const std::vector<std::uint16_t> now = after[bucket].to_vector();
      REQUIRE(std::equal(kept.begin(), kept.end(), now.begin()));
    }
    CHECK(moved_replicas(before, after) == replicas_of(before, 7));
  }
}

TEST_CASE("placement kinds: what a new node moves tells the algorithms apart", "[placement]") {
  const std::map<PlacementKind, std::pair<double, double>> bounds = {
      {PlacementKind::Straw2, {0.9, 1.1}}, {PlacementKind::Rendezvous, {0.9, 1.1}},
      {PlacementKind::List, {0.9, 1.1}},   {PlacementKind::Consistent, {0.7, 1.3}},
      {PlacementKind::Rush, {0.9, 1.2}},   {PlacementKind::Tree, {0.9, 3.0}},
      {PlacementKind::Uniform, {10, 30}},  {PlacementKind::Modulo, {10, 30}},
  };
  for (const auto& [kind, bound] : bounds) {
    const bool is_rush = kind == PlacementKind::Rush;
    const auto before = place_all(kind, 3, is_rush ? "(root (a 0-19))" : "(root 0-19)", storage(20, kBits));
    const auto after = place_all(kind, 3, is_rush ? "(root (a 0-19) (b 20))" : "(root 0-20)", storage(21, kBits));
    const double moved = movement(before, after, kBuckets * 3 / 21);
    INFO(kind << " moves " << moved << " times the least");
    CHECK(moved >= bound.first);
    CHECK(moved <= bound.second);
  }
}

TEST_CASE("placement kinds: what a node that is taken out moves tells the algorithms apart", "[placement]") {
  const std::map<PlacementKind, std::pair<double, double>> bounds = {
      {PlacementKind::Straw2, {1.0, 1.1}},
      {PlacementKind::Rendezvous, {1.0, 1.1}},
      {PlacementKind::Consistent, {1, 1.1}},
      {PlacementKind::Uniform, {10, 30}},
      {PlacementKind::Modulo, {5, 30}},
      // In a list, the removal of a middle node also moves replicas from the older half to the newer one.
      {PlacementKind::List, {1.0, 3.0}},
  };
  for (const auto& [kind, bound] : bounds) {
    const auto before = place_all(kind, 3, "(root 0-20)", storage(21, kBits));
    const auto after = place_all(kind, 3, "(root 0-9 11-20)", storage(21, kBits));
    const double moved = movement(before, after, static_cast<double>(replicas_of(before, 10)));
    INFO(kind << " moves " << moved << " times the least");
    CHECK(moved >= bound.first);
    CHECK(moved <= bound.second);
  }
  // In a tree, a node with capacity 0 keeps its place; if the node is deleted instead, all nodes behind it move up.
  const auto before = place_all(PlacementKind::Tree, 3, "(root 0-20)", storage(21, kBits));
  const auto closed = place_all(PlacementKind::Tree, 3, "(root 0-9 10*0 11-20)", storage(21, kBits));
  const auto deleted = place_all(PlacementKind::Tree, 3, "(root 0-9 11-20)", storage(21, kBits));
  const double least = static_cast<double>(replicas_of(before, 10));
  CHECK(movement(before, closed, least) < 3);
  CHECK(movement(before, deleted, least) > 3);
}

TEST_CASE("placement kinds: a change of weight moves little, or nothing if weights do not count", "[placement]") {
  for (const PlacementKind kind : kPlacementKinds) {
    const auto before = place_all(kind, 3, "(root 0-19)", storage(20, kBits));
    const auto after = place_all(kind, 3, "(root 0-9 10*2 11-19)", storage(20, kBits));
    const double moved = movement(before, after, kBuckets * 3 * (2.0 / 21 - 1.0 / 20));
    INFO(kind << " moves " << moved << " times the least");
    if (kind == PlacementKind::Uniform || kind == PlacementKind::Modulo || kind == PlacementKind::Rush) {
      CHECK(moved == 0);
    } else {
      CHECK(moved > 0.7);
      const bool is_optimal = kind == PlacementKind::Straw2 || kind == PlacementKind::Rendezvous;
      CHECK(moved < (is_optimal ? 1.1 : kind == PlacementKind::Consistent ? 1.4 : 3.0));
    }
  }
}

TEST_CASE("placement kinds: buckets never move between releases", "[placement][golden]") {
  const std::string tree = "(root (rack_a (host_1 0 1 2) (host_2 3*2 4)) (rack_b*1.5 5 6 7*0.5 8) (rack_c 9 10))";
  struct Golden {
    std::string algorithm;
    std::vector<NodeList> lists;  // Ideal nodes of the buckets 0, 1, 2, 100, 12345 and 65535.
  };
  const std::vector<Golden> golden = {
      {"straw2", {{1, 10, 8}, {9, 8, 1}, {2, 10, 6}, {0, 6, 10}, {10, 4, 8}, {5, 2, 10}}},
      {"uniform", {{3, 9, 7}, {7, 10, 0}, {8, 9, 2}, {4, 6, 10}, {0, 6, 9}, {9, 4, 6}}},
      {"list", {{1, 6, 9}, {0, 5, 10}, {7, 4, 9}, {3, 8, 10}, {8, 9, 3}, {6, 0, 9}}},
      {"tree", {{7, 0, 9}, {2, 8, 9}, {0, 9, 5}, {5, 10, 4}, {1, 5, 10}, {5, 2, 10}}},
      {"rush", {{2, 8, 0}, {0, 8, 1}, {7, 4, 5}, {3, 2, 5}, {7, 9, 5}, {7, 4, 10}}},
      {"modulo", {{0, 5, 9}, {5, 9, 1}, {9, 1, 6}, {5, 9, 1}, {1, 6, 10}, {3, 8, 9}}},
      {"consistent", {{2, 8, 10}, {9, 3, 5}, {3, 5, 10}, {10, 2, 5}, {8, 3, 10}, {8, 9, 4}}},
      {"rendezvous", {{8, 10, 1}, {8, 1, 9}, {3, 6, 10}, {4, 6, 10}, {8, 10, 4}, {10, 2, 5}}},
      {"consistent*50", {{10, 7, 1}, {5, 4, 9}, {3, 10, 8}, {2, 6, 9}, {0, 9, 6}, {8, 4, 9}}},
      {"list,tree,uniform", {{2, 7, 9}, {0, 8, 9}, {5, 2, 9}, {4, 5, 10}, {5, 10, 0}, {5, 2, 10}}},
  };
  const std::vector<std::uint64_t> buckets = {0, 1, 2, 100, 12345, 65535};
  for (const Golden& row : golden) {
    const DistributionConfig config = config_of("redundancy:3 algorithm:" + row.algorithm + " " + tree);
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const NodeList list = placement_algorithm().ideal_nodes(BucketId(16, buckets[i]), state_of("storage:11"), config);
      INFO(row.algorithm << ", bucket " << buckets[i]);
      CHECK(list.to_vector() == row.lists[i].to_vector());
    }
  }
}

TEST_CASE("placement kinds: algorithms are chosen by level", "[placement]") {
  const std::string tree = "(root (a 0-4) (b 5-9) (c 10-14))";
  const auto mixed = [&](const std::string& levels, const std::string& nodes) {
    return place_all_buckets(state_of("bits:10 storage:15"),
                             config_of("redundancy:2 algorithm:" + levels + " " + nodes));
  };
  const auto straw_uniform = mixed("straw2,uniform", tree);
  const auto straw = mixed("straw2", tree);
  bool differs = false;
  for (std::size_t bucket = 0; bucket < straw.size(); ++bucket) {
    for (std::size_t i = 0; i < 2; ++i) {
      REQUIRE(straw_uniform[bucket][i] / 5 == straw[bucket][i] / 5);  // Both algorithms choose the racks by straw2.
      differs |= straw_uniform[bucket][i] != straw[bucket][i];
    }
  }
  CHECK(differs);
  // One more rack at the end: all moved replicas go to it, as straw2 chooses the racks.
  const auto more = mixed("straw2,uniform", "(root (a 0-4) (b 5-9) (c 10-13))");
  CHECK(moved_replicas(straw_uniform, more) < 1024);
}

TEST_CASE("placement rules: take, select and emit", "[placement]") {
  const std::string tree = "(root (local (l1 0-2) (l2 3-5)) (remote (r1 6-8) (r2 9-11)))";
  const auto place = [&](const std::string& rule, unsigned redundancy, const std::string& state = "") {
    return place_all_buckets(state_of("bits:8 storage:12" + state),
                             config_of("redundancy:" + std::to_string(redundancy) + " rule:" + rule + " " + tree));
  };
  const auto site = [](std::uint16_t node) { return node / 6; };
  const auto host = [](std::uint16_t node) { return node / 3; };
  for (const NodeList& list : place("take(local);select(2,node);emit;take(remote);select(1,node);emit", 3)) {
    REQUIRE(list.size() == 3);
    REQUIRE((site(list[0]) == 0 && site(list[1]) == 0 && site(list[2]) == 1));
    REQUIRE(host(list[0]) != host(list[1]));
  }
  for (const NodeList& list : place("take(root);select(1,1);select(2,2);select(2,node);emit", 4)) {
    REQUIRE(list.size() == 4);
    for (const std::uint16_t node : list) REQUIRE(site(node) == site(list[0]));
    REQUIRE((host(list[0]) == host(list[1]) && host(list[2]) == host(list[3]) && host(list[0]) != host(list[2])));
  }
  // select(0, ...) selects as many as the redundancy says. If a rule gives too few nodes, the placement adds others.
  for (const NodeList& list : place("take(root);select(0,2);select(1,node);emit", 3)) {
    REQUIRE(std::set({host(list[0]), host(list[1]), host(list[2])}).size() == 3);
  }
  for (const NodeList& list : place("take(local);select(1,node);emit", 3)) {
    REQUIRE(list.size() == 3);
    REQUIRE(site(list[0]) == 0);
    REQUIRE(std::set(list.begin(), list.end()).size() == 3);
  }
  const std::string remote_down = " .6.s:d .7.s:d .8.s:d .9.s:d .10.s:d .11.s:d";
  for (const NodeList& list :
       place("take(local);select(2,node);emit;take(remote);select(1,node);emit", 3, remote_down)) {
    REQUIRE(list.size() == 3);
    for (const std::uint16_t node : list) REQUIRE(site(node) == 0);
  }
  // The default rule takes all nodes from the root.
  CHECK(place("take(root);select(0,node);emit", 3) ==
        place_all_buckets(state_of("bits:8 storage:12"), config_of("redundancy:3 " + tree)));
}

TEST_CASE("consistent hashing: more tokens make it more even", "[placement]") {
  const auto unevenness = [](const std::string& tokens) {
    return max_over_mean(place_all_buckets(state_of(storage(10, kBits)),
                                           config_of("redundancy:1 algorithm:consistent*" + tokens + " (root 0-9)")),
                         10);
  };
  CHECK(unevenness("1") > 1.5);
  CHECK(unevenness("50") < 1.4);
  CHECK(unevenness("1000") < 1.1);
}

TEST_CASE("murmur3: the verification value of the published suite", "[placement][golden]") {
  // As SMHasher does: hashes the keys {}, {0}, {0, 1}, ... with the seeds 256, 255, ..., then hashes all the hashes.
  std::string key;
  std::string hashes;
  for (unsigned i = 0; i < 256; ++i) {
    const Murmur3Hash hash = murmur3_128(key, 256 - i);
    for (const std::uint64_t half : {hash.low, hash.high}) {
      for (unsigned byte = 0; byte < 8; ++byte) hashes += static_cast<char>(half >> (8 * byte));
    }
    key += static_cast<char>(i);
  }
  CHECK((murmur3_128(hashes).low & 0xffffffff) == 0x6384BA69);
  CHECK(murmur3_128("") == Murmur3Hash{0, 0});
}

}  // namespace fjord
