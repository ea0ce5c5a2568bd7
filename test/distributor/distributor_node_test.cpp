#include "fjord/distributor/distributor_node.h"

#include <catch2/catch.hpp>
#include <set>

#include "distributor_world.h"

namespace fjord::test {
namespace {

const std::string kId = "id:test:item:n=1:a";
const BucketId kBucket = bucket_of_id(kId);

rpc::OperationResult only(rpc::ExecuteReply reply) {
  REQUIRE(reply.status);
  REQUIRE(reply.results.size() == 1);
  return std::move(reply.results[0]);
}
rpc::OperationResult execute(DistributorWorld& world, rpc::Execute batch) { return only(world.ask(std::move(batch))); }
std::size_t applies(const DistributorWorld& world) { return world.transport.sent_of<rpc::Apply>().size(); }

/// Makes `at` answer every Apply with `code`, without executing it.
DistributorWorld::Hook refuse_applies(std::uint16_t at, StatusCode code) {
  return [at, code](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (node != at || !std::holds_alternative<rpc::Apply>(request)) return std::nullopt;
    rpc::ApplyReply reply;
    reply.results.resize(std::get<rpc::Apply>(request).operations.size());
    for (rpc::OperationResult& result : reply.results) result.status = Status(code, "said the test");
    return Result<rpc::Reply>(rpc::Reply(std::move(reply)));
  };
}

}  // namespace

TEST_CASE("distributor: a write is acknowledged when all members have it, with one timestamp") {
  DistributorWorld world(2);
  world.give_state(1);
  rpc::OperationResult put = execute(world, put_batch(kId));
  REQUIRE(put.status);
  for (std::uint16_t node : {std::uint16_t{0}, std::uint16_t{1}}) {
    CHECK(world.storage[node][kBucket.raw()].documents[kId].timestamp_us == put.timestamp_us);
  }
  CHECK(execute(world, get_batch(kId)).json.find("\"v\"") != std::string::npos);

  world.mute[1] = true;
  auto waiting = world.send(put_batch(kId));
  world.run(seconds(1));
  CHECK_FALSE(waiting->has_value());  // No answer: it is unknown whether the second member has the write.
  world.mute[1] = false;
  world.run(milliseconds(500));
  REQUIRE(waiting->has_value());
  CHECK(only(**waiting).status);
}

TEST_CASE("distributor: storage nodes are told how many operations nobody waits for") {
  DistributorWorld world(2);
  world.give_state(1);
  rpc::Execute batch = put_batch(kId);
  batch.operations.push_back(batch.operations[0]);
  batch.operations[0].priority = rpc::Priority::Background;
  world.send(batch);
  world.run(seconds(1));
  REQUIRE(execute(world, get_batch(kId)).status);
  std::size_t operations = 0;
  std::size_t in_background = 0;
  for (const rpc::Apply& sent : world.transport.sent_of<rpc::Apply>()) {
    operations += sent.operations.size();
    in_background += sent.in_background;
    CHECK(sent.in_background <= sent.operations.size());
  }
  CHECK(operations == 5);  // Two puts on two members each, and one get.
  CHECK(in_background == 2);
}

TEST_CASE("distributor: messages to storage nodes have rising numbers, also after a restart") {
  const auto numbers_of = [](DistributorWorld& world) {
    REQUIRE(execute(world, put_batch(kId)).status);
    REQUIRE(execute(world, put_batch(kId, 0, 1, "second")).status);
    std::vector<std::uint64_t> numbers;
    for (const rpc::Apply& sent : world.transport.sent_of<rpc::Apply>()) numbers.push_back(sent.number);
    REQUIRE(numbers.size() == 4);  // Two puts on two members each.
    CHECK(std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) == numbers.end());
    return numbers;
  };
  DistributorWorld world(2);
  world.give_state(1);
  const auto before = numbers_of(world);
  DistributorWorld later(2);
  later.clock.jump_wall(seconds(1));
  later.restart();
  later.give_state(1);
  CHECK(numbers_of(later).front() > before.back());
}

TEST_CASE("distributor: when a silent member is declared down, the write is acknowledged by the others") {
  DistributorWorld world(3);
  world.give_state(1, " .0.v:1 .1.v:1 .2.v:1");
  REQUIRE(execute(world, put_batch(kId)).status);
  const std::vector<std::uint16_t> members = world.ideal(kBucket);
  world.mute[members[1]] = true;
  auto waiting = world.send(put_batch(kId, 0, 1, "second"));
  world.run(milliseconds(300));
  REQUIRE_FALSE(waiting->has_value());
  std::string nodes;
  for (std::uint16_t i = 0; i < 3; ++i) {
    nodes += " ." + std::to_string(i) + (i == members[1] ? ".s:d" : ".v:1");
  }
  world.give_state(2, nodes);
  world.run(milliseconds(500));
  REQUIRE(waiting->has_value());
  CHECK(only(**waiting).status);
  CHECK(world.set_at(members[0], kBucket).state_version() == 2);
  CHECK_FALSE(world.set_at(members[0], kBucket).contains(members[1]));
}

