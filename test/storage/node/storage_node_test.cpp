#include "fjord/storage/storage_node.h"

#include <catch2/catch.hpp>
#include <set>

#include "storage/node/node_world.h"

namespace fjord::test {
namespace {

constexpr std::uint64_t kState = 4;
const std::string kId = id_in(1, 0);
const BucketId kBucket = get_of(kId).bucket;

std::uint64_t epoch(std::uint64_t state_version, std::uint64_t step = 1) {
  return ReplicaSet::make_epoch(state_version, step);
}

StatusCode put_code(NodeWorld& nodes, std::uint64_t version, std::uint64_t with_epoch = epoch(kState)) {
  return nodes.apply_one(0, version, put_of(kId, 100, "body", with_epoch)).status.code();
}

}  // namespace

TEST_CASE("storage node: refuses everything before it has a cluster state") {
  NodeWorld nodes(1);
  rpc::ApplyReply applied = nodes.apply(0, 1, 0, {put_of(kId, 1, "x")});
  REQUIRE(applied.results.size() == 1);
  CHECK(applied.results[0].status.code() == StatusCode::NotReady);
  CHECK(nodes.reports(0, 1, 0).status.code() == StatusCode::NotReady);
  rpc::PollReply poll = nodes.ask(0, rpc::Poll{});
  CHECK(poll.status);
  CHECK(poll.state_version == 0);
  CHECK(poll.incarnation != 0);
}

TEST_CASE("storage node: answers polls while a stripe has a lot to do, and says so if it hangs") {
  NodeWorld nodes(1);
  nodes.give_state(kState);
  REQUIRE(nodes.install(0, kState, kBucket, {epoch(kState), {0}}));
  REQUIRE(put_code(nodes, kState) == StatusCode::Ok);
  CHECK(nodes.ask(0, rpc::Poll{}).documents == 1);

  nodes.stall_stripe(0, kBucket, seconds(4));
  nodes.world.scheduler.run_for(milliseconds(1));
  for (int i = 0; i < 3; ++i) {
    const MonotonicTime asked = nodes.world.scheduler.clock().now();
    const rpc::PollReply busy = nodes.ask(0, rpc::Poll{.info = nodes.info(kState + 1)});
    CHECK(busy.status);
    CHECK(busy.state_version == kState + 1);
    CHECK(busy.documents == 1);  // As it was before.
    CHECK(nodes.world.scheduler.clock().now() - asked < milliseconds(300));
    nodes.world.scheduler.run_for(milliseconds(500));
  }
  nodes.world.scheduler.run_for(seconds(3));
  CHECK(nodes.ask(0, rpc::Poll{}).status);

  nodes.stall_stripe(0, kBucket, seconds(60));
  nodes.world.scheduler.run_for(milliseconds(1));
  CHECK(nodes.ask(0, rpc::Poll{}).status);
  nodes.world.scheduler.run_for(seconds(6));
  const rpc::PollReply hangs = nodes.ask(0, rpc::Poll{});
  CHECK(hangs.status.code() == StatusCode::Unavailable);
  CHECK_THAT(hangs.status.message(), Catch::Contains("of storage.0 has been doing one thing for 6 s"));
}

TEST_CASE("storage node: reports and stores replica sets of more buckets than it does in one turn") {
  NodeWorld nodes(1);
  nodes.world.scheduler.run_for(milliseconds(1));
  REQUIRE(nodes.ask(0, rpc::Poll{.info = nodes.info(kState, 10)}).status);
  rpc::SetReplicaSets request;
  request.state_version = kState;
  for (std::uint64_t i = 0; i < 1024; ++i) {
    const BucketId bucket(10, i);
    if (nodes.owner(bucket) == 0) request.buckets.push_back({bucket, {epoch(kState), {0}}});
  }
  const std::size_t count = request.buckets.size();
  REQUIRE(count > 300);
  const rpc::SetReplicaSetsReply stored = nodes.ask(0, std::move(request));
  REQUIRE(stored.statuses.size() == count);
  for (const Status& status : stored.statuses) CHECK(status);
  const rpc::GetBucketInfoReply reports = nodes.reports(0, kState, 0);
  REQUIRE(reports.status);
  CHECK(reports.reports.size() == count);
  std::set<BucketId> seen;
  for (const rpc::BucketReport& report : reports.reports) {
    CHECK(report.replica_set.epoch == epoch(kState));
    seen.insert(report.bucket);
  }
  CHECK(seen.size() == count);
}

TEST_CASE("storage node: takes operations of the bucket's owner under exactly its own state version") {
  NodeWorld nodes(1);
  nodes.give_state(kState);
  REQUIRE(nodes.install(0, kState, kBucket, {epoch(kState), {0}}));

  CHECK(put_code(nodes, kState - 1) == StatusCode::WrongDistribution);
  CHECK(put_code(nodes, kState + 1) == StatusCode::NotReady);
  const auto other = static_cast<std::uint16_t>(1 - nodes.owner(kBucket));
  rpc::ApplyReply reply = nodes.apply(0, kState, other, {put_of(kId, 100, "x", epoch(kState))});
  CHECK(reply.results[0].status.code() == StatusCode::WrongDistribution);
  CHECK(reply.state_version == kState);
  CHECK(nodes.apply_one(0, kState, get_of(kId, epoch(kState))).status.code() == StatusCode::NotFound);
  CHECK(put_code(nodes, kState) == StatusCode::Ok);

  nodes.give_state(kState + 1);  // From now on all messages under the old state are refused, reads included.
  CHECK(put_code(nodes, kState) == StatusCode::WrongDistribution);
  CHECK(nodes.apply_one(0, kState, get_of(kId, epoch(kState))).status.code() == StatusCode::WrongDistribution);
  CHECK(put_code(nodes, kState + 1) == StatusCode::Ok);
}

TEST_CASE("storage node: what changes replicas is refused to others than the owner under the current state") {
  NodeWorld nodes(2);
  nodes.give_state(kState);
  const std::uint16_t owner = nodes.owner(kBucket);
  const auto other = static_cast<std::uint16_t>(1 - owner);
  REQUIRE(nodes.install(0, kState, kBucket, {epoch(kState), {0}}));
  const auto [version, distributor, code] = GENERATE_COPY(table<std::uint64_t, std::uint16_t, StatusCode>({
      {kState - 1, owner, StatusCode::WrongDistribution},
      {kState + 1, owner, StatusCode::NotReady},
      {kState, other, StatusCode::WrongDistribution},
      {kState, owner, StatusCode::Ok},
  }));
  INFO("state " << version << ", distributor " << distributor);
  rpc::SetReplicaSets set{
      .state_version = version, .distributor = distributor, .buckets = {{kBucket, {epoch(9), {1}}}}};
  CHECK(nodes.ask(0, set).statuses.at(0).code() == code);
  rpc::MergeBucket merge;
  merge.state_version = version;
  merge.distributor = distributor;
  merge.bucket = kBucket;
  merge.sources = {1};
  CHECK(nodes.ask(0, merge).status.code() == code);
  rpc::DeleteBuckets remove{.state_version = version, .distributor = distributor, .buckets = {kBucket}};
  CHECK(nodes.ask(0, remove).statuses.at(0).code() == code);

  rpc::GetBucketInfoReply reports = nodes.reports(0, kState, owner);
  REQUIRE(reports.status);
  if (code == StatusCode::Ok) {
    CHECK(reports.reports.empty());  // The report is empty, as the bucket is deleted.
  } else {
    REQUIRE(reports.reports.size() == 1);
    CHECK(reports.reports[0].replica_set == ReplicaSet{epoch(kState), {0}});
  }
}

TEST_CASE("storage node: refuses operations that were sent under an older replica set, one by one") {
  NodeWorld nodes(1);
  nodes.give_state(kState);
  REQUIRE(nodes.install(0, kState, kBucket, {epoch(kState, 5), {0}}));
  const std::uint16_t owner = nodes.owner(kBucket);
  rpc::ApplyReply reply = nodes.apply(
      0, kState, owner,
      {put_of(id_in(1, 1), 100, "old", epoch(kState, 4)), put_of(id_in(1, 2), 101, "same", epoch(kState, 5)),
       get_of(id_in(1, 2), epoch(kState, 4)), put_of(id_in(1, 3), 102, "newer", epoch(kState, 6))});
  REQUIRE(reply.results.size() == 4);
  CHECK(reply.results[0].status.code() == StatusCode::WrongDistribution);
  CHECK(reply.results[1].status);
  CHECK(reply.results[2].status.code() == StatusCode::WrongDistribution);
  CHECK(reply.results[3].status);
  CHECK(nodes.apply_one(0, kState, get_of(id_in(1, 1), epoch(kState, 5))).status.code() == StatusCode::NotFound);
}

TEST_CASE("storage node: an operation on a bucket that is not there is refused and makes none") {
  NodeWorld nodes(1);
  nodes.give_state(kState);
  CHECK(put_code(nodes, kState) == StatusCode::NotReady);
  CHECK(nodes.apply_one(0, kState, get_of(kId)).status.code() == StatusCode::NotReady);
  CHECK(nodes.reports(0, kState, nodes.owner(kBucket)).reports.empty());
}

TEST_CASE("storage node: an older replica set never replaces a newer one, and being filled keeps what was") {
  NodeWorld nodes(1);
  nodes.give_state(kState);
  const auto set_now = [&] { return nodes.reports(0, kState, nodes.owner(kBucket)).reports.at(0).replica_set; };
  REQUIRE(nodes.install(0, kState, kBucket, {}));
  CHECK(set_now() == ReplicaSet{});
  const ReplicaSet set{epoch(3, 2), {0, 2}};
  REQUIRE(nodes.install(0, kState, kBucket, set));
  CHECK(set_now() == set);
  CHECK(nodes.install(0, kState, kBucket, {}));
  CHECK(set_now() == set);
  CHECK(nodes.install(0, kState, kBucket, {epoch(3, 1), {0}}));
  CHECK(set_now() == set);
  CHECK(nodes.install(0, kState, kBucket, {epoch(3, 2), {0}}));  // A duplicate, or an invalid message, has no effect.
  CHECK(set_now() == set);
  CHECK(nodes.install(0, kState, kBucket, {epoch(3, 3), {0, 1}}));
  CHECK(set_now() == ReplicaSet{epoch(3, 3), {0, 1}});
}

TEST_CASE("storage node: operations on one bucket within a batch happen in their order, whatever lies between") {
  NodeWorld nodes(1, {.stripes = 4});
  nodes.give_state(kState);
  std::uint16_t owner = nodes.owner(kBucket);
  std::set<BucketId> made;
  for (unsigned location = 0; location < 8; ++location) {
    BucketId bucket = get_of(id_in(location, 0)).bucket;
    if (nodes.owner(bucket) != owner || !made.insert(bucket).second) continue;
    REQUIRE(nodes.install(0, kState, bucket, {epoch(kState), {0}}));
  }
  REQUIRE(made.size() >= 2);
  std::vector<rpc::StorageOperation> batch;
  std::vector<std::string> expected;  // Result of each operation: body read by a get; "-": no document; "": a write.
  for (int round = 0; round < 3; ++round) {
    for (unsigned location = 0; location < 8; ++location) {
      const std::string id = id_in(location, 0);
      if (!made.contains(get_of(id).bucket)) continue;
      const std::uint64_t base = 1000 * static_cast<std::uint64_t>(round) + 10 * location;
      const std::string body = "r" + std::to_string(round) + " l" + std::to_string(location);
      for (auto& [operation, reads] :
           std::vector<std::pair<rpc::StorageOperation, std::string>>{{get_of(id), "-"},
                                                                      {put_of(id, base + 1, "first " + body), ""},
                                                                      {put_of(id, base + 2, body), ""},
                                                                      {get_of(id), body},
                                                                      {remove_of(id, base + 3), ""},
                                                                      {get_of(id), "-"}}) {
        operation.epoch = epoch(kState);
        batch.push_back(std::move(operation));
        expected.push_back(reads);
      }
    }
  }
  rpc::ApplyReply reply = nodes.apply(0, kState, owner, batch);
  REQUIRE(reply.results.size() == batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    INFO(i << " " << batch[i].id);
    const rpc::OperationResult& result = reply.results[i];
    if (expected[i] == "-") {
      CHECK(result.status.code() == StatusCode::NotFound);
    } else {
      CHECK(result.status);
      if (!expected[i].empty()) CHECK(result.body == expected[i]);
      if (expected[i].empty()) CHECK(result.timestamp_us == batch[i].timestamp_us);
    }
  }
}

TEST_CASE("storage node: a write that comes late or twice changes nothing") {
  NodeWorld nodes(1);
  nodes.give_state(kState);
  REQUIRE(nodes.install(0, kState, kBucket, {epoch(kState), {0}}));
  const auto send = [&](rpc::StorageOperation operation) {
    operation.epoch = epoch(kState);
    return nodes.apply_one(0, kState, std::move(operation));
  };
  CHECK_FALSE(send(put_of(kId, 200, "new")).existed);
  CHECK(send(put_of(kId, 200, "new")).status);
  CHECK(send(put_of(kId, 100, "old")).status);
  CHECK(send(remove_of(kId, 150)).status);
  CHECK(send(get_of(kId)).body == "new");
  CHECK(send(get_of(kId)).timestamp_us == 200);
  CHECK(send(remove_of(kId, 300)).existed);
  CHECK(send(put_of(kId, 250, "late")).status);
  rpc::OperationResult gone = send(get_of(kId));
  CHECK(gone.status.code() == StatusCode::NotFound);
  CHECK(gone.timestamp_us == 300);  // Thus a read of several replicas sees that the remove is the newest version.
}

TEST_CASE("storage node: an operation of an unknown kind is refused, its neighbours are not") {
  NodeWorld nodes(1);
  nodes.give_state(kState);
  REQUIRE(nodes.install(0, kState, kBucket, {epoch(kState), {0}}));
  rpc::StorageOperation unknown = get_of(kId, epoch(kState));
  unknown.kind = rpc::OperationKind::Unknown;
  rpc::ApplyReply reply = nodes.apply(0, kState, nodes.owner(kBucket),
                                      {put_of(kId, 5, "a", epoch(kState)), unknown, get_of(kId, epoch(kState))});
  CHECK(reply.results.at(0).status);
  CHECK(reply.results.at(1).status.code() == StatusCode::NotImplemented);
  CHECK(reply.results.at(2).body == "a");
  CHECK(nodes.apply(0, kState, 0, {}).results.empty());
}

TEST_CASE("storage node: reports the buckets of the asking distributor under exactly its state") {
  NodeWorld nodes(1, {.stripes = 4});
  nodes.give_state(kState);
  std::map<std::uint16_t, std::set<BucketId>> owned;
  for (std::uint64_t i = 0; i < 8; ++i) {
    BucketId bucket(3, i);
    owned[nodes.owner(bucket)].insert(bucket);
    REQUIRE(nodes.install(0, kState, bucket, {epoch(kState, i + 1), {0}}));
  }
  REQUIRE(owned.size() == 2);
  for (std::uint16_t distributor : {std::uint16_t{0}, std::uint16_t{1}}) {
    rpc::GetBucketInfoReply reply = nodes.reports(0, kState, distributor);
    REQUIRE(reply.status);
    CHECK(reply.state_version == kState);
    std::set<BucketId> got;
    for (const rpc::BucketReport& report : reply.reports) {
      got.insert(report.bucket);
      CHECK(report.replica_set.epoch == epoch(kState, report.bucket.bits() + 1));
    }
    CHECK(got == owned[distributor]);
    CHECK(got.size() == reply.reports.size());
  }
  CHECK(nodes.reports(0, kState - 1, 0).status.code() == StatusCode::WrongDistribution);
  CHECK(nodes.reports(0, kState + 1, 0).status.code() == StatusCode::NotReady);
  CHECK(nodes.reports(0, kState + 1, 0).reports.empty());

  rpc::GetBucketInfo some{.state_version = kState, .distributor = 0, .all = false, .buckets = {}};
  some.buckets = {*owned[0].begin(), *owned[1].begin(), BucketId(5, 31)};
  rpc::GetBucketInfoReply reply = nodes.ask(0, some);
  REQUIRE(reply.reports.size() == 1);
  CHECK(reply.reports[0].bucket == *owned[0].begin());
}

TEST_CASE("storage node: tells the fleet controller what it holds") {
  NodeWorld nodes(1);
  nodes.give_state(kState);
  CHECK(nodes.ask(0, rpc::Poll{}).min_bucket_bits == 0);  // The node has no buckets.
  REQUIRE(nodes.install(0, kState, kBucket, {epoch(kState), {0}}));
  for (int i = 0; i < 5; ++i) {
    REQUIRE(nodes.apply_one(0, kState, put_of(id_in(1, i), 100u + static_cast<unsigned>(i), "12345", epoch(kState)))
                .status);
  }
  REQUIRE(nodes.apply_one(0, kState, remove_of(id_in(1, 0), 200, epoch(kState))).status);
  rpc::PollReply poll = nodes.ask(0, rpc::Poll{.info = nodes.info(kState - 1)});  // The older state is not accepted.
  CHECK(poll.status);
  CHECK(poll.node_state == "s:u");
  CHECK(poll.state_version == kState);
  CHECK(poll.buckets == 1);
  CHECK(poll.min_bucket_bits == kBucket.used_bits());
  CHECK(poll.documents == 4);
  CHECK(poll.bytes > 20);
  rpc::ClusterInfo broken = nodes.info(kState + 1);
  broken.state = "nonsense";
  CHECK_FALSE(nodes.ask(0, rpc::Poll{.info = broken}).status);
  CHECK(nodes.ask(0, rpc::Poll{}).state_version == kState);
}

TEST_CASE("storage node: says that it starts until its files are open, and that it stops once that is announced") {
  NodeWorld nodes(1);
  TestProcess<storage::StorageNode> process(nodes.world, "storage.1", nodes.env(), 77);
  storage::StorageNodeOptions options;
  options.index = 1;
  auto made = storage::StorageNode::make(options, process.runtime(), process.transport());
  REQUIRE(made);
  process.run(std::move(*made));
  storage::StorageNode& node = process.node();
  rpc::PollReply poll = nodes.ask(1, rpc::Poll{.info = nodes.info(kState), .node = "storage.1"});
  REQUIRE(poll.status);
  const auto said = NodeStateInfo::parse(poll.node_state);
  REQUIRE(said);
  CHECK(said->state == NodeState::Initializing);
  CHECK(said->init_progress < kListingProgressLimit);
  CHECK(poll.state_version == kState);
  CHECK(node.health().is_starting);
  CHECK(nodes.ask(1, rpc::GetBucketInfo{.state_version = kState, .all = true}).status.code() == StatusCode::NotReady);
  const std::uint64_t incarnation = poll.incarnation;
  REQUIRE(node.open_stripes(
      [](unsigned, unsigned) -> Result<std::unique_ptr<spi::PersistenceProvider>> { return make_memory_provider(); }));
  poll = nodes.ask(1, rpc::Poll{});
  CHECK(poll.node_state == "s:u");
  CHECK(poll.incarnation == incarnation);
  CHECK_FALSE(node.health().is_starting);

  node.announce_stop();
  // An answer from before the announcement does not show that the controller knows of it.
  nodes.ask(1, rpc::Poll{.heard_us = poll.clock_us, .heard_incarnation = incarnation});
  CHECK_FALSE(node.stop().is_over());
  nodes.world.scheduler.run_for(milliseconds(1));
  poll = nodes.ask(1, rpc::Poll{});
  CHECK(poll.node_state == "s:s");
  CHECK(node.health().is_stopping);
  nodes.ask(1, rpc::Poll{.heard_us = poll.clock_us, .heard_incarnation = incarnation + 1});
  nodes.ask(1, rpc::Poll{.heard_us = poll.clock_us, .heard_incarnation = incarnation});
  CHECK_FALSE(node.stop().is_over());  // The state in force still counts on it.
  rpc::ClusterInfo without = nodes.info(kState + 1);
  without.state += " .1.s:m";
  nodes.ask(1, rpc::Poll{.info = without});
  CHECK(node.stop().is_over());
}

TEST_CASE("storage node: a poll that calls it by another name is refused, and its state is not taken") {
  NodeWorld nodes(1);
  nodes.give_state(kState);
  rpc::PollReply poll = nodes.ask(0, rpc::Poll{.info = nodes.info(kState + 1), .node = "storage.7"});
  CHECK(poll.status.code() == StatusCode::InvalidArgument);
  CHECK(poll.node == "storage.0");
  poll = nodes.ask(0, rpc::Poll{.info = {}, .node = "storage.0"});
  CHECK(poll.status);
  CHECK(poll.state_version == kState);
}

TEST_CASE("storage node: acknowledges the pending state and the configuration, and refuses a deposed controller") {
  NodeWorld nodes(1);
  nodes.give_state(kState);
  rpc::ClusterInfo info = nodes.info(kState);
  info.term = 4;
  info.pending_state = nodes.info(kState + 1).state;
  info.pending_distribution = info.distribution;
  info.config_version = 2;
  rpc::PollReply poll = nodes.ask(0, rpc::Poll{.info = info});
  CHECK(poll.status);
  CHECK(poll.state_version == kState);
  CHECK(poll.pending_version == kState + 1);
  CHECK(poll.config_version == 2);
  CHECK(poll.term == 4);
  info = nodes.info(kState + 2);
  info.term = 3;
  poll = nodes.ask(0, rpc::Poll{.info = info});
  CHECK(poll.status.code() == StatusCode::WrongDistribution);
  CHECK(poll.term == 4);
  CHECK(nodes.ask(0, rpc::Poll{}).state_version == kState);
}

TEST_CASE("storage node: one that has just started acts only under a state that speaks of it") {
  NodeWorld world(3);
  const BucketId bucket(3, 1);
  rpc::ClusterInfo before = world.info(4);
  before.state += " .0.v:1";
  // The poller may still think that this process has the state, as the one before it had.
  const bool is_told = GENERATE(true, false);
  CAPTURE(is_told);
  rpc::ClusterInfo first = before;
  if (!is_told) {
    first.state.clear();
    first.distribution.clear();
    first.distributor_addresses.clear();
    first.storage_addresses.clear();
  }
  const rpc::PollReply told = world.ask(0, rpc::Poll{.info = first});
  CHECK(told.status);
  CHECK(told.state_version == (is_told ? 4 : 0));
  REQUIRE(told.incarnation != 0);
  rpc::GetBucketInfo question;
  question.all = true;
  question.state_version = 4;
  CHECK(world.ask(0, question).status.code() == StatusCode::NotReady);

  // The poller has received this incarnation, but sends the state of the earlier process.
  rpc::Poll again{.info = before};
  again.heard_incarnation = told.incarnation;
  CHECK(world.ask(0, again).status);
  CHECK(world.ask(0, question).status.code() == StatusCode::NotReady);

  rpc::ClusterInfo after = world.info(5);
  after.state += " .0.v:5";
  rpc::Poll news{.info = after};
  news.heard_incarnation = told.incarnation;
  CHECK(world.ask(0, news).state_version == 5);
  question.state_version = 5;
  CHECK(world.ask(0, question).status);
}

TEST_CASE("storage node: leaves calls of other services alone, and refuses stripes that are no power of two") {
  NodeWorld nodes(1);
  Result<rpc::ExecuteReply> reply = nodes.caller.try_ask(storage_address(0), rpc::Execute{});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().code() == StatusCode::NotImplemented);

  sim::SimEnv env;
  TestProcess<storage::StorageNode> process(nodes.world, "other", env, 1);
  for (unsigned stripes : {0u, 3u, 6u}) {
    auto opened = storage::StorageNode::open(
        {.stripes = stripes}, process.runtime(), process.transport(),
        [](unsigned, unsigned) -> Result<std::unique_ptr<spi::PersistenceProvider>> { return make_memory_provider(); });
    CHECK(opened.status().code() == StatusCode::InvalidArgument);
  }
}

}  // namespace fjord::test
