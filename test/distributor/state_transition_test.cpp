// State transitions of a distributor: the buckets it keeps, asks about and forgets when the cluster state changes.

#include "bucket_database.h"
#include "distributor_world.h"

namespace fjord::test {
namespace {

const std::string kId = "id:t:item::1";
const BucketId kBucket = bucket_of_id(kId);

rpc::OperationResult execute(DistributorWorld& world, rpc::Execute batch) {
  return std::move(world.ask(std::move(batch)).results.at(0));
}

/// Returns the requests for bucket information to storage nodes, without the first `skipped` messages.
std::vector<std::pair<std::uint16_t, rpc::GetBucketInfo>> questions(const DistributorWorld& world,
                                                                    std::size_t skipped) {
  std::vector<std::pair<std::uint16_t, rpc::GetBucketInfo>> found;
  for (std::size_t i = skipped; i < world.transport.sent().size(); ++i) {
    const ScriptedTransport::Sent& call = world.transport.sent()[i];
    const auto* question = std::get_if<rpc::GetBucketInfo>(&call.request);
    if (question == nullptr || question->only_damaged) continue;
    found.emplace_back(static_cast<std::uint16_t>(std::stoi(call.to)), *question);
  }
  return found;
}

/// Returns an id in a bucket whose ideal nodes are `nodes`.
std::string id_on(const DistributorWorld& world, const std::vector<std::uint16_t>& nodes, unsigned bits) {
  for (int i = 0; i < 10'000; ++i) {
    std::string id = "id:t:item::" + std::to_string(i);
    std::vector<std::uint16_t> ideal = world.ideal(bucket_of_id(id, bits));
    std::sort(ideal.begin(), ideal.end());
    if (ideal == nodes) return id;
  }
  FAIL("no such bucket");
  return {};
}

rpc::Execute sent_in(rpc::Execute batch, std::uint64_t version) {
  batch.state_version = version;
  return batch;
}

}  // namespace

TEST_CASE("distributor: a state that does not concern a bucket leaves it in service, and nobody is asked about it") {
  constexpr unsigned kBits = 4;
  DistributorWorld world(3, 2, kBits);
  world.give_state(1, " .0.v:1 .1.v:1 .2.v:1");
  const std::string kept = id_on(world, {0, 1}, kBits);
  const std::string moved = id_on(world, {1, 2}, kBits);
  REQUIRE(execute(world, put_batch(kept)).status);
  REQUIRE(execute(world, put_batch(moved)).status);
  const ReplicaSet set = world.set_at(0, bucket_of_id(kept, kBits));
  const std::size_t sent = world.transport.sent().size();
  // From here on no storage node answers questions about buckets.
  world.hook = [](std::uint16_t, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (!std::holds_alternative<rpc::GetBucketInfo>(request)) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::NotReady, "said the test"));
  };
  world.give_state(2, " .0.v:1 .1.v:1 .2.s:d");
  CHECK(execute(world, put_batch(kept, 0, 1, "again")).status);
  CHECK(execute(world, get_batch(kept)).status);
  auto waiting = world.send(get_batch(moved));
  world.run(seconds(1));
  CHECK_FALSE(waiting->has_value());
  CHECK(world.set_at(0, bucket_of_id(kept, kBits)) == set);
  REQUIRE_FALSE(questions(world, sent).empty());
  for (const auto& [node, question] : questions(world, sent)) {
    CHECK_FALSE(question.all);
    CHECK(node != 2);
    CHECK(std::find(question.buckets.begin(), question.buckets.end(), bucket_of_id(kept, kBits)) ==
          question.buckets.end());
  }
  world.hook = nullptr;
  world.run(seconds(1));
  REQUIRE(waiting->has_value());
  CHECK((*waiting)->results.at(0).status);
}