TEST_CASE("distributor: timestamps rise over clocks that step back and over owners that were ahead") {
  DistributorWorld world(2);
  const std::uint64_t future = static_cast<std::uint64_t>(world.clock.wall_now().us) + 3'600'000'000;
  for (DistributorWorld::Storage& node : world.storage) {
    node[kBucket.raw()].set = {ReplicaSet::make_epoch(1, 1), {0, 1}};
    node[kBucket.raw()].documents["id:test:item:n=1:other"].timestamp_us = future;
  }
  world.give_state(1, " .0.v:1 .1.v:1");
  const std::uint64_t first = execute(world, put_batch(kId)).timestamp_us;
  CHECK(first == future + 1);
  world.clock.jump_wall(seconds(-7200));
  CHECK(execute(world, put_batch(kId)).timestamp_us == first + 1);
  world.clock.jump_wall(seconds(20'000));
  CHECK(execute(world, put_batch(kId)).timestamp_us > first + 1'000'000);
}

TEST_CASE("distributor: nothing is served before every node that is up has reported") {
  DistributorWorld world(3);
  world.mute[2] = true;
  world.give_state(1);
  auto get = world.send(get_batch(kId));
  world.run(milliseconds(900));
  CHECK_FALSE(get->has_value());
  CHECK(applies(world) == 0);
  rpc::GetBucketNodesReply nodes = world.ask(rpc::GetBucketNodes{.state_version = 1, .all = true, .buckets = {}});
  CHECK(nodes.status.code() == StatusCode::NotReady);
  world.mute[2] = false;
  world.run(milliseconds(500));
  REQUIRE(get->has_value());
  CHECK(only(**get).status.code() == StatusCode::NotFound);
}

TEST_CASE("distributor: of a write that one member has and the other one has not, reads see always or never") {
  DistributorWorld world(2);
  world.give_state(1);
  REQUIRE(execute(world, put_batch(kId, 1, 1, "old")).status);
  std::uint16_t without = 0;
  SECTION("the first") { without = 0; }
  SECTION("the second") { without = 1; }
  world.hook = [&](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    const auto* apply = std::get_if<rpc::Apply>(&request);
    if (node != without || apply == nullptr) return std::nullopt;
    if (apply->operations.front().kind != rpc::OperationKind::Put) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::Timeout, "lost"));
  };
  const auto put = world.send(put_batch(kId, 2, 1, "new"));
  world.run(milliseconds(50));
  rpc::Execute in_session = get_batch(kId);
  in_session.operations.front().consistency = rpc::Consistency::Session;
  const auto session = world.send(in_session);
  const auto other_session = world.send(in_session);
  std::set<std::string> seen;
  for (int i = 0; i < 30; ++i) seen.insert(execute(world, get_batch(kId)).json);
  CHECK(seen.size() == 1);
  CHECK_FALSE(put->has_value());
  CHECK_FALSE(session->has_value());

  world.hook = nullptr;
  world.run(seconds(1));
  REQUIRE(put->has_value());
  CHECK(only(**put).status);
  for (const auto& read : {session, other_session}) {
    REQUIRE(read->has_value());
    CHECK(only(**read).json.find("new") != std::string::npos);
  }
}

TEST_CASE("distributor: a read in a session waits until a write in doubt is on all replicas or on none") {
  DistributorWorld world(2);
  world.give_state(1);
  REQUIRE(execute(world, put_batch(kId, 1, 1, "old")).status);
  world.hook = [&](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    const auto* apply = std::get_if<rpc::Apply>(&request);
    const bool is_get = apply != nullptr && apply->operations.front().kind == rpc::OperationKind::Get;
    if (node != 1 || is_get || std::holds_alternative<rpc::GetBucketInfo>(request)) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::Timeout, "lost"));
  };
  CHECK(execute(world, put_batch(kId, 2, 1, "new")).status.code() == StatusCode::Timeout);
  rpc::Execute in_session = get_batch(kId);
  in_session.operations.front().consistency = rpc::Consistency::Session;
  const auto read = world.send(in_session);
  world.run(seconds(1));
  CHECK(execute(world, get_batch(kId)).json.find("new") != std::string::npos);  // One crash may undo the put in doubt.
  CHECK_FALSE(read->has_value());
  world.hook = nullptr;
  world.run(seconds(5));
  REQUIRE(read->has_value());
  CHECK(only(**read).json.find("new") != std::string::npos);
  CHECK(world.storage[1][kBucket.raw()].documents[kId].body == world.storage[0][kBucket.raw()].documents[kId].body);
}

