#include "operations/read_choice.h"

#include <catch2/catch.hpp>
#include <map>

namespace fjord::test {
namespace {

using distributor::choose_by_share;
using distributor::read_shares_of;

/// Returns, for 10,000 choices, how often each node was chosen.
std::map<std::uint16_t, int> counts(const std::vector<std::uint16_t>& nodes, const std::vector<ReadShare>& shares) {
  Random random(7);
  std::map<std::uint16_t, int> counts;
  for (int i = 0; i < 10'000; ++i) ++counts[choose_by_share(nodes, shares, random)];
  return counts;
}

}  // namespace

TEST_CASE("read choice: replicas are chosen as often as their shares say") {
  auto chosen = counts({4, 7, 8, 9}, {{1, 4, 200}, {1, 7, 300}, {1, 9, 500}});
  CHECK(chosen[4] > 1800);
  CHECK(chosen[4] < 2200);
  CHECK(chosen[7] > 2800);
  CHECK(chosen[7] < 3200);
  CHECK(chosen[9] == 10'000 - chosen[4] - chosen[7]);
  // The share of a node that may not be read now goes to the others in proportion.
  chosen = counts({4, 9}, {{1, 4, 100}, {1, 7, 800}, {1, 9, 300}});
  CHECK(chosen[4] > 2300);
  CHECK(chosen[4] < 2700);
}

TEST_CASE("read choice: without shares all are chosen alike, also if rows are about other nodes") {
  for (const std::vector<ReadShare>& shares :
       {std::vector<ReadShare>{}, std::vector<ReadShare>{{1, 2, 1000}}, std::vector<ReadShare>{{1, 4, 0}}}) {
    auto chosen = counts({4, 7}, shares);
    CHECK(chosen[4] > 4700);
    CHECK(chosen[7] > 4700);
  }
  CHECK(counts({4}, {{1, 7, 1000}})[4] == 10'000);
}

TEST_CASE("read choice: a split bucket has the shares of its distribution bucket") {
  const auto state = ClusterState::parse("bits:4 read:5=1*1000 storage:2").value();
  CHECK(read_shares_of(BucketId(4, 5), state).size() == 1);
  CHECK(read_shares_of(BucketId(7, 0x35), state).size() == 1);
  CHECK(read_shares_of(BucketId(7, 0x36), state).empty());
  CHECK(read_shares_of(BucketId(3, 5), state).empty());
  CHECK(read_shares_of(BucketId(4, 5), ClusterState::parse("bits:4 storage:2").value()).empty());
}

}  // namespace fjord::test