TEST_CASE("distributor: more buckets than are recovered in one turn are served, also if a state comes in between") {
  constexpr unsigned kBits = 11;
  DistributorWorld world(2, 2, kBits);
  const auto sets_in = [](const ScriptedTransport::Sent& call) {
    const auto* sets = std::get_if<rpc::SetReplicaSets>(&call.request);
    return sets == nullptr ? std::size_t{0} : sets->buckets.size();
  };
  const auto check_all = [&](std::uint64_t least_version) {
    for (std::uint64_t i = 0; i < std::uint64_t{1} << kBits; ++i) {
      const ReplicaSet set = world.set_at(0, BucketId(kBits, i));
      CHECK(set.state_version() >= least_version);
      CHECK(world.set_at(1, BucketId(kBits, i)) == set);
      CHECK(set.nodes.size() == 2);
    }
    CHECK(world.gauge("fjord_distributor_buckets_unavailable") == 0);
    CHECK(world.gauge("fjord_distributor_buckets_out_of_sync") == 0);
  };
  world.give_state(1, " .0.v:1 .1.v:1");
  world.run(seconds(2));
  (void)world.poll([](rpc::Poll&) {});
  check_all(1);
  const std::size_t sent = world.transport.sent().size();
  CHECK(std::count_if(world.transport.sent().begin(), world.transport.sent().end(),
                      [&](const auto& call) { return sets_in(call) > 0; }) == 16);  // to make them, and to confirm that

  world.give_state(2, " .0.v:1 .1.s:d");
  SECTION("undisturbed") { world.run(seconds(1)); }
  SECTION("the next state comes at once") {}
  world.give_state(3, " .0.v:1 .1.v:3");
  world.run(seconds(20));
  (void)world.poll([](rpc::Poll&) {});
  check_all(2);
  for (std::size_t i = sent; i < world.transport.sent().size(); ++i) CHECK(sets_in(world.transport.sent()[i]) <= 512);
}

TEST_CASE("distributor: what a node brings back of a bucket in service is merged and deleted") {
  DistributorWorld world(3);
  world.give_state(1, " .0.v:1 .1.v:1 .2.v:1");
  REQUIRE(execute(world, put_batch(kId)).status);
  const std::vector<std::uint16_t> members = world.ideal(kBucket);
  const auto other = static_cast<std::uint16_t>(3 - members[0] - members[1]);
  world.give_state(2, " .0.v:1 .1.v:1 .2.v:1 ." + std::to_string(other) + ".s:d");
  REQUIRE(execute(world, put_batch(kId, 0, 1, "newer")).status);
  TestReplica& old = world.storage[other][kBucket.raw()];
  old.set = {ReplicaSet::make_epoch(1, 1), {other}};
  old.documents["id:t:item::unseen"].timestamp_us = 77;
  world.give_state(3, " .0.v:1 .1.v:1 .2.v:1 ." + std::to_string(other) + ".v:3");
  world.run(seconds(2));
  CHECK_FALSE(world.holds(other, kBucket));
  for (std::uint16_t node : members) {
    CHECK(world.storage[node][kBucket.raw()].documents.contains("id:t:item::unseen"));
  }
  CHECK(execute(world, get_batch(kId)).json.find("newer") != std::string::npos);
}

TEST_CASE("distributor: a node that had no time to answer under one state is heard under the next one") {
  DistributorWorld world(4);  // The simulation found this bug: damage, seed 77.
  world.give_state(1, " .0.v:1 .1.v:1 .2.v:1 .3.v:1");
  REQUIRE(execute(world, put_batch(kId)).status);
  const std::vector<std::uint16_t> members = world.ideal(kBucket);
  std::vector<std::uint16_t> others;
  for (std::uint16_t node = 0; node < 4; ++node) {
    if (std::find(members.begin(), members.end(), node) == members.end()) others.push_back(node);
  }
  const std::string back = " ." + std::to_string(others[0]);
  world.give_state(2, " .0.v:1 .1.v:1 .2.v:1 .3.v:1" + back + ".s:d");
  world.run(seconds(1));
  world.storage[others[0]][kBucket.raw()].set = {ReplicaSet::make_epoch(1, 1), {others[0]}};
  world.mute[others[0]] = true;
  world.give_state(3, " .0.v:1 .1.v:1 .2.v:1 .3.v:1" + back + ".v:3");
  world.mute[others[0]] = false;
  world.give_state(4, " .0.v:1 .1.v:1 .2.v:1 .3.v:1" + back + ".v:3 ." + std::to_string(others[1]) + ".s:d");
  world.run(seconds(2));
  CHECK_FALSE(world.holds(others[0], kBucket));
}