TEST_CASE(
    "distributor: a write that lands at one member when the merge after it has looked there reaches the other one") {
  DistributorWorld world(2);
  world.give_state(1);
  REQUIRE(execute(world, put_batch(kId, 1, 1, "old")).status);
  const auto late = GENERATE(as<std::uint16_t>{}, 0, 1);
  std::optional<rpc::StorageOperation> on_its_way;
  world.hook = [&](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (const auto* apply = std::get_if<rpc::Apply>(&request)) {
      if (apply->operations.front().kind != rpc::OperationKind::Put) return std::nullopt;
      on_its_way = apply->operations.front();
      return Result<rpc::Reply>(Status(StatusCode::Timeout, "lost"));
    }
    if (node == late && on_its_way && std::holds_alternative<rpc::SetReplicaSets>(request)) {
      TestReplica::Version& here = world.storage[node][kBucket.raw()].documents[kId];
      here = {on_its_way->timestamp_us, false, on_its_way->header, on_its_way->body};
      world.hook = nullptr;
    }
    return std::nullopt;
  };
  CHECK(execute(world, put_batch(kId, 2, 1, "new")).status.code() == StatusCode::Timeout);
  world.run(seconds(5));
  REQUIRE(world.hook == nullptr);
  CHECK(execute(world, get_batch(kId)).json.find("new") != std::string::npos);
  for (std::uint16_t node = 0; node < 2; ++node) {
    CHECK(world.storage[node][kBucket.raw()].documents[kId].timestamp_us == on_its_way->timestamp_us);
  }
}

TEST_CASE("distributor: subscribers are told of a time before which no write is under way") {
  DistributorWorld world(2);
  world.give_state(1);
  const std::uint64_t first = execute(world, put_batch(kId)).timestamp_us;
  rpc::GetBucketNodes request;
  request.state_version = 1;
  request.for_changes = true;
  const auto told = [&] {
    const rpc::GetBucketNodesReply reply = world.ask(request);
    const auto found = std::find_if(reply.buckets.begin(), reply.buckets.end(),
                                    [](const rpc::BucketNode& one) { return one.bucket == kBucket; });
    REQUIRE(found != reply.buckets.end());
    return *found;
  };
  CHECK(told().status);
  CHECK(told().stable_us == first);
  CHECK(told().epoch != 0);
  world.mute[1] = true;
  auto second = world.send(put_batch(kId, 2, 1, "second"));
  auto third = world.send(put_batch(kId, 3, 1, "third"));
  world.run(milliseconds(50));
  const std::uint64_t meanwhile = told().stable_us;
  world.mute[1] = false;
  world.run(seconds(5));
  REQUIRE(second->has_value());
  REQUIRE(third->has_value());
  const std::uint64_t oldest = std::min(only(**second).timestamp_us, only(**third).timestamp_us);
  CHECK(meanwhile == oldest - 1);
  CHECK(told().stable_us == std::max(only(**second).timestamp_us, only(**third).timestamp_us));
}

TEST_CASE("distributor: subscribers wait for a write in doubt as long as its client may repeat it") {
  DistributorWorld world(2);
  world.give_state(1);
  const std::uint64_t first = execute(world, put_batch(kId)).timestamp_us;
  const auto stable = [&](std::uint64_t version) {
    rpc::GetBucketNodes request;
    request.state_version = version;
    request.for_changes = true;
    std::uint64_t found = 0;
    for (const rpc::BucketNode& one : world.ask(request).buckets) {
      if (one.bucket == kBucket && one.status) found = one.stable_us;
    }
    return found;
  };
  world.loses = [](const rpc::Request& request) { return std::holds_alternative<rpc::Apply>(request); };
  REQUIRE(execute(world, put_batch(kId, 1, 1, "doubt")).status.code() == StatusCode::Timeout);
  world.loses = nullptr;
  const std::uint64_t later = execute(world, put_batch("id:test:item:n=1:b", 2, 1)).timestamp_us;
  world.run(seconds(1));
  CHECK(stable(1) >= first);
  CHECK(stable(1) < later);

  SECTION("it is repeated: then it has ended, below what the subscriber was told of") {
    const rpc::OperationResult repeated = execute(world, put_batch(kId, 1, 2, "doubt"));
    CHECK(repeated.status);
    CHECK(repeated.timestamp_us < later);
    CHECK(stable(1) == later);
  }
  SECTION("its client has given it up") {
    rpc::Execute next = get_batch(kId);
    next.client_id = 5;
    next.first_unsettled = 3;
    CHECK(execute(world, next).status);
    CHECK(stable(1) == later);
  }
  SECTION("nobody repeats it in time: it stays in doubt") {
    world.run(seconds(11));
    CHECK(stable(1) == later);
    CHECK(execute(world, put_batch(kId, 1, 2, "doubt")).status.code() == StatusCode::Timeout);
    CHECK(world.storage[0][kBucket.raw()].documents[kId].timestamp_us == first);
  }
  SECTION("the next state leaves the bucket where it is") {
    world.give_state(2);
    world.run(seconds(1));
    CHECK(stable(2) < later);
    CHECK(execute(world, put_batch(kId, 1, 2, "doubt")).status);
  }
  SECTION("a state was never in force, and so had no owner") {
    world.state_keys = " skipped:1";
    world.give_state(3);
    world.run(seconds(1));
    CHECK(stable(3) < later);
    CHECK(execute(world, put_batch(kId, 1, 2, "doubt")).status);
  }
  SECTION("a state was missed, in which another distributor may have owned the bucket: it stays in doubt") {
    world.give_state(3);
    world.run(seconds(1));
    CHECK(stable(3) == later);
    CHECK(execute(world, put_batch(kId, 1, 2, "doubt")).status.code() == StatusCode::Timeout);
    CHECK(world.storage[0][kBucket.raw()].documents[kId].timestamp_us == first);
  }
}

