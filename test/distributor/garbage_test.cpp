// Garbage collection of a distributor, with storage nodes that report garbage.
#include <algorithm>
#include <set>

#include "distributor_world.h"

namespace fjord::test {
namespace {

constexpr const char* kSchema =
    "document item { keep_while: \"item.value = 'keep*'\" field value type string { body } "
    "field count type int { header } }";

class GarbageWorld {
 public:
  explicit GarbageWorld(const char* schema = kSchema) : world(3) {
    world.schema = schema;
    REQUIRE(world.tunables().set("maintenance.gc_interval", 10'000).is_ok());
    // The storage nodes report every document as garbage, so the distributor has to check each document.
    world.hook = [this](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
      const auto* find = std::get_if<rpc::FindGarbage>(&request);
      if (find == nullptr) return on_other ? on_other(node, request) : std::nullopt;
      rpc::FindGarbageReply reply;
      for (const auto& [id, version] : world.storage[node][find->bucket.raw()].documents) {
        if (version.removed || version.timestamp_us == 0) continue;
        reply.ids.push_back(id);
        reply.types.push_back("item");
      }
      reply.scanned = reply.ids.size();
      ++searches;
      if (on_search) on_search();
      return Result<rpc::Reply>(std::move(reply));
    };
    world.give_state(5);
    world.run(seconds(1));
  }
  void put(const std::string& id, const std::string& value) {
    REQUIRE(world.ask(put_batch(id, 0, 1, value)).results.at(0).status);
  }
  /// Returns the number of replicas with the document, and of those with its remove entry.
  std::pair<int, int> replicas_of(const std::string& id) {
    std::pair<int, int> count;
    for (const auto& node : world.storage) {
      for (const auto& [raw, replica] : node) {
        const auto version = replica.documents.find(id);
        if (version == replica.documents.end() || version->second.timestamp_us == 0) continue;
        ++(version->second.removed ? count.second : count.first);
      }
    }
    return count;
  }
  std::uint64_t collected() { return world.counter("fjord_distributor_garbage_collected_total"); }

  DistributorWorld world;
  int searches = 0;
  std::function<void()> on_search;
  std::function<std::optional<Result<rpc::Reply>>(std::uint16_t, rpc::Request&)> on_other;
};

using Count = std::pair<int, int>;

}  // namespace

TEST_CASE("garbage: what does not match is removed from all replicas, and what matches stays, whoever says what") {
  GarbageWorld gc;
  for (int i = 0; i < 200; ++i) {
    gc.put("id:x:item::" + std::to_string(i), (i % 2 == 0 ? "keep " : "drop ") + std::to_string(i));
  }
  gc.world.run(seconds(20));
  for (int i = 0; i < 200; ++i) {
    INFO(i);
    CHECK(gc.replicas_of("id:x:item::" + std::to_string(i)) == (i % 2 == 0 ? Count{2, 0} : Count{0, 2}));
  }
  CHECK(gc.collected() == 100);
  CHECK(gc.world.counter("fjord_distributor_garbage_failures_total") == 0);
  gc.world.run(seconds(20));
  CHECK(gc.collected() == 100);
}

TEST_CASE("garbage: a document that is written between search and removal so that it matches stays") {
  GarbageWorld gc;
  gc.put("id:x:item::1", "drop");
  gc.put("id:x:item::2", "drop");
  gc.on_search = [&] { gc.world.send(put_batch("id:x:item::1", 0, 1, "keep after all")); };
  gc.world.run(seconds(30));
  CHECK(gc.replicas_of("id:x:item::1") == Count{2, 0});
  CHECK(gc.replicas_of("id:x:item::2") == Count{0, 2});
  CHECK(gc.collected() == 1);
}

TEST_CASE("garbage: each bucket is searched once each interval, unless maintenance is paused") {
  GarbageWorld gc;
  gc.put("id:x:item::1", "keep");
  gc.put("id:x:item::2", "keep");
  gc.put("id:x:item::3", "keep");
  std::set<std::uint64_t> raw;
  for (const auto& node : gc.world.storage) {
    for (const auto& [bucket, replica] : node) raw.insert(bucket);
  }
  const int buckets = static_cast<int>(raw.size());
  REQUIRE(buckets > 0);
  gc.searches = 0;
  gc.world.run(seconds(95));
  CHECK(gc.searches >= 8 * buckets);
  CHECK(gc.searches <= 10 * buckets);
  REQUIRE(gc.world.tunables().set("maintenance.paused", 1).is_ok());
  gc.searches = 0;
  gc.world.run(seconds(50));
  CHECK(gc.searches == 0);
}

TEST_CASE("garbage: its removals are work in the background, and merges come before it") {
  GarbageWorld gc;
  gc.put("id:x:item::1", "drop");
  std::size_t removals = 0;
  int merges = 0;
  MonotonicTime last_merge{0};
  gc.on_other = [&](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    // Answers to merges are lost, so each merge is in flight until its timeout, and is repeated.
    const bool is_merge = std::holds_alternative<rpc::MergeBucket>(request);
    gc.world.mute[node] = is_merge;
    merges += is_merge ? 1 : 0;
    if (is_merge) last_merge = gc.world.clock.now();
    const auto* apply = std::get_if<rpc::Apply>(&request);
    if (apply == nullptr || apply->operations[0].kind != rpc::OperationKind::Remove) return std::nullopt;
    removals += apply->operations.size();
    CHECK(apply->in_background == apply->operations.size());
    return std::nullopt;
  };
  bool comes_between = false;
  gc.on_search = [&] { comes_between = comes_between || gc.world.clock.now() - last_merge < milliseconds(500); };
  // Makes a second bucket whose replicas differ.
  gc.put("id:x:item:n=77:2", "keep");
  const std::uint64_t raw = bucket_of_id("id:x:item:n=77:2").raw();
  std::size_t other = 0;
  while (!gc.world.storage[other].contains(raw)) ++other;
  gc.world.storage[other][raw].documents["id:x:item:n=77:2"].timestamp_us += 5;
  REQUIRE(gc.world.tunables().set("maintenance.gc_interval", 100).is_ok());
  gc.world.give_state(6, " ." + std::to_string(other) + ".v:6");
  gc.world.run(seconds(30));
  CHECK(merges > 5);
  CHECK(gc.searches > 0);
  CHECK_FALSE(comes_between);
  CHECK(removals == 2);
  CHECK(gc.replicas_of("id:x:item::1") == Count{0, 2});
}

TEST_CASE(
    "garbage: another interval counts from the pass before, and a late rule begins with a pass through all buckets") {
  const bool is_late = GENERATE(false, true);
  GarbageWorld gc(is_late ? "document item { field value type string { body } field count type int { header } }"
                          : kSchema);
  for (int i = 0; i < 5; ++i) gc.put("id:x:item:n=" + std::to_string(i) + ":1", "keep");
  std::set<std::uint64_t> buckets;
  for (const auto& node : gc.world.storage) {
    for (const auto& [bucket, replica] : node) buckets.insert(bucket);
  }
  const int once = static_cast<int>(buckets.size());
  gc.world.run(seconds(35));
  if (is_late) {
    CHECK(gc.searches == 0);
    const rpc::PollReply reply = gc.world.poll([](rpc::Poll& poll) {
      poll.info.schema_version = 2;
      poll.info.schemas = {kSchema};
    });
    REQUIRE(reply.status);
    gc.world.run(seconds(3));
    CHECK(gc.searches == once);  // The buckets are searched one after the other, each once per interval.
    return;
  }
  REQUIRE(gc.searches >= once);
  REQUIRE(gc.world.tunables().set("maintenance.gc_interval", 100'000).is_ok());
  gc.searches = 0;
  gc.world.run(seconds(60));
  CHECK(gc.searches == 0);
  gc.world.run(seconds(50));
  CHECK(gc.searches == once);
  REQUIRE(gc.world.tunables().set("maintenance.gc_interval", 1'000).is_ok());
  gc.searches = 0;
  gc.world.run(seconds(5));
  CHECK(gc.searches >= 3 * once);
}

TEST_CASE("garbage: without a type that says what to keep nobody is asked") {
  GarbageWorld gc("document item { field value type string { body } field count type int { header } }");
  gc.put("id:x:item::1", "drop");
  gc.world.run(seconds(60));
  CHECK(gc.searches == 0);
  CHECK(gc.replicas_of("id:x:item::1") == Count{2, 0});
}

}  // namespace fjord::test