TEST_CASE("distributor: what a fleet controller says before there is a state leaves operations waiting for one") {
  DistributorWorld world(2);  // The simulation found this bug: updates, seed 159302134975411.
  REQUIRE(world
              .poll([](rpc::Poll& request) {
                request.info.term = 1;
                request.info.lease_us = 1'000'000;
              })
              .status);
  CHECK(execute(world, put_batch(kId)).status.code() == StatusCode::NotReady);
}

TEST_CASE("distributor: one that has just started acts only under a state that speaks of this process") {
  DistributorWorld world(2);  // The simulation found this bug: chaos, seed 58.
  world.give_state(5, " .0.v:1 .1.v:1", " .0.v:3");
  CHECK(execute(world, put_batch(kId)).status.code() == StatusCode::NotReady);
  CHECK(world.transport.sent().empty());
  world.give_state(6, " .0.v:1 .1.v:1", " .0.v:6");
  CHECK(execute(world, put_batch(kId)).status);
  world.give_state(7, " .0.v:1 .1.v:1", " .0.v:6");
  CHECK(execute(world, get_batch(kId)).status);
}

TEST_CASE("distributor: a write that was sent to its earlier process is not done, a read is") {
  DistributorWorld world(2);
  world.give_state(5, " .0.v:1 .1.v:1", " .0.v:3");
  world.give_state(6, " .0.v:1 .1.v:1", " .0.v:6");
  CHECK(execute(world, sent_in(put_batch(kId, 1), 5)).status.code() == StatusCode::WrongDistribution);
  CHECK(execute(world, sent_in(get_batch(kId), 5)).status.code() == StatusCode::NotFound);
  CHECK(execute(world, sent_in(put_batch(kId, 2), 6)).status);
  CHECK(execute(world, sent_in(put_batch(kId, 3), 7)).status);
  CHECK(execute(world, sent_in(put_batch(kId, 4), 0)).status);
}

TEST_CASE("distributor: a state that was skipped may have had another owner, so everything is asked anew") {
  DistributorWorld world(2);
  world.give_state(1, " .0.v:1 .1.v:1");
  REQUIRE(execute(world, put_batch(kId)).status);
  const std::size_t sent = world.transport.sent().size();
  world.give_state(3, " .0.v:1 .1.v:1");
  world.run(seconds(1));
  const auto asked = questions(world, sent);
  REQUIRE(asked.size() == 2);
  CHECK(asked[0].second.all);
  CHECK(asked[1].second.all);
}

TEST_CASE("distributor: a version that was never in force is no state that was skipped") {
  DistributorWorld world(2);
  world.give_state(1, " .0.v:1 .1.v:1");
  REQUIRE(execute(world, put_batch(kId)).status);
  const std::size_t sent = world.transport.sent().size();
  world.state_keys = " skipped:1";
  world.give_state(3, " .0.v:1 .1.v:1");
  world.run(milliseconds(500));  // Once a second the distributor asks whether replicas are still there.
  CHECK(questions(world, sent).empty());
  CHECK(execute(world, get_batch(kId)).status);
  world.give_state(6, " .0.v:1 .1.v:1");  // The state before was 4, so the distributor has missed state 5.
  world.run(milliseconds(400));
  CHECK(questions(world, sent).size() == 2);
}