TEST_CASE("distributor: a write that outlives its owner's time is not sent again below what subscribers were told") {
  DistributorWorld world(2);
  world.give_state(1);
  const std::uint64_t first = execute(world, put_batch(kId)).timestamp_us;
  const bool is_sent = GENERATE(true, false);
  if (is_sent) {
    world.loses = [](const rpc::Request& request) { return std::holds_alternative<rpc::Apply>(request); };
  } else {
    world.hook = [](std::uint16_t, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
      if (!std::holds_alternative<rpc::Apply>(request)) return std::nullopt;
      return rpc::Reply(rpc::ApplyReply{.status = Status(StatusCode::Busy, "the disk fills up"), .results = {}});
    };
  }
  const auto write = world.send(put_batch(kId, 1, 1, "under way"));
  world.run(milliseconds(100));
  REQUIRE_FALSE(write->has_value());
  const auto told_of = static_cast<std::uint64_t>(world.clock.wall_now().us);
  world.loses = nullptr;
  world.hook = nullptr;
  SECTION("a state was missed") { world.give_state(3); }
  SECTION("it had no owner for one state") {
    world.give_state(2, {}, " .0.s:d");
    world.give_state(3);
  }
  world.run(seconds(2));
  REQUIRE(write->has_value());
  if (is_sent) {
    CHECK(only(**write).status.code() == StatusCode::Timeout);
    CHECK(execute(world, put_batch(kId, 1, 2, "under way")).status.code() == StatusCode::Timeout);
    CHECK(world.storage[0][kBucket.raw()].documents[kId].timestamp_us == first);
  } else {
    CHECK(only(**write).status);
    CHECK(only(**write).timestamp_us > told_of);
  }
}

TEST_CASE("distributor: a copy of a write under way gets its answer, a copy of a settled one is answered from memory") {
  DistributorWorld world(2);
  world.give_state(1);
  auto first = world.send(put_batch(kId, 1, 1));
  auto copy = world.send(put_batch(kId, 1, 1));
  world.run(milliseconds(100));
  REQUIRE(first->has_value());
  REQUIRE(copy->has_value());
  CHECK(only(**first).timestamp_us == only(**copy).timestamp_us);
  const std::size_t sent = applies(world);
  CHECK(sent == 2);  // One Apply to each replica.

  rpc::OperationResult late = execute(world, put_batch(kId, 1, 2));
  CHECK(late.status);
  CHECK(late.timestamp_us == only(**first).timestamp_us);
  rpc::Execute next = put_batch(kId, 2, 1, "second");
  next.first_unsettled = 2;
  REQUIRE(execute(world, next).status);
  CHECK(execute(world, put_batch(kId, 1, 3)).status.code() == StatusCode::InvalidArgument);
  CHECK(applies(world) == sent + 2);
  CHECK(execute(world, get_batch(kId)).json.find("second") != std::string::npos);
}

TEST_CASE("distributor: a copy of an attempt that was refused stays refused, a newer attempt is executed") {
  DistributorWorld world(2);
  world.give_state(1, " .1.s:d");  // A new bucket needs both nodes.
  CHECK(execute(world, put_batch(kId, 1, 1)).status.code() == StatusCode::Unavailable);
  world.give_state(2);
  world.run(milliseconds(100));
  rpc::OperationResult copy =
      execute(world, put_batch(kId, 1, 1));  // A duplicate of the put, which was in flight all the time.
  CHECK(copy.status.code() == StatusCode::Unavailable);
  CHECK(execute(world, get_batch(kId)).status.code() == StatusCode::NotFound);
  CHECK(execute(world, put_batch(kId, 1, 2)).status);
  CHECK(execute(world, get_batch(kId)).status);
}

TEST_CASE("distributor: a write in doubt is the same write when its client repeats it") {
  DistributorWorld world(2);
  world.give_state(1);
  REQUIRE(execute(world, put_batch(kId)).status);
  world.mute[1] = true;
  rpc::OperationResult doubt = execute(world, put_batch(kId, 1, 1, "doubt"));
  CHECK(doubt.status.code() == StatusCode::Timeout);
  CHECK(execute(world, put_batch(kId, 1, 1, "doubt")).status.code() == StatusCode::Timeout);  // So does a duplicate.
  const std::uint64_t written = world.storage[0][kBucket.raw()].documents[kId].timestamp_us;
  world.mute[1] = false;
  rpc::OperationResult settled = execute(world, put_batch(kId, 1, 2, "doubt"));
  CHECK(settled.status);
  CHECK(settled.timestamp_us == written);
}

