#include <numeric>

#include "placement_tools.h"

namespace fjord {

TEST_CASE("placement: a million buckets of a thousand nodes settle after a rack is lost", "[placement]") {
  constexpr unsigned kBits = 20;
  std::string tree = "(root";
  for (unsigned rack = 0; rack < 10; ++rack) {
    tree += " (rack" + std::to_string(rack);
    for (unsigned host = 0; host < 10; ++host) {
      const unsigned first = rack * 100 + host * 10;
      tree += " (host" + std::to_string(rack * 10 + host) + " " + test::range(first, 10) + ")";
    }
    tree += ")";
  }
  const DistributionConfig config = test::config_of("redundancy:3 " + tree + ")");
  const auto rack_of = [](std::uint16_t node) { return node / 100; };
  ClusterState state = test::state_of(test::storage(1000, kBits));
  const std::vector<NodeList> before = place_all_buckets(state, config);
  std::uint64_t lost = 0;
  for (const NodeList& list : before) {
    for (const std::uint16_t node : list) lost += rack_of(node) == 4 ? 1 : 0;
  }
  for (std::uint16_t node = 400; node < 500; ++node) state.set_node_state(NodeId::storage(node), NodeState::Down);
  const std::vector<NodeList> after = place_all_buckets(state, config);

  std::size_t wrong = 0;
  for (const NodeList& list : after) {
    const bool is_right = list.size() == 3 && rack_of(list[0]) != rack_of(list[1]) &&
                          rack_of(list[0]) != rack_of(list[2]) && rack_of(list[1]) != rack_of(list[2]);
    bool is_on_lost = false;
    for (const std::uint16_t node : list) is_on_lost |= rack_of(node) == 4;
    wrong += is_right && !is_on_lost ? 0 : 1;
  }
  CHECK(wrong == 0);
  // Each lost replica gets one new place and no other replica moves, which is the least possible.
  CHECK(moved_replicas(before, after) == lost);
  CHECK(test::is_near(static_cast<double>(lost), 1 << kBits, 0.3));
  const PlacementBalance balance = balance_of(replicas_by_node(after), fair_shares(state, config));
  CHECK(balance.max_over_mean < 1.08);  // A node has 3495 replicas on average, so one standard deviation is 1.7 %.
  CHECK(balance.min_over_mean > 0.92);
}

}  // namespace fjord