TEST_CASE(
    "distributor: a write that was sent before its distributor was called down holds nothing up once it is refused") {
  // A write in flight is counted by its bucket, here one made by a split; owners belong to the bucket before the split.
  DistributorWorld world(3);
  REQUIRE(world.tunables().set("distributor.bucket_entries_max", 2).is_ok());
  world.give_state(1, " .0.v:1 .1.v:1 .2.v:1");
  for (int i = 0; i < 20; ++i) REQUIRE(execute(world, put_batch("id:test:item::" + std::to_string(i))).status);
  world.run(seconds(20));
  REQUIRE(std::any_of(world.storage[0].begin(), world.storage[0].end(),
                      [](const auto& replica) { return BucketId(replica.first).used_bits() > 1; }));
  world.mute.assign(16, true);
  rpc::Execute batch = sent_in(put_batch("id:test:item::3", 5), 1);
  batch.operations[0].condition = "item.count >= 0";  // The write reads first because of the condition, and is counted.
  auto write = world.send(std::move(batch));
  world.run(milliseconds(50));
  REQUIRE_FALSE(write->has_value());
  world.mute.assign(16, false);
  world.state_keys = " skipped:1";
  world.give_state(3, " .0.v:1 .1.v:1 .2.v:1", " .0.v:3");
  world.run(seconds(2));
  REQUIRE(write->has_value());
  CHECK((*write)->results[0].status.code() == StatusCode::WrongDistribution);
  // A split waits until all operations that are under way on the bucket have ended.
  const auto id_of = [](int i) { return "id:test:item::" + std::to_string(i); };
  for (int i = 20; i < 60; ++i) REQUIRE(execute(world, sent_in(put_batch(id_of(i)), 3)).status);
  world.run(seconds(20));
  for (int i = 0; i < 60; ++i) CHECK(execute(world, sent_in(get_batch(id_of(i)), 3)).status);
  CHECK(world.ask(rpc::Poll{}).buckets_out_of_sync == 0);
}

TEST_CASE("distributor: storage nodes are told of merges that only move, and not of those that make replicas") {
  const auto merges = [](const DistributorWorld& world) {
    std::pair<std::size_t, std::size_t> found;  // Numbers of all merges, and of those that only move data.
    for (const rpc::MergeBucket& merge : world.transport.sent_of<rpc::MergeBucket>()) {
      ++found.first;
      found.second += merge.only_moves ? 1 : 0;
    }
    return found;
  };
  DistributorWorld world(3);
  world.give_state(1, " .0.v:1 .1.v:1 .2.v:1");
  REQUIRE(execute(world, put_batch(kId)).status);
  REQUIRE(merges(world).first == 0);
  const std::vector<std::uint16_t> members = world.ideal(kBucket);

  SECTION("a member retires") {
    world.give_state(2, " .0.v:1 .1.v:1 .2.v:1 ." + std::to_string(members[0]) + ".s:r");
    world.run(seconds(2));
    CHECK_FALSE(world.holds(members[0], kBucket));
    CHECK(merges(world).first > 0);
    CHECK(merges(world).second == merges(world).first);
  }
  SECTION("a member is down") {
    world.give_state(2, " .0.v:1 .1.v:1 .2.v:1 ." + std::to_string(members[0]) + ".s:d");
    world.run(seconds(2));
    CHECK(world.ideal(kBucket).size() == 2);
    CHECK(merges(world).first > 0);
    CHECK(merges(world).second == 0);
  }
}

TEST_CASE("distributor: a restarted member is asked for everything, and its bucket is brought in sync") {
  DistributorWorld world(2);
  world.give_state(1, " .0.v:1 .1.v:1");
  REQUIRE(execute(world, put_batch(kId)).status);
  world.storage[0][kBucket.raw()].documents.clear();  // Node 0 is like a node that lost unsynced data.
  const std::size_t sent = world.transport.sent().size();
  world.give_state(2, " .0.v:2 .1.v:1");
  world.run(seconds(2));
  CHECK(world.storage[0][kBucket.raw()].documents.contains(kId));
  const auto asked = questions(world, sent);
  const auto first = std::find_if(asked.begin(), asked.end(), [](const auto& one) { return one.first == 0; });
  REQUIRE(first != asked.end());
  CHECK(first->second.all);
}

TEST_CASE("distributor: a retired node's replicas move away and it is not asked to go before they have") {
  DistributorWorld world(3);
  world.give_state(1, " .0.v:1 .1.v:1 .2.v:1");
  REQUIRE(execute(world, put_batch(kId)).status);
  const std::uint16_t leaving = world.ideal(kBucket)[0];
  world.give_state(2, " .0.v:1 .1.v:1 .2.v:1 ." + std::to_string(leaving) + ".s:r");
  CHECK(execute(world, get_batch(kId)).status);
  world.run(seconds(2));
  CHECK_FALSE(world.holds(leaving, kBucket));
  const std::vector<std::uint16_t> ideal = world.ideal(kBucket);
  REQUIRE(ideal.size() == 2);
  for (std::uint16_t node : ideal) CHECK(world.storage[node][kBucket.raw()].documents.contains(kId));
  CHECK(execute(world, get_batch(kId)).status);
}