TEST_CASE("distributor: a write that one member refused for good is in doubt, and the members are merged") {
  DistributorWorld world(2);
  world.give_state(1);
  REQUIRE(execute(world, put_batch(kId)).status);
  world.hook = refuse_applies(1, StatusCode::NoSpace);
  CHECK(execute(world, put_batch(kId, 0, 1, "half")).status.code() == StatusCode::Timeout);
  world.hook = nullptr;
  world.run(seconds(2));
  CHECK(world.storage[1][kBucket.raw()].documents[kId].timestamp_us ==
        world.storage[0][kBucket.raw()].documents[kId].timestamp_us);
  CHECK(world.ask(rpc::Poll{}).buckets_out_of_sync == 0);
}

TEST_CASE("distributor: a merge is repeated if a write did not reach all members meanwhile") {
  DistributorWorld world(2);
  world.has_contents = GENERATE(false, true);
  world.give_state(1);
  REQUIRE(execute(world, put_batch(kId)).status);
  world.hook = refuse_applies(1, StatusCode::IoError);
  world.transport.set_delay_of([](const rpc::Address&, const rpc::Request& request) {
    return std::holds_alternative<rpc::MergeBucket>(request) ? milliseconds(100) : milliseconds(1);
  });
  const auto merges = [&] { return world.transport.sent_of<rpc::MergeBucket>().size(); };
  CHECK(execute(world, put_batch(kId, 0, 1, "half")).status.code() == StatusCode::Timeout);
  REQUIRE(world.scheduler.run_until([&] { return merges() % 2 == 0; }, seconds(1)));  // Both members are being merged.
  const std::size_t before = merges();
  CHECK(execute(world, put_batch(kId, 0, 1, "half again")).status.code() == StatusCode::Timeout);
  REQUIRE(merges() == before);  // The merges have no answer yet.
  world.hook = nullptr;
  world.run(seconds(2));
  CHECK(world.storage[1][kBucket.raw()].documents[kId].timestamp_us ==
        world.storage[0][kBucket.raw()].documents[kId].timestamp_us);
  CHECK(world.ask(rpc::Poll{}).buckets_out_of_sync == 0);
}

TEST_CASE("distributor: a write that all members refused is refused") {
  DistributorWorld world(1, 1);
  world.give_state(1);
  REQUIRE(execute(world, put_batch(kId)).status);
  world.hook = refuse_applies(0, StatusCode::NoSpace);
  CHECK(execute(world, put_batch(kId, 0, 1, "no")).status.code() == StatusCode::NoSpace);
}

TEST_CASE("distributor: of two reasons to refuse a write, the one that does not pass by itself is told") {
  for (const bool first_is_full : {true, false}) {
    DistributorWorld world(2);
    world.give_state(1);
    REQUIRE(execute(world, put_batch(kId)).status);
    const auto of_first = refuse_applies(0, first_is_full ? StatusCode::NoSpace : StatusCode::IoError);
    const auto of_second = refuse_applies(1, first_is_full ? StatusCode::IoError : StatusCode::NoSpace);
    world.hook = [=](std::uint16_t node, rpc::Request& request) {
      auto answer = of_first(node, request);
      return answer ? std::move(answer) : of_second(node, request);
    };
    CHECK(execute(world, put_batch(kId, 0, 1, "no")).status.code() == StatusCode::IoError);
  }
}

TEST_CASE("distributor: a write that was throttled for lack of space until its deadline was not applied") {
  DistributorWorld world(1, 1);
  world.give_state(1);
  REQUIRE(execute(world, put_batch(kId)).status);
  world.hook = refuse_applies(0, StatusCode::Busy);
  CHECK(execute(world, put_batch(kId, 1, 1, "no")).status.code() == StatusCode::Unavailable);
  world.hook = refuse_applies(0, StatusCode::NoSpace);
  CHECK(execute(world, put_batch(kId, 1, 2, "no")).status.code() == StatusCode::NoSpace);
}

TEST_CASE("distributor: a write that was throttled before a new cluster state and refused after it was not applied") {
  DistributorWorld world(1, 1);
  world.give_state(1);
  REQUIRE(execute(world, put_batch(kId)).status);
  world.hook = refuse_applies(0, StatusCode::Busy);
  auto put = world.send(put_batch(kId, 1, 1, "no"));
  world.run(milliseconds(150));
  REQUIRE_FALSE(put->has_value());
  world.hook = refuse_applies(0, StatusCode::NoSpace);
  world.give_state(2);
  world.run(milliseconds(500));
  REQUIRE(put->has_value());
  CHECK(only(**put).status.code() == StatusCode::NoSpace);
}

TEST_CASE(
    "distributor: a write that one node left unanswered is in doubt, though it was refused for lack of space later") {
  DistributorWorld world(1, 1);
  world.give_state(1);
  REQUIRE(execute(world, put_batch(kId)).status);
  world.mute[0] = true;
  auto put = world.send(put_batch(kId, 1, 1, "perhaps"));
  world.run(milliseconds(150));
  REQUIRE_FALSE(put->has_value());
  world.mute[0] = false;
  world.hook = refuse_applies(0, StatusCode::NoSpace);
  world.run(seconds(2));
  REQUIRE(put->has_value());
  CHECK(only(**put).status.code() == StatusCode::Timeout);
}

