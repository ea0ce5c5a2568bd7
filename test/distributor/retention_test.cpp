// Orders of a distributor to drop remove entries: docs/design/0013-retention.md.
#include <set>

#include "distributor_world.h"

namespace fjord::test {
namespace {

constexpr std::int64_t kRetentionMs = 10'000;

/// Storage nodes that always report remove entries to drop.
class RetentionWorld {
 public:
  explicit RetentionWorld(unsigned bits = 1) : world(3, 2, bits) {
    REQUIRE(world.tunables().set("documents.remove_retention", kRetentionMs).is_ok());
    REQUIRE(world.tunables().set("documents.token_retention", kRetentionMs / 2).is_ok());
    world.hook = [this](std::uint16_t node, rpc::Request& request) { return serve(node, request); };
    world.state_keys = " features:forget";
    world.give_state(5);
    world.run(seconds(1));
  }
  std::optional<Result<rpc::Reply>> serve(std::uint16_t node, rpc::Request& request) {
    if (const auto* sets = std::get_if<rpc::SetReplicaSets>(&request)) {
      for (const rpc::BucketReplicaSet& set : sets->buckets) {
        if (set.forget_removes_before_us + set.forget_tokens_before_us == 0) continue;
        orders.push_back({node, set});
        CHECK(set.replica_set.epoch > world.set_at(node, set.bucket).epoch);
      }
    }
    if (const auto* apply = std::get_if<rpc::Apply>(&request); apply != nullptr && drop_writes.contains(node)) {
      return Result<rpc::Reply>(Status(StatusCode::Timeout, "lost"));
    }
    if (drop_merges && std::holds_alternative<rpc::MergeBucket>(request)) {
      return Result<rpc::Reply>(Status(StatusCode::Timeout, "lost"));
    }
    const auto* question = std::get_if<rpc::GetBucketInfo>(&request);
    if (question == nullptr || !question->only_damaged) return std::nullopt;
    asked = *question;
    rpc::GetBucketInfoReply reply;
    for (const auto& [raw, replica] : world.storage[node]) {
      if (replica.set.epoch == 0) continue;
      reply.reports.push_back({.bucket = BucketId(raw), .info = replica.info(), .replica_set = replica.set});
      reply.reports.back().may_forget = true;
      reply.reports.back().surplus_tokens_us = surplus_tokens_us;
    }
    return Result<rpc::Reply>(std::move(reply));
  }
  rpc::ExecuteReply put(const std::string& id) { return world.ask(put_batch(id, 0, 1, "value")); }
  std::uint64_t now_us() { return static_cast<std::uint64_t>(world.clock.wall_now().us); }