/// Returns the states of nodes 0 to 3; `special` has the keys of some of them.
std::string four_nodes(const std::map<std::uint16_t, std::string>& special) {
  std::string nodes;
  for (std::uint16_t i = 0; i < 4; ++i) {
    const auto found = special.find(i);
    nodes += " ." + std::to_string(i) + ".v:1";
    if (found != special.end()) nodes += " ." + std::to_string(i) + "." + found->second;
  }
  return nodes;
}

TEST_CASE(
    "distributor: a retired node keeps its replica while a node that is to stay is away and replicas would be "
    "missing") {
  DistributorWorld world(4, 3);
  world.give_state(1, four_nodes({}));
  REQUIRE(execute(world, put_batch(kId)).status);
  const std::vector<std::uint16_t> members = world.ideal(kBucket);
  const std::uint16_t other = static_cast<std::uint16_t>(6 - members[0] - members[1] - members[2]);
  const std::uint16_t leaving = members[0];
  world.give_state(2, four_nodes({{other, "s:d"}, {leaving, "s:r"}}));
  world.run(seconds(5));
  CHECK(distributor::same_nodes(world.set_at(members[1], kBucket).nodes, {members[1], members[2], leaving}));
  CHECK(world.ask(rpc::Poll{}).buckets_out_of_sync == 0);

  SECTION("the next one to be retired keeps its, too") {
    world.give_state(3, four_nodes({{other, "s:d"}, {leaving, "s:r"}, {members[1], "s:r"}}));
    world.run(seconds(5));
    // Two nodes stay, and one of these is up, so one of the two retired replicas is kept.
    CHECK(world.set_at(members[2], kBucket).nodes.size() == 2);
    CHECK(world.holds(leaving, kBucket) != world.holds(members[1], kBucket));
  }
  SECTION("it goes when the other one is back") {
    world.give_state(3, four_nodes({{other, "v:3"}, {leaving, "s:r"}}));
    world.run(seconds(5));
    CHECK(distributor::same_nodes(world.set_at(members[1], kBucket).nodes, {members[1], members[2], other}));
    CHECK_FALSE(world.holds(leaving, kBucket));
  }
  SECTION("it goes when the other one is to go, too") {
    world.give_state(3, four_nodes({{other, "v:3 ." + std::to_string(other) + ".s:r"}, {leaving, "s:r"}}));
    world.run(seconds(5));
    CHECK(distributor::same_nodes(world.set_at(members[1], kBucket).nodes, {members[1], members[2]}));
    CHECK_FALSE(world.holds(leaving, kBucket));
  }
}

TEST_CASE("distributor: with fewer replicas wanted the surplus members are left out of the set and deleted") {
  DistributorWorld world(3, 3);
  world.give_state(1, " .0.v:1 .1.v:1 .2.v:1");
  REQUIRE(execute(world, put_batch(kId)).status);
  REQUIRE(world.set_at(0, kBucket).nodes.size() == 3);
  world.set_redundancy(2);
  world.give_state(2, " .0.v:1 .1.v:1 .2.v:1");
  world.run(seconds(2));
  const std::vector<std::uint16_t> ideal = world.ideal(kBucket);
  REQUIRE(ideal.size() == 2);
  for (std::uint16_t node = 0; node < 3; ++node) {
    const bool belongs = std::find(ideal.begin(), ideal.end(), node) != ideal.end();
    CHECK(world.holds(node, kBucket) == belongs);
    if (belongs) CHECK(world.set_at(node, kBucket).nodes == ideal);
  }
  CHECK(execute(world, get_batch(kId)).status);
}

