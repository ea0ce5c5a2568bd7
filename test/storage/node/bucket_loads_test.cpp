// Loads of buckets: nothing is counted twice, and nothing is lost when buckets or distribution bits change.

#include "bucket_loads.h"

#include <catch2/catch.hpp>

#include "fjord/storage/storage_node.h"
#include "storage/node/node_world.h"

namespace fjord::test {
namespace {

using storage::add;
using storage::BucketLoads;

rpc::BucketLoad sum_of(const std::vector<rpc::BucketLoad>& loads) {
  rpc::BucketLoad sum;
  for (const rpc::BucketLoad& load : loads) add(sum, load);
  return sum;
}

std::uint64_t epoch(std::uint64_t step) { return ReplicaSet::make_epoch(4, step); }

/// Returns the load of a bucket; an empty one if the answer has none.
rpc::BucketLoad load_of(const rpc::GetLoadsReply& reply, std::uint64_t bucket) {
  for (const rpc::BucketLoad& load : reply.buckets) {
    if (load.bucket == bucket) return load;
  }
  return {};
}

}  // namespace

TEST_CASE("bucket loads: a change of the distribution bits loses no count and makes none") {
  BucketLoads loads;
  loads.set_bits(3);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    loads.add_read(BucketId(6, i * 7), 900 + i, i);
    loads.add_write(BucketId(6, i * i), 1700 + i, 2 * i);
    loads.add_search(BucketId(6, i * 5), 300 + i, i % 3, i % 2);
  }
  const rpc::BucketLoad total = loads.total();
  CHECK(total.reads == 1000);
  CHECK(total.writes == 1000);
  CHECK(total.search_candidates == 999);
  CHECK(total.search_pages == 500);
  CHECK(total.search_ns == 799'500);
  CHECK(sum_of(loads.counts()) == total);
  const std::vector<rpc::BucketLoad> by_three = loads.counts();

  loads.set_bits(5);
  REQUIRE(loads.counts().size() == 32);
  CHECK(sum_of(loads.counts()) == total);
  for (std::uint64_t bucket = 0; bucket < 8; ++bucket) {
    rpc::BucketLoad parts{.bucket = bucket};
    for (std::uint64_t high = 0; high < 4; ++high) add(parts, loads.counts()[bucket | high << 3]);
    CHECK(parts == by_three[bucket]);
  }
  loads.set_bits(2);
  CHECK(loads.counts().size() == 4);
  CHECK(sum_of(loads.counts()) == total);
  loads.set_bits(40);
  CHECK(loads.bits() == BucketLoads::kBitsMax);
  CHECK(sum_of(loads.counts()) == total);
}

TEST_CASE("bucket loads: a node counts each operation that it executes once, by bucket and in all") {
  storage::StorageNodeOptions options;
  options.stripes = 2;
  NodeWorld nodes(1, options);
  nodes.give_state(4);
  for (std::uint64_t bucket : {1, 2}) REQUIRE(nodes.install(0, 4, BucketId(3, bucket), {epoch(1), {0, 1}}));
  for (int i = 0; i < 5; ++i) {
    REQUIRE(nodes.apply_one(0, 4, put_of(id_in(1, i), static_cast<std::uint64_t>(10 + i), "text", epoch(1))).status);
  }
  REQUIRE(nodes.apply_one(0, 4, put_of(id_in(2, 0), 20, "text", epoch(1))).status);
  for (int i = 0; i < 3; ++i) REQUIRE(nodes.apply_one(0, 4, get_of(id_in(2, 0), epoch(1))).status);
  // Refused operations are not executed.
  CHECK_FALSE(nodes.apply_one(0, 3, put_of(id_in(1, 9), 30, "text", epoch(1))).status);

  const rpc::GetLoadsReply first = nodes.ask(0, rpc::GetLoads{});
  REQUIRE(first.status);
  CHECK(first.bits == 3);
  CHECK(first.incarnation != 0);
  CHECK(load_of(first, 1).writes == 5);
  CHECK(load_of(first, 1).reads == 0);
  CHECK(load_of(first, 2).writes == 1);
  CHECK(load_of(first, 2).reads == 3);
  CHECK(load_of(first, 2).read_bytes > 0);
  CHECK(load_of(first, 1).written_bytes > 0);
  CHECK(load_of(first, 1).stored_bytes > load_of(first, 2).stored_bytes);
  CHECK(sum_of(first.buckets) == first.total);
  // The question itself is not counted: a second answer has the same counts.
  const rpc::GetLoadsReply again = nodes.ask(0, rpc::GetLoads{});
  CHECK(again.total == first.total);
  CHECK(again.now_us >= first.now_us);

  // A split of a bucket does not change the counts; a change to more distribution bits divides them.
  rpc::SplitBucket split;
  split.state_version = 4;
  split.bucket = BucketId(3, 1);
  split.distributor = nodes.owner(split.bucket);
  split.epoch = epoch(1);
  REQUIRE(nodes.ask(0, split).status);
  const rpc::GetLoadsReply halves = nodes.ask(0, rpc::GetLoads{});
  CHECK(load_of(halves, 1).writes == 5);
  nodes.give_state(5, 4);
  const rpc::GetLoadsReply finer = nodes.ask(0, rpc::GetLoads{});
  CHECK(finer.bits == 4);
  CHECK(load_of(finer, 1).writes + load_of(finer, 9).writes == 5);
  CHECK(finer.total.writes == 6);
  CHECK(sum_of(finer.buckets) == finer.total);

  // A restarted process counts from zero and says so by its incarnation.
  nodes.restart(0);
  nodes.give_state(5, 4);
  const rpc::GetLoadsReply restarted = nodes.ask(0, rpc::GetLoads{});
  CHECK(restarted.incarnation != first.incarnation);
  CHECK(restarted.total.writes == 0);
}

}  // namespace fjord::test