TEST_CASE("distributor: while members differ, a read asks all of them and the newest version wins") {
  DistributorWorld world(2);
  for (std::uint16_t node : {std::uint16_t{0}, std::uint16_t{1}}) {
    TestReplica& replica = world.storage[node][kBucket.raw()];
    replica.set = {ReplicaSet::make_epoch(1, 1), {0, 1}};
    replica.documents[kId] = {100u + node, node == 1, "", ""};  // The remove, on node 1, is newer.
  }
  world.hook = [](std::uint16_t, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (!std::holds_alternative<rpc::MergeBucket>(request)) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::NotReady, "no merge in this test"));
  };
  world.give_state(1, " .0.v:1 .1.v:1");
  for (int i = 0; i < 10; ++i) {
    CHECK(execute(world, get_batch(kId)).status.code() == StatusCode::NotFound);
  }
  CHECK(applies(world) == 20);
  rpc::GetBucketNodesReply nodes =
      world.ask(rpc::GetBucketNodes{.state_version = 1, .all = false, .buckets = {kBucket}});
  CHECK(nodes.buckets.at(0).status.code() == StatusCode::NotReady);  // A visit, which reads one replica, has to wait.
}

TEST_CASE("distributor: a read that is repeated under a new state counts nothing of the earlier attempt") {
  DistributorWorld world(2);
  for (std::uint16_t node : {std::uint16_t{0}, std::uint16_t{1}}) {
    TestReplica& replica = world.storage[node][kBucket.raw()];
    replica.set = {ReplicaSet::make_epoch(1, 1), {0, 1}};
    replica.documents[kId] = {node == 0 ? 200u : 100u, node == 0, "", "old"};
  }
  world.hook = [](std::uint16_t, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (!std::holds_alternative<rpc::MergeBucket>(request)) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::NotReady, "no merge in this test"));
  };
  world.give_state(1, " .0.v:1 .1.v:1");
  world.run(milliseconds(50));
  world.mute[1] = true;
  rpc::Execute batch = get_batch(kId);
  batch.operations[0].want_json = false;
  auto get = world.send(batch);  // Node 0 answers with the remove of timestamp 200.
  world.run(milliseconds(100));
  REQUIRE_FALSE(get->has_value());
  world.mute[1] = false;
  world.give_state(2, " .0.s:d .1.v:1");  // Node 1 is the only member left, and its version is the newest.
  world.run(milliseconds(300));
  REQUIRE(get->has_value());
  rpc::OperationResult result = only(**get);
  CHECK(result.status);
  CHECK(result.timestamp_us == 100);
  CHECK(result.body == "old");
}

TEST_CASE("distributor: a bucket is made with all its replicas or not at all") {
  DistributorWorld world(2);
  world.give_state(1, " .1.s:d");
  CHECK(execute(world, put_batch(kId)).status.code() == StatusCode::Unavailable);
  CHECK(world.transport.sent_of<rpc::SetReplicaSets>().empty());
  CHECK_FALSE(world.holds(0, kBucket));
  CHECK(execute(world, get_batch(kId)).status.code() == StatusCode::NotFound);  // Node 0, which is up, has no replica.
}

TEST_CASE("distributor: with a spare node buckets are still made while one is away") {
  DistributorWorld world(3);
  world.give_state(1, " .1.s:d");
  REQUIRE(execute(world, put_batch(kId)).status);
  CHECK(world.holds(0, kBucket));
  CHECK(world.holds(2, kBucket));
}

TEST_CASE("distributor: without a spare node all buckets are made as soon as nobody is away") {
  DistributorWorld world(2, 2, 2);
  world.give_state(1);
  world.run(milliseconds(100));
  for (const DistributorWorld::Storage& node : world.storage) {
    CHECK(node.size() == 4);
    for (const auto& [raw, replica] : node) CHECK(replica.set.nodes.size() == 2);
  }
}

TEST_CASE("distributor: what nobody reported may exist if as many nodes are away as a bucket has replicas") {
  DistributorWorld world(4);
  world.give_state(1, " .1.s:d .2.s:d");
  CHECK(execute(world, get_batch(kId)).status.code() == StatusCode::Unavailable);
  CHECK(execute(world, put_batch(kId)).status.code() == StatusCode::Unavailable);
  rpc::GetBucketNodesReply all = world.ask(rpc::GetBucketNodes{.state_version = 1, .all = true, .buckets = {}});
  REQUIRE(all.status);
  CHECK(all.buckets.size() == 2);
  for (const rpc::BucketNode& one : all.buckets) CHECK(one.status.code() == StatusCode::Unavailable);
  world.give_state(2, " .1.s:d");
  CHECK(execute(world, get_batch(kId)).status.code() == StatusCode::NotFound);
}