TEST_CASE("distributor: a new member is told of its set when those that stay know of it") {
  DistributorWorld world(3);
  world.give_state(1, " .0.v:1 .1.v:1 .2.v:1");
  REQUIRE(execute(world, put_batch(kId)).status);
  const std::vector<std::uint16_t> before = world.ideal(kBucket);
  const std::uint16_t leaving = before[0];
  const std::uint16_t staying = before[1];
  const auto joining = static_cast<std::uint16_t>(3 - leaving - staying);
  const std::uint64_t epoch = world.set_at(staying, kBucket).epoch;
  bool refuses = true;
  world.hook = [&](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    const auto* sets = std::get_if<rpc::SetReplicaSets>(&request);
    if (node != staying || !refuses || sets == nullptr) return std::nullopt;
    const bool has_joined = std::any_of(sets->buckets.begin(), sets->buckets.end(), [&](const auto& entry) {
      const auto& nodes = entry.replica_set.nodes;
      return std::find(nodes.begin(), nodes.end(), joining) != nodes.end();
    });
    if (!has_joined) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::NotReady, "not now"));
  };
  world.give_state(2, " .0.v:1 .1.v:1 .2.v:1 ." + std::to_string(leaving) + ".s:r");
  world.run(seconds(5));
  CHECK(world.storage[joining][kBucket.raw()].documents.contains(kId));  // The node has caught up, but is no member.
  CHECK(world.set_at(joining, kBucket).epoch <= epoch);
  refuses = false;
  world.run(seconds(5));
  CHECK(world.set_at(joining, kBucket).epoch > epoch);
  CHECK(world.set_at(joining, kBucket).nodes == world.ideal(kBucket));
}

TEST_CASE("distributor: a late answer to an earlier set does not count as the confirmation of the present one") {
  DistributorWorld world(3);
  world.give_state(1, " .0.v:1 .1.v:1 .2.v:1");
  REQUIRE(execute(world, put_batch(kId)).status);
  const std::vector<std::uint16_t> before = world.ideal(kBucket);
  const std::uint16_t leaving = before[0];
  const auto joining = static_cast<std::uint16_t>(3 - before[0] - before[1]);
  const auto epoch_sent = [](const rpc::Request& request) -> std::optional<std::uint64_t> {
    const auto* sets = std::get_if<rpc::SetReplicaSets>(&request);
    if (sets == nullptr) return std::nullopt;
    for (const rpc::BucketReplicaSet& entry : sets->buckets) {
      if (entry.bucket == kBucket) return entry.replica_set.epoch;
    }
    return std::nullopt;
  };
  // The answer to "you are catching up" takes longer than the merge; it arrives while the node refuses the new set.
  world.transport.set_delay_of([&](const rpc::Address& to, const rpc::Request& request) -> Duration {
    return to == std::to_string(joining) && epoch_sent(request) == 0 ? milliseconds(150) : milliseconds(1);
  });
  bool refuses = true;
  int refused = 0;
  world.hook = [&](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (node != joining || !refuses || epoch_sent(request).value_or(0) == 0) return std::nullopt;
    ++refused;
    return Result<rpc::Reply>(Status(StatusCode::NotReady, "not now"));
  };
  world.give_state(2, " .0.v:1 .1.v:1 .2.v:1 ." + std::to_string(leaving) + ".s:r");
  world.run(seconds(2));
  CHECK(refused > 1);
  CHECK(world.set_at(joining, kBucket).epoch == 0);
  CHECK(world.holds(leaving, kBucket));  // The replica is deleted only when the new set is in force.
  refuses = false;
  world.run(seconds(5));
  CHECK(world.set_at(joining, kBucket).nodes == world.ideal(kBucket));
  CHECK_FALSE(world.holds(leaving, kBucket));
  CHECK(execute(world, get_batch(kId)).status);
}

TEST_CASE(
    "distributor: a replica that believes in an earlier set learns that it is left out before anything is written") {
  DistributorWorld world(2);
  for (std::uint16_t node = 0; node < 2; ++node) {
    TestReplica& replica = world.storage[node][kBucket.raw()];
    replica.documents[kId] = {50, false, "", "old"};
    // Node 1 was left out of the set, and the message that told it so was lost.
    replica.set =
        node == 0 ? ReplicaSet{ReplicaSet::make_epoch(2, 1), {0}} : ReplicaSet{ReplicaSet::make_epoch(1, 1), {0, 1}};
  }
  bool is_cut_off = true;
  world.hook = [&](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (std::holds_alternative<rpc::MergeBucket>(request)) {
      return Result<rpc::Reply>(rpc::error_reply(request, Status(StatusCode::Busy, "later")));
    }
    if (node == 0 || !is_cut_off || !std::holds_alternative<rpc::SetReplicaSets>(request)) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::Timeout, "lost"));
  };
  world.give_state(3, " .0.v:1 .1.v:1");
  const auto put = world.send(put_batch(kId, 0, 1, "new"));
  world.run(milliseconds(800));
  CHECK_FALSE(put->has_value());
  CHECK(world.storage[0][kBucket.raw()].documents[kId].timestamp_us == 50);
  is_cut_off = false;
  world.run(milliseconds(800));
  REQUIRE(put->has_value());
  CHECK((*put)->results.at(0).status);
  CHECK(world.set_at(1, kBucket).epoch == world.set_at(0, kBucket).epoch);
  CHECK_FALSE(world.set_at(1, kBucket).contains(1));
}