  struct Order {
    std::uint16_t node;
    rpc::BucketReplicaSet set;
  };
  DistributorWorld world;
  std::vector<Order> orders;
  rpc::GetBucketInfo asked;
  std::set<std::uint16_t> drop_writes;
  bool drop_merges = false;
  std::uint64_t surplus_tokens_us = 0;
};

const std::string kId = "id:x:item::1";

}  // namespace

TEST_CASE("retention: all members are told the same under a new epoch, as old as the settings say") {
  RetentionWorld retention;
  REQUIRE(retention.put(kId).results.at(0).status);
  retention.world.run(seconds(20));
  retention.orders.clear();
  REQUIRE(retention.put(kId).results.at(0).status);
  retention.world.run(seconds(3));
  REQUIRE_FALSE(retention.orders.empty());
  std::map<std::uint64_t, std::set<std::uint16_t>> told;
  for (const RetentionWorld::Order& order : retention.orders) {
    told[order.set.replica_set.epoch].insert(order.node);
    CHECK(order.set.forget_removes_before_us + kRetentionMs * 1000 <= retention.now_us());
    CHECK(order.set.forget_tokens_before_us + kRetentionMs * 500 <= retention.now_us());
  }
  for (const auto& [epoch, nodes] : told) CHECK(nodes.size() == 2);
  CHECK(retention.asked.removes_before_us + kRetentionMs * 1000 < retention.now_us());
  CHECK(retention.world.counter("fjord_distributor_forget_orders_total") > 0);
  REQUIRE(retention.put(kId).results.at(0).status);  // The distributor serves the bucket again.
}

TEST_CASE("retention: nothing newer than the newest write of the bucket is dropped, so that later ones are newer") {
  RetentionWorld retention;
  const rpc::ExecuteReply written = retention.put(kId);
  REQUIRE(written.results.at(0).status);
  retention.world.run(seconds(60));
  const BucketId bucket = bucket_of(DocumentId::parse(kId)->gid(), 1);
  std::uint64_t last = 0;
  for (const RetentionWorld::Order& order : retention.orders) {
    if (order.set.bucket == bucket) last = std::max(last, order.set.forget_removes_before_us);
  }
  CHECK(last == written.results.at(0).timestamp_us + 1);
}

TEST_CASE("retention: nothing is dropped while one of the nodes would not know how") {
  RetentionWorld retention;
  REQUIRE(retention.put(kId).results.at(0).status);
  retention.world.state_keys = " features:another";
  retention.world.give_state(6);
  retention.orders.clear();
  retention.world.run(seconds(10));
  CHECK(retention.orders.empty());
  retention.world.state_keys = " features:another,forget";
  retention.world.give_state(7);
  retention.world.run(seconds(3));
  CHECK_FALSE(retention.orders.empty());
}

TEST_CASE("retention: a bucket whose replicas may differ is left alone until they are equal") {
  RetentionWorld retention;
  const BucketId bucket = bucket_of(DocumentId::parse(kId)->gid(), 1);
  const auto orders_for_it = [&] {
    return std::count_if(retention.orders.begin(), retention.orders.end(),
                         [&](const RetentionWorld::Order& order) { return order.set.bucket == bucket; });
  };
  REQUIRE(retention.put(kId).results.at(0).status);
  retention.drop_merges = true;
  // Two of three nodes are members, so node 0 or node 1 is one.
  for (std::uint16_t node = 0; node < 2; ++node) {
    if (retention.world.set_at(node, bucket).epoch != 0) retention.drop_writes = {node};
  }
  CHECK_FALSE(retention.put(kId).results.at(0).status);
  retention.orders.clear();
  retention.world.run(seconds(10));
  CHECK(orders_for_it() == 0);
  retention.drop_merges = false;
  retention.drop_writes.clear();
  retention.world.run(seconds(10));
  CHECK(orders_for_it() > 0);
}

TEST_CASE("retention: a bucket with too many tokens drops them earlier, but none of the last minute") {
  RetentionWorld retention;
  REQUIRE(retention.world.tunables().set("documents.token_retention", 3'600'000).is_ok());
  retention.world.run(seconds(90));
  REQUIRE(retention.put(kId).results.at(0).status);
  retention.surplus_tokens_us = retention.now_us() + 1;
  retention.orders.clear();
  retention.world.run(seconds(3));
  REQUIRE_FALSE(retention.orders.empty());
  for (const RetentionWorld::Order& order : retention.orders) {
    CHECK(order.set.forget_tokens_before_us + 60'000'000 <= retention.now_us());
  }
}

TEST_CASE("retention: storage nodes are asked for buckets with an eighth more tokens than the setting allows") {
  RetentionWorld retention;
  const auto asked_with = [&](std::int64_t tokens_max) {
    REQUIRE(retention.world.tunables().set("documents.bucket_tokens_max", tokens_max).is_ok());
    retention.world.run(seconds(2));
    return retention.asked.tokens_max;
  };
  CHECK(asked_with(800) == 900);
  CHECK(asked_with(1) == 1);
  CHECK(asked_with(0) == 0);  // 0 means no limit.
}

TEST_CASE("retention: buckets that are put off because of failed writes leave room for others") {
  constexpr unsigned kBits = 4;  // 2^4 buckets: as many as the distributor works on at once.
  RetentionWorld retention(kBits);
  std::map<std::uint64_t, std::string> ids;
  for (int i = 0; ids.size() < (1U << kBits); ++i) {
    const std::string id = "id:x:item::" + std::to_string(i);
    ids.emplace(bucket_of_id(id, kBits).raw(), id);
  }
  for (const auto& [raw, id] : ids) REQUIRE(retention.put(id).results.at(0).status);
  // The distributor takes up all buckets while a write to each is in flight, and these writes fail.
  retention.drop_merges = true;
  retention.drop_writes = {0, 1, 2};
  for (const auto& [raw, id] : ids) retention.world.send(put_batch(id));
  retention.world.run(seconds(4));
  REQUIRE(retention.world.counter("fjord_distributor_forget_abandoned_total") == ids.size());
  retention.drop_merges = false;
  retention.drop_writes.clear();
  retention.orders.clear();
  retention.world.run(seconds(10));
  std::set<std::uint64_t> ordered;
  for (const RetentionWorld::Order& order : retention.orders) ordered.insert(order.set.bucket.raw());
  CHECK(ordered.size() == ids.size());
}

}  // namespace fjord::test
