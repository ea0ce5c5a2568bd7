#include "maintenance/need.h"

#include <catch2/catch.hpp>

namespace fjord::distributor {
namespace {

/// Returns an entry whose ideal nodes are 1 and 2.
BucketEntry entry_on(std::vector<std::uint16_t> members) {
  BucketEntry entry;
  entry.activity = activity::Idle{};
  entry.set.nodes = std::move(members);
  return entry;
}

const std::vector<std::uint16_t> kIdeal{1, 2};

}  // namespace

TEST_CASE("need: a bucket on its ideal nodes needs nothing") {
  CHECK(need_of(entry_on({1, 2}), kIdeal) == Need::None);
  CHECK(need_of(entry_on({2, 1}), kIdeal) == Need::None);
}

TEST_CASE("need: a missing replica comes before everything else, the fewest members first") {
  BucketEntry two_short = entry_on({1});
  two_short.catching_up = {2, 3};
  two_short.dirty = true;
  BucketEntry one_short = entry_on({1, 4});
  one_short.catching_up = {2};
  const std::vector<std::uint16_t> ideal{1, 2, 3};
  REQUIRE(need_of(two_short, ideal) == Need::Restore);
  REQUIRE(need_of(one_short, ideal) == Need::Restore);
  CHECK(priority_of(two_short, Need::Restore) < priority_of(one_short, Need::Restore));
  CHECK(priority_of(one_short, Need::Restore) < priority_of(one_short, Need::Repair));
  CHECK(is_for_safety(Need::Restore));
}

TEST_CASE("need: a damaged member counts as missing while another replica is being filled") {
  BucketEntry entry = entry_on({1, 4});
  entry.catching_up = {2};
  entry.damaged = {4};
  CHECK(need_of(entry, kIdeal) == Need::Restore);
}

TEST_CASE("need: damage, then differences, then places, then what is left over") {
  BucketEntry entry = entry_on({1, 4});
  entry.misplaced = true;
  entry.obsolete = {5};
  CHECK(need_of(entry, kIdeal) == Need::Move);
  CHECK_FALSE(is_for_safety(Need::Move));
  entry.catching_up = {2};
  CHECK(need_of(entry, kIdeal) == Need::Move);  // Two members are in sync, but one of them is not on an ideal node.
  entry.unsettled = true;
  CHECK(need_of(entry, kIdeal) == Need::Sync);
  BucketEntry damaged = entry_on({1, 2});
  damaged.damaged = {2};
  damaged.dirty = true;
  CHECK(need_of(damaged, kIdeal) == Need::Repair);
  BucketEntry left_over = entry_on({1, 2});
  left_over.obsolete = {5};
  CHECK(need_of(left_over, kIdeal) == Need::Delete);
  CHECK_FALSE(is_for_safety(Need::Delete));
  unsigned before = 0;
  for (Need need : {Need::Repair, Need::Sync, Need::Move, Need::Delete}) {
    CHECK(priority_of(left_over, need) > before);
    before = priority_of(left_over, need);
  }
}

}  // namespace fjord::distributor