TEST_CASE("distributor: there are no more merges at once than the setting says") {
  DistributorWorld world(3, 2, 4);
  REQUIRE(world.tunables().set("distributor.merges_max", 2).is_ok());
  world.give_state(1, " .0.v:1 .1.v:1 .2.v:1");
  for (int i = 0; i < 100; ++i) REQUIRE(execute(world, put_batch("id:t:item::" + std::to_string(i), i + 1)).status);
  int merges = 0;
  world.loses = [&](const rpc::Request& request) {
    const bool is_merge = std::holds_alternative<rpc::MergeBucket>(request);
    merges += is_merge ? 1 : 0;
    return is_merge;
  };
  world.give_state(2, " .0.v:1 .1.v:1 .2.v:1 .0.s:r");
  world.run(milliseconds(400));
  CHECK(merges == 2);
  world.run(milliseconds(500));  // The first two merges have timed out, so two more begin.
  CHECK(merges == 4);
  world.loses = nullptr;
  world.run(seconds(20));
  for (const auto& [raw, replica] : world.storage[0]) CHECK(replica.set.epoch == 0);
}

TEST_CASE("distributor: with more replicas wanted, what one node holds is missed until so many are assured") {
  DistributorWorld world(3, 1);
  world.state_keys = " copies:1";
  world.give_state(1, " .0.v:1 .1.v:1 .2.v:1");
  const std::string id = "id:t:item::1";
  const std::string unknown = "id:t:item::2";
  REQUIRE(execute(world, put_batch(id)).status);
  const std::uint16_t holder = world.ideal(bucket_of_id(id)).front();
  const auto without_holder = [&] {
    std::string nodes;
    for (std::uint16_t i = 0; i < 3; ++i) nodes += " ." + std::to_string(i) + (i == holder ? ".s:d" : ".v:1");
    return nodes;
  };
  // Nodes do not answer, so that the holder goes down before the second replica is made.
  world.mute.assign(16, true);
  world.set_redundancy(2);
  world.give_state(2, " .0.v:1 .1.v:1 .2.v:1");
  world.run(milliseconds(100));
  world.mute.assign(16, false);
  SECTION("of states one after the other") {}
  SECTION("of the last one alone") { world.restart(); }
  world.give_state(3, without_holder());
  CHECK(execute(world, get_batch(id)).status.code() == StatusCode::Unavailable);

  world.give_state(4, " .0.v:1 .1.v:1 .2.v:1 ." + std::to_string(holder) + ".v:4");
  world.run(seconds(5));
  CHECK(execute(world, get_batch(id)).status);
  CHECK(world.ask(rpc::Poll{}).buckets_out_of_sync == 0);
  world.state_keys = " copies:2";
  world.give_state(5, without_holder());
  CHECK(execute(world, get_batch(id)).status);
  CHECK(execute(world, get_batch(unknown)).status.code() == StatusCode::NotFound);
}