TEST_CASE("distributor: a node that is filled gets all writes, is not read, and joins when a merge is done") {
  DistributorWorld world(3);
  const std::string nodes = " .0.v:1 .1.v:1 .2.v:1";
  world.give_state(1, nodes);
  const std::vector<std::uint16_t> want = world.ideal(kBucket);
  const auto other = static_cast<std::uint16_t>(3 - want[0] - want[1]);
  // The bucket is on one of its ideal nodes and on another node.
  const std::vector<std::uint16_t> have = {want[0], other};
  for (std::uint16_t node : have) {
    TestReplica& replica = world.storage[node][kBucket.raw()];
    replica.set = {ReplicaSet::make_epoch(1, 1), have};
    replica.documents[kId] = {100, false, "", "old"};
  }
  bool merges_fail = true;
  int deletes_lost = 3;
  world.hook = [&](std::uint16_t, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (std::holds_alternative<rpc::MergeBucket>(request) && merges_fail) {
      return Result<rpc::Reply>(Status(StatusCode::Timeout, "lost"));
    }
    if (std::holds_alternative<rpc::DeleteBuckets>(request) && deletes_lost-- > 0) {
      return Result<rpc::Reply>(Status(StatusCode::Timeout, "lost"));
    }
    return std::nullopt;
  };
  world.give_state(2, nodes);
  rpc::OperationResult put = execute(world, put_batch(kId));
  REQUIRE(put.status);
  CHECK(world.storage[want[1]][kBucket.raw()].documents[kId].timestamp_us == put.timestamp_us);
  CHECK(world.set_at(want[1], kBucket).epoch == 0);
  CHECK(world.ask(rpc::Poll{}).buckets_out_of_sync == 1);

  std::set<std::uint16_t> read;
  for (int i = 0; i < 30; ++i) {
    rpc::GetBucketNodesReply reply =
        world.ask(rpc::GetBucketNodes{.state_version = 2, .all = false, .buckets = {kBucket}});
    read.insert(reply.buckets.at(0).node);
  }
  CHECK(read == std::set<std::uint16_t>(have.begin(), have.end()));

  merges_fail = false;
  world.run(milliseconds(250));
  CHECK(world.set_at(want[0], kBucket).nodes == want);
  CHECK(world.set_at(want[1], kBucket).nodes == want);
  CHECK(world.holds(other, kBucket));  // The order to delete its replica was lost.
  world.run(seconds(2));
  CHECK_FALSE(world.holds(other, kBucket));  // The distributor has repeated the order.
  CHECK(world.ask(rpc::Poll{}).buckets_out_of_sync == 0);
}

TEST_CASE("distributor: a replica that is being filled holds up no write, and lacks none when it joins") {
  DistributorWorld world(2);
  world.storage[0][kBucket.raw()].set = {ReplicaSet::make_epoch(1, 1), {0}};
  enum class Filling { Refuses, IsFull, IsSilent, AnswersLate };
  const Filling filling = GENERATE(Filling::Refuses, Filling::IsFull, Filling::IsSilent, Filling::AnswersLate);
  CAPTURE(static_cast<int>(filling));
  const bool is_late = filling == Filling::AnswersLate;
  bool troubled = true;
  bool merges_lost = true;
  world.hook = [&](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (merges_lost && std::holds_alternative<rpc::MergeBucket>(request)) {
      return Result<rpc::Reply>(Status(StatusCode::NotReady, "lost"));
    }
    if (node != 1 || !troubled || is_late || !std::holds_alternative<rpc::Apply>(request)) return std::nullopt;
    if (filling == Filling::IsSilent) return Result<rpc::Reply>(Status(StatusCode::Timeout, "no answer"));
    return refuse_applies(1, filling == Filling::IsFull ? StatusCode::NoSpace : StatusCode::NotReady)(node, request);
  };
  world.transport.set_delay_of([&](const rpc::Address& to, const rpc::Request& request) {
    if (std::holds_alternative<rpc::MergeBucket>(request)) return milliseconds(60);
    return is_late && troubled && to == "1" && std::holds_alternative<rpc::Apply>(request) ? milliseconds(150)
                                                                                           : milliseconds(1);
  });
  world.give_state(1, " .0.v:1 .1.v:1");
  world.run(milliseconds(5));
  std::uint64_t last = 0;
  const auto put = [&](Duration limit) {
    const MonotonicTime begin = world.clock.now();
    const rpc::OperationResult result = execute(world, put_batch(kId, 0, 1, "value " + std::to_string(last)));
    REQUIRE(result.status);
    CHECK(world.clock.now() - begin < limit);
    last = result.timestamp_us;
    world.run(milliseconds(10));
  };
  for (int i = 0; i < 10; ++i) put(milliseconds(5));
  CHECK(world.set_at(1, kBucket).epoch == 0);
  merges_lost = false;
  for (int i = 0; i < 20; ++i) {
    put(is_late ? milliseconds(350) : milliseconds(5));
    if (!is_late) CHECK(world.set_at(1, kBucket).epoch == 0);  // Each merge misses a write, so node 1 gets no set.
  }
  troubled = false;
  world.run(seconds(2));
  CHECK(world.set_at(0, kBucket).nodes.size() == 2);
  CHECK(world.set_at(1, kBucket) == world.set_at(0, kBucket));
  CHECK(world.storage[1][kBucket.raw()].documents[kId].timestamp_us == last);
  CHECK(world.ask(rpc::Poll{}).buckets_out_of_sync == 0);
}

