// Nodes that are down for a while or for good: maintenance, retirement without a place to go, a cluster that is down.

#include <algorithm>
#include <set>

#include "bucket_database.h"
#include "distributor_world.h"
#include "maintenance/recovery.h"

namespace fjord::test {
namespace {

const std::string kId = "id:t:item::1";
constexpr unsigned kBits = 4;
const BucketId kBucket = bucket_of_id(kId, kBits);

rpc::OperationResult execute(DistributorWorld& world, rpc::Execute batch) {
  return std::move(world.ask(std::move(batch)).results.at(0));
}

/// Returns the states of all nodes, up since version 1; `special` has the keys of some of them.
std::string nodes_of(const DistributorWorld& world, const std::map<std::uint16_t, std::string>& special) {
  std::string nodes;
  for (std::uint16_t i = 0; i < world.storage.size(); ++i) {
    const auto found = special.find(i);
    nodes += " ." + std::to_string(i) + "." + (found == special.end() ? "v:1" : found->second);
  }
  return nodes;
}

std::vector<std::uint16_t> holders(const DistributorWorld& world, BucketId bucket) {
  std::vector<std::uint16_t> nodes;
  for (std::uint16_t node = 0; node < world.storage.size(); ++node) {
    if (world.holds(node, bucket)) nodes.push_back(node);
  }
  return nodes;
}

bool has_document(DistributorWorld& world, std::uint16_t node, const std::string& id) {
  return world.storage[node][bucket_of_id(id, kBits).raw()].documents.contains(id);
}

/// A world of four nodes with redundancy 2; the bucket's second member is in maintenance.
struct Maintained {
  Maintained() : world(4, 2, kBits) {
    world.state_keys = " copies:2";
    world.give_state(1, nodes_of(world, {}));
    REQUIRE(execute(world, put_batch(kId)).status);
    stays = world.ideal(kBucket)[0];
    away = world.ideal(kBucket)[1];
    world.give_state(2, nodes_of(world, {{away, "s:m"}}));
    world.run(seconds(5));
  }
  DistributorWorld world;
  std::uint16_t stays = 0;
  std::uint16_t away = 0;
};

std::string other_id(const DistributorWorld& world, std::uint16_t wanted_place) {
  for (int i = 2; i < 10'000; ++i) {
    std::string id = "id:t:item::" + std::to_string(i);
    const BucketId bucket = bucket_of_id(id, kBits);
    const std::vector<std::uint16_t> ideal = world.ideal(bucket);
    if (bucket != kBucket && std::count(ideal.begin(), ideal.end(), wanted_place) > 0) return id;
  }
  FAIL("no such bucket");
  return {};
}

}  // namespace

TEST_CASE("distributor: nothing is copied for a node in maintenance, which catches up when it is back") {
  Maintained m;
  DistributorWorld& world = m.world;
  std::vector<std::uint16_t> both{m.stays, m.away};
  std::sort(both.begin(), both.end());
  CHECK(holders(world, kBucket) == both);
  CHECK(world.set_at(m.stays, kBucket).nodes == std::vector<std::uint16_t>{m.stays});
  CHECK(execute(world, put_batch(kId, 0, 1, "while it was away")).status);
  CHECK(execute(world, get_batch(kId)).json.find("while it was away") != std::string::npos);
  rpc::PollReply said = world.ask(rpc::Poll{});
  CHECK(said.buckets_out_of_sync == 0);
  CHECK(said.buckets_unavailable == 0);
  CHECK(said.buckets_under_replicated == world.storage[m.away].size());

  SECTION("it is back") {
    world.give_state(3, nodes_of(world, {{m.away, "v:3"}}));
    world.run(seconds(5));
    CHECK(holders(world, kBucket) == both);
    CHECK(distributor::same_nodes(world.set_at(m.away, kBucket).nodes, both));
    CHECK(world.storage[m.away][kBucket.raw()].documents[kId].timestamp_us ==
          world.storage[m.stays][kBucket.raw()].documents[kId].timestamp_us);
    CHECK(world.ask(rpc::Poll{}).buckets_under_replicated == 0);
  }
  SECTION("it counts as down: another node takes its place") {
    world.give_state(3, nodes_of(world, {{m.away, "s:d"}}));
    world.run(seconds(5));
    const std::vector<std::uint16_t> ideal = world.ideal(kBucket);
    CHECK(ideal.size() == 2);
    CHECK(std::count(ideal.begin(), ideal.end(), m.away) == 0);
    for (const std::uint16_t node : ideal) CHECK(has_document(world, node, kId));
    CHECK(world.ask(rpc::Poll{}).buckets_under_replicated == 0);
  }
  SECTION("the distributor starts anew meanwhile") {
    world.restart();
    world.give_state(3, nodes_of(world, {{m.away, "s:m"}}));
    world.run(seconds(5));
    CHECK(holders(world, kBucket) == both);
    CHECK(execute(world, get_batch(kId)).status);
  }
  SECTION("another replica ends: the bucket says for whom it waits") {
    world.give_state(3, nodes_of(world, {{m.away, "s:m"}, {m.stays, "s:d"}}));
    world.run(seconds(1));
    const rpc::OperationResult got = execute(world, get_batch(kId));
    CHECK(got.status.code() == StatusCode::Unavailable);
    CHECK(got.status.message().find("storage." + std::to_string(m.away) + " (maintenance)") != std::string::npos);
  }
}

TEST_CASE("distributor: the only replica is in maintenance: its documents are unavailable, not missing") {
  DistributorWorld world(3, 1, kBits);
  world.state_keys = " copies:1";
  world.give_state(1, nodes_of(world, {}));
  REQUIRE(execute(world, put_batch(kId)).status);
  const std::uint16_t away = world.ideal(kBucket)[0];
  world.give_state(2, nodes_of(world, {{away, "s:m"}}));
  world.run(seconds(2));
  const rpc::OperationResult got = execute(world, get_batch(kId));
  CHECK(got.status.code() == StatusCode::Unavailable);
  CHECK(got.status.message().find("storage." + std::to_string(away) + " (maintenance)") != std::string::npos);
  CHECK(execute(world, put_batch(kId)).status.code() == StatusCode::Unavailable);
  CHECK(holders(world, kBucket).size() == 1);
  world.give_state(3, nodes_of(world, {{away, "v:3"}}));
  CHECK(execute(world, get_batch(kId)).status);
}

TEST_CASE(
    "distributor: a bucket that is made during maintenance has all its replicas, and moves when the node is back") {
  Maintained m;
  DistributorWorld& world = m.world;
  world.give_state(3, nodes_of(world, {}));
  world.run(seconds(5));
  const std::string id = other_id(world, m.away);
  const BucketId bucket = bucket_of_id(id, kBits);
  for (DistributorWorld::Storage& node : world.storage) node.clear();  // As in a cluster that begins with a node away.
  world.restart();
  world.give_state(4, nodes_of(world, {{m.away, "s:m"}}));
  REQUIRE(execute(world, put_batch(id)).status);
  const std::vector<std::uint16_t> born = holders(world, bucket);
  REQUIRE(born.size() == 2);
  CHECK(std::count(born.begin(), born.end(), m.away) == 0);
  world.run(seconds(5));
  CHECK(holders(world, bucket) == born);
  CHECK(distributor::same_nodes(world.set_at(born[0], bucket).nodes, born));

  const std::vector<std::uint16_t> ideal = world.ideal(bucket);
  REQUIRE(ideal.size() == 1);
  const std::uint16_t stand_in = born[0] == ideal[0] ? born[1] : born[0];
  SECTION("back: the copy that stood in for it is removed when its own is complete") {
    world.give_state(5, nodes_of(world, {{m.away, "v:5"}}));
    world.run(seconds(5));
    CHECK(world.holds(m.away, bucket));
    CHECK_FALSE(world.holds(stand_in, bucket));
    CHECK(has_document(world, m.away, id));
  }
  SECTION("a member fails: a third node gets a copy, as the one that is away has none") {
    world.give_state(5, nodes_of(world, {{m.away, "s:m"}, {stand_in, "s:d"}}));
    world.run(seconds(5));
    const std::vector<std::uint16_t> members = world.set_at(ideal[0], bucket).nodes;
    CHECK(members.size() == 2);
    for (const std::uint16_t node : members) CHECK(has_document(world, node, id));
    CHECK(std::count(members.begin(), members.end(), m.away) == 0);
    // The node is back: its replica is brought in sync or removed, and two replicas remain.
    world.give_state(6, nodes_of(world, {{m.away, "s:m"}, {stand_in, "v:6"}}));
    world.run(seconds(5));
    CHECK(world.set_at(ideal[0], bucket).nodes.size() == 2);
  }
  SECTION("a member restarts: its replica is brought in sync and not removed") {
    world.give_state(5, nodes_of(world, {{m.away, "s:m"}, {stand_in, "v:5"}}));
    REQUIRE(execute(world, put_batch(id, 0, 1, "newer")).status);
    world.run(seconds(5));
    CHECK(distributor::same_nodes(world.set_at(ideal[0], bucket).nodes, born));
  }
}

TEST_CASE("distributor: only as many retired nodes keep a replica as replicas are missing, however many are away") {
  DistributorWorld world(5, 2, kBits);
  world.give_state(1, nodes_of(world, {}));
  REQUIRE(execute(world, put_batch(kId)).status);
  const std::vector<std::uint16_t> leaving = holders(world, kBucket);
  REQUIRE(leaving.size() == 2);
  std::map<std::uint16_t, std::string> states;
  std::vector<std::uint16_t> others;
  for (std::uint16_t node = 0; node < 5; ++node) {
    if (std::find(leaving.begin(), leaving.end(), node) == leaving.end()) others.push_back(node);
  }
  for (const std::uint16_t node : leaving) states[node] = "v:1 ." + std::to_string(node) + ".s:r";
  for (const std::uint16_t node : {others[1], others[2]}) states[node] = "s:d";
  world.give_state(2, nodes_of(world, states));
  world.run(seconds(5));
  // One of the two replicas is on the node that is up and stays. Two nodes are away, but one replica is missing.
  CHECK(world.holds(others[0], kBucket));
  CHECK(world.holds(leaving[0], kBucket) != world.holds(leaving[1], kBucket));
}

TEST_CASE("distributor: an old replica stands in for a node in maintenance") {
  DistributorWorld world(3, 2, kBits);
  world.give_state(1, nodes_of(world, {}));
  REQUIRE(execute(world, put_batch(kId)).status);
  const std::uint16_t stays = world.ideal(kBucket)[0];
  const std::uint16_t away = world.ideal(kBucket)[1];
  const auto third = static_cast<std::uint16_t>(3 - stays - away);
  const std::string key = "." + std::to_string(away);
  // The third node has the replica while the other one is retired. It is down when that one has it again.
  world.give_state(2, nodes_of(world, {{away, "v:1 " + key + ".s:r"}}));
  world.run(seconds(5));
  REQUIRE(holders(world, kBucket) == std::vector<std::uint16_t>{std::min(stays, third), std::max(stays, third)});
  world.give_state(3, nodes_of(world, {{third, "s:d"}}));
  world.run(seconds(5));
  REQUIRE(distributor::same_nodes(world.set_at(stays, kBucket).nodes, {stays, away}));
  world.give_state(4, nodes_of(world, {{third, "v:4"}, {away, "s:m"}}));
  world.run(seconds(5));
  CHECK(world.holds(third, kBucket));
  CHECK(has_document(world, third, kId));
}

TEST_CASE("distributor: with all nodes retired the members stay, writes go on, and new buckets are made") {
  DistributorWorld world(3, 2, kBits);
  world.give_state(1, nodes_of(world, {}));
  REQUIRE(execute(world, put_batch(kId)).status);
  const std::vector<std::uint16_t> before = holders(world, kBucket);
  const std::string fresh = other_id(world, 0);
  std::map<std::uint16_t, std::string> retired;
  for (std::uint16_t node = 0; node < 3; ++node) retired[node] = "v:1 ." + std::to_string(node) + ".s:r";
  world.give_state(2, nodes_of(world, retired));
  world.run(seconds(5));
  CHECK(holders(world, kBucket) == before);
  CHECK(distributor::same_nodes(world.set_at(before[0], kBucket).nodes, before));
  CHECK(execute(world, put_batch(kId, 0, 1, "newer")).status);
  CHECK(execute(world, get_batch(kId)).json.find("newer") != std::string::npos);
  CHECK(execute(world, put_batch(fresh)).status);
  CHECK(holders(world, bucket_of_id(fresh, kBits)).size() == 2);
  CHECK(world.ask(rpc::Poll{}).buckets_out_of_sync == 0);

  SECTION("one of them is down: the others go on with all replicas") {
    const std::uint16_t other = static_cast<std::uint16_t>(3 - before[0] - before[1]);
    retired[other] = "s:d";
    world.give_state(3, nodes_of(world, retired));
    world.run(seconds(5));
    CHECK(holders(world, kBucket) == before);
    CHECK(world.set_at(before[0], kBucket).nodes.size() == 2);
  }
  SECTION("fewer replicas are wanted: the surplus replica is deleted") {
    world.set_redundancy(1);
    world.give_state(3, nodes_of(world, retired));
    world.run(seconds(5));
    CHECK(holders(world, kBucket) == world.ideal(kBucket));
    CHECK(holders(world, kBucket).size() == 1);
  }
  SECTION("one is to stay again: everything moves there") {
    retired.erase(before[0]);
    world.give_state(3, nodes_of(world, retired));
    world.run(seconds(5));
    CHECK(holders(world, kBucket) == std::vector<std::uint16_t>{before[0]});
    CHECK(has_document(world, before[0], kId));
  }
}

TEST_CASE(
    "distributor: while the cluster is down writes are refused at once with the reason, and reads as configured") {
  DistributorWorld world(3, 2, kBits);
  world.give_state(1, nodes_of(world, {}));
  REQUIRE(execute(world, put_batch(kId)).status);
  const std::uint16_t away = world.ideal(kBucket)[0];
  world.state_keys = R"( cluster:d m:2\x20of\x203\x20are\x20up)";
  world.give_state(2, nodes_of(world, {{away, "s:d"}}));
  world.run(seconds(1));
  const std::size_t sent = world.transport.sent().size();
  const rpc::OperationResult put = execute(world, put_batch(kId));
  CHECK(put.status.code() == StatusCode::Unavailable);
  CHECK(put.status.message() == "the cluster is down: 2 of 3 are up");
  CHECK(world.transport.sent().size() == sent);  // The distributor asked no storage node.
  CHECK(execute(world, get_batch(kId)).status);

  rpc::GetBucketNodes list;
  list.all = true;
  list.state_version = 2;
  CHECK(world.ask(list).status);
  REQUIRE(world.tunables().set("distributor.reads_when_cluster_down", 0));
  CHECK(execute(world, get_batch(kId)).status.message() == "the cluster is down: 2 of 3 are up");
  CHECK(world.ask(list).status.code() == StatusCode::Unavailable);

  world.state_keys.clear();
  world.give_state(3, nodes_of(world, {{away, "v:3"}}));
  CHECK(execute(world, put_batch(kId)).status);
  CHECK(execute(world, get_batch(kId)).status);
}

namespace {

/// Lists all buckets as a visit does. Returns the errors by bucket, and counts the buckets without one.
std::map<BucketId, Status> refused_buckets(DistributorWorld& world, std::uint64_t version, std::size_t& served) {
  rpc::GetBucketNodes list;
  list.all = true;
  list.state_version = version;
  const rpc::GetBucketNodesReply reply = world.ask(list);
  INFO(reply.status.to_string());
  REQUIRE(reply.status);
  std::map<BucketId, Status> refused;
  served = 0;
  for (const rpc::BucketNode& one : reply.buckets) {
    if (one.status) {
      ++served;
    } else {
      CHECK(refused.emplace(one.bucket, one.status).second);
    }
  }
  return refused;
}

constexpr std::size_t kBuckets = std::size_t{1} << kBits;

/// Makes all buckets, while no node hears that all nodes of a bucket have it. Then the distributor restarts.
void restart_amid_births(DistributorWorld& world) {
  world.loses = [](const rpc::Request& request) {
    const auto* sets = std::get_if<rpc::SetReplicaSets>(&request);
    return sets != nullptr && std::any_of(sets->buckets.begin(), sets->buckets.end(), [](const auto& one) {
             return one.replica_set.epoch != 0 && !distributor::is_birth(one.replica_set);
           });
  };
  world.give_state(1, nodes_of(world, {}));
  world.run(seconds(1));
  world.loses = nullptr;
  world.restart();
}

}  // namespace

TEST_CASE("distributor: a node is down, its replicas are made again, another one is down: all buckets are served") {
  const auto nodes = static_cast<std::uint16_t>(GENERATE(3, 4));
  DistributorWorld world(nodes, 2, kBits);
  world.state_keys = " copies:2";
  world.give_state(1, nodes_of(world, {}));
  world.run(seconds(1));
  world.give_state(2, nodes_of(world, {{0, "s:d"}}));
  world.run(seconds(10));
  world.give_state(3, nodes_of(world, {{0, "s:d"}, {1, "s:d"}}));
  world.run(seconds(10));
  std::size_t served = 0;
  CHECK(refused_buckets(world, 3, served).empty());
  CHECK(served == kBuckets);
  for (int i = 0; i < 100; ++i) CHECK(execute(world, put_batch("id:t:item::" + std::to_string(i))).status);
  CHECK(world.ask(rpc::Poll{}).buckets_unavailable == 0);
}

TEST_CASE("distributor: two nodes are down at once: the buckets with both replicas there are refused, no others") {
  DistributorWorld world(4, 2, kBits);
  world.give_state(1, nodes_of(world, {}));
  world.run(seconds(1));
  std::set<BucketId> gone;
  for (std::uint64_t i = 0; i < kBuckets; ++i) {
    const BucketId bucket(kBits, i);
    CHECK(holders(world, bucket).size() == 2);
    if (holders(world, bucket) == std::vector<std::uint16_t>{0, 1}) gone.insert(bucket);
  }
  REQUIRE(!gone.empty());
  world.give_state(2, nodes_of(world, {{0, "s:d"}, {1, "s:d"}}));
  world.run(seconds(10));
  std::size_t served = 0;
  const std::map<BucketId, Status> refused = refused_buckets(world, 2, served);
  CHECK(served == kBuckets - gone.size());
  CHECK(refused.size() == gone.size());
  for (const auto& [bucket, status] : refused) {
    CHECK(gone.contains(bucket));
    CHECK(status.code() == StatusCode::Unavailable);
    CHECK_THAT(status.message(), Catch::Contains("storage.0") && Catch::Contains("storage.1"));
  }
  CHECK(world.ask(rpc::Poll{}).buckets_unavailable == gone.size());
}

TEST_CASE("distributor: buckets that were being made when a node went away are made again on as many nodes") {
  DistributorWorld world(4, 2, kBits);
  restart_amid_births(world);
  world.give_state(2, nodes_of(world, {{0, "s:d"}}));
  world.run(seconds(5));
  for (std::uint64_t i = 0; i < kBuckets; ++i) {
    std::vector<std::uint16_t> nodes = holders(world, BucketId(kBits, i));
    std::erase(nodes, 0);
    CHECK(nodes.size() >= 2);
    for (const std::uint16_t node : world.ideal(BucketId(kBits, i))) {
      CHECK_FALSE(distributor::is_birth(world.set_at(node, BucketId(kBits, i))));
    }
  }
}

TEST_CASE("distributor: buckets that all nodes were told of count as made after a restart of the distributor") {
  DistributorWorld world(4, 2, kBits);
  restart_amid_births(world);
  world.give_state(2, nodes_of(world, {}));
  world.run(seconds(5));
  for (std::uint64_t i = 0; i < kBuckets; ++i) {
    const std::vector<std::uint16_t> nodes = holders(world, BucketId(kBits, i));
    CHECK(nodes.size() == 2);
    for (const std::uint16_t node : nodes) CHECK_FALSE(distributor::is_birth(world.set_at(node, BucketId(kBits, i))));
  }
}

TEST_CASE("distributor: a write that was sent before the cluster was down ends with its outcome") {
  DistributorWorld world(3, 2, kBits);
  world.give_state(1, nodes_of(world, {}));
  REQUIRE(execute(world, put_batch(kId)).status);
  const std::uint16_t away = world.ideal(kBucket)[0];
  world.mute[away] = true;
  auto put = world.send(put_batch(kId, 0, 1, "newer"));
  world.run(milliseconds(100));
  REQUIRE_FALSE(put->has_value());
  world.state_keys = " cluster:d";
  world.give_state(2, nodes_of(world, {{away, "s:d"}}));
  world.run(seconds(2));
  REQUIRE(put->has_value());
  CHECK((*put)->results.at(0).status);
  CHECK(execute(world, get_batch(kId)).json.find("newer") != std::string::npos);
}

}  // namespace fjord::test