TEST_CASE("distributor: with fewer nodes to stay than replicas, what one of them holds is missed if it goes away") {
  DistributorWorld world(3, 2);
  world.give_state(1, " .0.v:1 .1.v:1 .2.v:1");
  const std::string id = "id:t:item::1";
  REQUIRE(execute(world, put_batch(id)).status);
  // Two nodes are being emptied, so the third one holds all data.
  world.state_keys = " copies:1";
  world.give_state(2, " .0.s:r .1.v:1 .2.s:r");
  world.run(seconds(5));
  REQUIRE(world.set_at(1, bucket_of_id(id)).nodes == std::vector<std::uint16_t>{1});
  // The distributor needs only the nodes that stay for a new bucket.
  CHECK(execute(world, put_batch("id:t:item::2")).status);
  // The node that was to stay goes down, and the other two stay now.
  world.give_state(3, " .0.v:1 .1.s:d .2.v:1");
  CHECK(execute(world, get_batch(id)).status.code() == StatusCode::Unavailable);
  CHECK(execute(world, put_batch("id:t:item::3")).status.code() == StatusCode::Unavailable);
  world.give_state(4, " .0.v:1 .1.v:4 .2.v:1");
  world.run(seconds(5));
  CHECK(execute(world, get_batch(id)).status);
  CHECK(world.ask(rpc::Poll{}).buckets_out_of_sync == 0);
  world.state_keys = " copies:2";
  world.give_state(5, " .0.v:1 .1.s:d .2.v:1");
  CHECK(execute(world, get_batch(id)).status);
}

TEST_CASE(
    "distributor: timestamps are above the floor of the state and not above what was granted, whatever the clock "
    "says") {
  DistributorWorld world(2);
  const auto now_us = static_cast<std::uint64_t>(world.clock.wall_now().us);
  const auto put = [&] { return execute(world, put_batch(kId)).timestamp_us; };
  const auto grant = [&](std::uint64_t ceiling_us) {
    world.poll([&](rpc::Poll& poll) {
      poll.info = {};
      poll.info.state_version = 0;
      poll.time_ceiling_us = ceiling_us;
    });
  };
  SECTION("a clock that is ahead") {
    const std::uint64_t floor = now_us - 3'600'000'000;
    world.give_state(1, " floor:" + std::to_string(floor));
    const std::uint64_t first = put();
    CHECK(first == floor + 1);  // Without a granted ceiling timestamps follow the floor.
    CHECK(put() == first + 1);
    grant(floor + 5'000'000);
    CHECK(put() == floor + 5'000'000);
    CHECK(put() == floor + 5'000'001);
    grant(floor + 1'000'000);  // A late duplicate of an older grant.
    CHECK(put() == floor + 5'000'002);
  }
  SECTION("a clock that is behind") {
    const std::uint64_t floor = now_us + 3'600'000'000;
    world.give_state(1, " floor:" + std::to_string(floor));
    grant(floor + 5'000'000);
    CHECK(put() == floor + 1);
    CHECK(put() == floor + 2);
    world.give_state(2, " floor:" + std::to_string(floor + 9'000'000));
    CHECK(put() == floor + 9'000'001);
  }
  SECTION("the right clock") {
    world.give_state(1, " floor:" + std::to_string(now_us - 1000));
    grant(now_us + 60'000'000);
    CHECK(put() >= now_us);
    const std::uint64_t given_us = put();
    CHECK(given_us <= static_cast<std::uint64_t>(world.clock.wall_now().us));
  }
  SECTION("a fleet controller that grants nothing") {
    world.give_state(1);
    CHECK(put() >= now_us);
  }
}

TEST_CASE("distributor: clients get only newer cluster information, and fleet controllers get all of it") {
  DistributorWorld world(2);
  world.give_state(3);
  REQUIRE(world.poll([](rpc::Poll& poll) { poll.time_ceiling_us = 77; }).status);
  const rpc::ClusterInfo first = world.ask(rpc::GetClusterInfo{}).info;
  CHECK_FALSE(first.state.empty());
  CHECK(first.schemas.size() == 1);
  rpc::GetClusterInfo question{.known_state_version = 3, .known_schema_version = first.schema_version};
  const rpc::GetClusterInfoReply nothing_new = world.ask(question);
  REQUIRE(nothing_new.status);
  CHECK(nothing_new.info.state_version == 3);
  CHECK(nothing_new.info.state.empty());
  CHECK(nothing_new.info.schemas.empty());
  question.everything = true;
  const rpc::GetClusterInfoReply everything = world.ask(question);
  REQUIRE(everything.status);
  CHECK(everything.info.state == first.state);
  CHECK(everything.info.schemas == first.schemas);
  CHECK(everything.time_ceiling_us == 77);
}

}  // namespace fjord::test