TEST_CASE("distributor: a replica that is being filled and cannot be made holds up nothing") {
  DistributorWorld world(2);
  world.storage[0][kBucket.raw()].set = {ReplicaSet::make_epoch(1, 1), {0}};
  world.hook = [&](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (node != 1 || !std::holds_alternative<rpc::SetReplicaSets>(request)) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::Timeout, "no answer"));
  };
  world.give_state(1, " .0.v:1 .1.v:1");
  CHECK(execute(world, put_batch(kId)).status);
  CHECK(execute(world, update_batch(kId, R"({"value": {"assign": "new"}})")).status);
  CHECK(world.set_at(0, kBucket).nodes == std::vector<std::uint16_t>{0});
  world.hook = nullptr;
  world.run(seconds(2));
  CHECK(world.set_at(0, kBucket).nodes.size() == 2);
}

TEST_CASE("distributor: an unavailable bucket says so, to reads and writes") {
  DistributorWorld world(3);
  world.storage[0][kBucket.raw()].set = {ReplicaSet::make_epoch(1, 1), {0, 1}};
  world.give_state(1, " .0.v:5 .1.s:d .2.v:1");  // Node 0 restarted after the replica set was made.
  CHECK(execute(world, get_batch(kId)).status.code() == StatusCode::Unavailable);
  CHECK(execute(world, put_batch(kId)).status.code() == StatusCode::Unavailable);
  CHECK(world.ask(rpc::Poll{}).buckets_unavailable == 1);
  CHECK(applies(world) == 0);
}

TEST_CASE("distributor: a replica that left its set is not read when those that stayed are away") {
  DistributorWorld world(4);
  const std::string up = " .0.v:1 .1.v:1 .2.v:1 .3.v:1";
  world.give_state(1, up);
  const std::vector<std::uint16_t> want = world.ideal(kBucket);
  std::uint16_t other = 0;
  while (other == want[0] || other == want[1]) ++other;
  const bool is_member = GENERATE(true, false);  // False: `other` has a replica of an earlier set.
  const std::vector<std::uint16_t> have =
      is_member ? std::vector<std::uint16_t>{want[0], other} : std::vector<std::uint16_t>{want[0], want[1]};
  for (std::uint16_t node : have) {
    TestReplica& replica = world.storage[node][kBucket.raw()];
    replica.set = {ReplicaSet::make_epoch(1, 2), have};
    replica.documents[kId] = {100, false, "", "old"};
  }
  if (!is_member) {
    TestReplica& replica = world.storage[other][kBucket.raw()];
    replica.set = {ReplicaSet::make_epoch(1, 1), {want[0], other}};
    replica.documents[kId] = {50, false, "", "older"};
  }
  world.hook = [](std::uint16_t, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (!std::holds_alternative<rpc::DeleteBuckets>(request)) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::Timeout, "lost"));
  };
  world.give_state(2, up);
  world.run(milliseconds(300));
  REQUIRE(execute(world, put_batch(kId, 0, 1, "new")).status);
  REQUIRE(world.set_at(want[0], kBucket).nodes == want);
  REQUIRE(world.holds(other, kBucket));  // The order to delete the replica was lost.

  std::string nodes;
  for (std::uint16_t i = 0; i < 4; ++i) {
    nodes += " ." + std::to_string(i) + (i == want[0] || i == want[1] ? ".s:d" : ".v:1");
  }
  world.give_state(3, nodes);
  rpc::Execute get = get_batch(kId);
  get.operations[0].want_json = false;
  CHECK(execute(world, get).status.code() == StatusCode::Unavailable);
}

TEST_CASE("distributor: acknowledges the pending state and the configuration, and refuses a deposed controller") {
  DistributorWorld world(3);
  world.give_state(1);
  const rpc::ClusterInfo now = world.ask(rpc::GetClusterInfo{}).info;
  rpc::Poll poll;
  poll.info.term = 4;
  poll.info.pending_state = "version:2 bits:1 distributor:1 storage:3 .1.s:d";
  poll.info.pending_distribution = now.distribution;
  poll.info.config_version = 2;
  rpc::PollReply reply = world.ask(poll);
  CHECK(reply.status);
  CHECK(reply.state_version == 1);
  CHECK(reply.pending_version == 2);
  CHECK(reply.config_version == 2);
  CHECK(reply.term == 4);
  poll.info.term = 3;
  reply = world.ask(poll);
  CHECK(reply.status.code() == StatusCode::WrongDistribution);
  CHECK(reply.term == 4);
}

}  // namespace fjord::test
