// Conditional writes: updates, conditions, required versions, idempotency keys.
#include <catch2/catch.hpp>

#include "distributor_world.h"
#include "fjord/storage/spi/token_entry.h"

namespace fjord::test {
namespace {

const std::string kId = "id:test:item:n=1:a";
const BucketId kBucket = bucket_of_id(kId);
const std::string kCountOne = R"({"count": {"increment": 1}})";

rpc::OperationResult only(rpc::ExecuteReply reply) {
  REQUIRE(reply.status);
  REQUIRE(reply.results.size() == 1);
  return std::move(reply.results[0]);
}
rpc::OperationResult execute(DistributorWorld& world, rpc::Execute batch) { return only(world.ask(std::move(batch))); }
std::string stored(DistributorWorld& world, const std::string& id = kId) { return execute(world, get_batch(id)).json; }
bool has(const std::string& json, const std::string& text) { return json.find(text) != std::string::npos; }

rpc::Execute with(rpc::Execute batch, const std::string& condition, bool create = false,
                  const std::string& token = {}) {
  batch.operations[0].condition = condition;
  batch.operations[0].create = create;
  batch.operations[0].token = token;
  return batch;
}

/// Loses the answers to writes on `at`, which executes them.
DistributorWorld::Hook lose_answers_of_writes(DistributorWorld& world, std::uint16_t at, bool& on) {
  return [&world, at, &on](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    auto* apply = std::get_if<rpc::Apply>(&request);
    world.mute[at] = on && node == at && apply != nullptr && apply->operations[0].kind != rpc::OperationKind::Get;
    return std::nullopt;
  };
}

}  // namespace

TEST_CASE("update: changes what is stored on every replica, and says whether something was there") {
  DistributorWorld world(2);
  world.give_state(1);
  CHECK(execute(world, update_batch(kId, kCountOne)).status.code() == StatusCode::NotFound);
  REQUIRE(execute(world, put_batch(kId, 0, 1, "text")).status);
  rpc::OperationResult first = execute(world, update_batch(kId, R"({"count": {"assign": 5}})"));
  REQUIRE(first.status);
  CHECK(first.existed);
  rpc::OperationResult second = execute(world, update_batch(kId, kCountOne));
  CHECK(second.timestamp_us > first.timestamp_us);
  for (auto& node : world.storage) CHECK(node[kBucket.raw()].documents[kId].timestamp_us == second.timestamp_us);
  const std::string json = stored(world);
  CHECK(has(json, "\"count\":6"));
  CHECK(has(json, "\"text\""));
}

TEST_CASE("update: makes a document if it may, and not otherwise") {
  DistributorWorld world(2);
  world.give_state(1);
  rpc::Execute batch = update_batch(kId, kCountOne);
  batch.operations[0].create = true;
  rpc::OperationResult made = execute(world, batch);
  REQUIRE(made.status);
  CHECK_FALSE(made.existed);
  CHECK(has(stored(world), "\"count\":1"));
  REQUIRE(execute(world, batch_of(rpc::OperationKind::Remove, kId)).status);
  CHECK(execute(world, update_batch(kId, kCountOne)).status.code() == StatusCode::NotFound);
  CHECK(world.counter("fjord_distributor_operations_total", {{"operation", "update"}, {"outcome", "applied"}}) == 1);
  CHECK(world.counter("fjord_distributor_operations_total", {{"operation", "update"}, {"outcome", "not_applied"}}) ==
        1);
  CHECK(world.counter("fjord_distributor_not_applied_total", {{"reason", "NOT_FOUND"}}) == 1);
}

TEST_CASE("condition: puts, updates and removes are done if it holds, else the error tells the version compared") {
  DistributorWorld world(2);
  world.give_state(1);
  rpc::OperationResult missing = execute(world, with(put_batch(kId), "item.count == 1"));
  CHECK(missing.status.code() == StatusCode::TestAndSetFailed);
  CHECK(missing.version_us == 0);
  CHECK(stored(world).empty());
  REQUIRE(execute(world, with(put_batch(kId, 0, 1, "one"), "item.count == 1", true)).status);

  const std::uint64_t version = execute(world, get_batch(kId)).timestamp_us;
  for (rpc::Execute batch : {put_batch(kId, 0, 1, "two"), update_batch(kId, R"({"value": {"assign": "two"}})"),
                             batch_of(rpc::OperationKind::Remove, kId)}) {
    rpc::OperationResult failed = execute(world, with(batch, R"(item.value == "two")"));
    CHECK(failed.status.code() == StatusCode::TestAndSetFailed);
    CHECK(failed.version_us == version);
    CHECK(has(failed.status.message(), std::to_string(version)));
    CHECK(has(stored(world), "\"one\""));
    // A condition that is undefined prevents the write, too.
    CHECK(execute(world, with(batch, "item.value > 5")).status.code() == StatusCode::TestAndSetFailed);
  }
  REQUIRE(execute(world, with(update_batch(kId, R"({"value": {"assign": "two"}})"), R"(item.value == "one")")).status);
  REQUIRE(execute(world, with(put_batch(kId, 0, 1, "three"), R"(item.value == "two")")).status);
  REQUIRE(execute(world, with(batch_of(rpc::OperationKind::Remove, kId), R"(item.value == "three")")).status);
  CHECK(stored(world).empty());
  CHECK(execute(world, with(put_batch(kId), "nonsense ==")).status.code() == StatusCode::InvalidSelection);
}

TEST_CASE("required version: a write is done on exactly that version, else the error tells the one that is there") {
  DistributorWorld world(2);
  world.give_state(1);
  const auto on = [](rpc::Execute batch, std::uint64_t version) {
    batch.operations[0].required_version = version;
    return batch;
  };
  // Without a document only version 0 matches, even if the operation may create the document.
  rpc::Execute creating = update_batch(kId, kCountOne);
  creating.operations[0].create = true;
  const rpc::OperationResult none = execute(world, on(creating, 7));
  CHECK(none.status.code() == StatusCode::TestAndSetFailed);
  CHECK(none.version_us == 0);
  CHECK(has(none.status.message(), "there is no document"));
  CHECK(execute(world, on(put_batch(kId), 7)).status.code() == StatusCode::TestAndSetFailed);
  CHECK(execute(world, on(update_batch(kId, kCountOne), 0)).status.code() == StatusCode::NotFound);
  CHECK(stored(world).empty());
  const rpc::OperationResult first = execute(world, on(put_batch(kId, 0, 1, "one"), 0));
  REQUIRE(first.status);
  CHECK_FALSE(first.existed);

  for (const rpc::Execute& batch : {put_batch(kId, 0, 1, "two"), update_batch(kId, R"({"value": {"assign": "two"}})"),
                                    batch_of(rpc::OperationKind::Remove, kId)}) {
    for (const std::uint64_t wrong : {std::uint64_t{0}, first.timestamp_us - 1, first.timestamp_us + 1}) {
      const rpc::OperationResult failed = execute(world, on(batch, wrong));
      CHECK(failed.status.code() == StatusCode::TestAndSetFailed);
      CHECK(failed.version_us == first.timestamp_us);
      CHECK(has(failed.status.message(), std::to_string(first.timestamp_us)));
    }
  }
  CHECK(has(stored(world), "\"one\""));
  // A condition has to hold in addition to the required version.
  CHECK(execute(world, with(on(put_batch(kId), first.timestamp_us), R"(item.value == "two")")).status.code() ==
        StatusCode::TestAndSetFailed);
  const rpc::OperationResult second = execute(world, on(put_batch(kId, 0, 1, "two"), first.timestamp_us));
  REQUIRE(second.status);
  const rpc::OperationResult third = execute(world, on(update_batch(kId, kCountOne), second.timestamp_us));
  REQUIRE(third.status);
  CHECK(execute(world, on(batch_of(rpc::OperationKind::Remove, kId), second.timestamp_us)).version_us ==
        third.timestamp_us);
  REQUIRE(execute(world, on(batch_of(rpc::OperationKind::Remove, kId), third.timestamp_us)).status);
  // A removed document has version 0, although its remove entry has a timestamp.
  CHECK(execute(world, on(put_batch(kId), third.timestamp_us)).version_us == 0);
  REQUIRE(execute(world, on(put_batch(kId), 0)).status);
  CHECK(execute(world, on(get_batch(kId), 5)).status.code() == StatusCode::InvalidArgument);
}

TEST_CASE("required version: of many writes on one version, one succeeds, and the loop over them counts right") {
  DistributorWorld world(3, 3);
  world.give_state(1);
  REQUIRE(execute(world, put_batch(kId, 0, 1, "0")).status);
  for (int round = 1; round <= 5; ++round) {
    const std::uint64_t version = execute(world, get_batch(kId)).timestamp_us;
    std::vector<std::shared_ptr<std::optional<rpc::ExecuteReply>>> answers;
    for (int i = 0; i < 10; ++i) {
      rpc::Execute batch = put_batch(kId, 0, 1, std::to_string(round));
      batch.operations[0].required_version = version;
      answers.push_back(world.send(std::move(batch)));
    }
    world.run(seconds(2));
    int applied = 0;
    for (auto& answer : answers) {
      REQUIRE(answer->has_value());
      const rpc::OperationResult result = only(**answer);
      applied += result.status.is_ok() ? 1 : 0;
      if (!result.status) CHECK(result.version_us > version);
    }
    CHECK(applied == 1);
  }
  CHECK(has(stored(world), "\"5\""));
}

TEST_CASE("required version: a repetition with its token is answered as the first attempt was") {
  DistributorWorld world(2);
  world.give_state(1);
  rpc::Execute batch = with(put_batch(kId, 0, 1, "one"), "", false, "t1");
  batch.operations[0].required_version = 0;
  const rpc::OperationResult first = execute(world, batch);
  REQUIRE(first.status);
  const rpc::OperationResult again = execute(world, batch);
  CHECK(again.status);
  CHECK(again.timestamp_us == first.timestamp_us);
}

TEST_CASE("strict batches: known features are obeyed, an unknown one ends the batch before anything is done") {
  DistributorWorld world(2);
  world.give_state(1);
  rpc::ExecuteStrict strict{.batch = put_batch(kId), .features = {"required_version"}};
  strict.batch.operations[0].required_version = 3;
  rpc::ExecuteStrictReply reply = world.ask(strict);
  CHECK(reply.status);
  CHECK(only(reply.batch).status.code() == StatusCode::TestAndSetFailed);
  strict.batch.operations[0].required_version = 0;
  strict.features.emplace_back("teleport");
  reply = world.ask(strict);
  CHECK(reply.status.code() == StatusCode::NotImplemented);
  CHECK(has(reply.status.message(), "teleport"));
  CHECK(stored(world).empty());
  strict.features.pop_back();
  CHECK(only(world.ask(strict).batch).status);
  CHECK_FALSE(stored(world).empty());
}

TEST_CASE("condition: of many at once on one version, one succeeds") {
  DistributorWorld world(3, 3);
  world.give_state(1);
  REQUIRE(execute(world, put_batch(kId, 0, 1, "start")).status);
  std::vector<std::shared_ptr<std::optional<rpc::ExecuteReply>>> answers;
  for (int i = 0; i < 20; ++i) {
    answers.push_back(world.send(with(put_batch(kId, 0, 1, "w" + std::to_string(i)), R"(item.value == "start")")));
  }
  world.run(seconds(2));
  int applied = 0;
  for (auto& answer : answers) {
    REQUIRE(answer->has_value());
    const Status status = only(**answer).status;
    applied += status.is_ok() ? 1 : 0;
    CHECK((status.is_ok() || status.code() == StatusCode::TestAndSetFailed));
  }
  CHECK(applied == 1);
}

TEST_CASE("update: of many at once none is lost, plain writes before and after them keep their order") {
  DistributorWorld world(2);
  world.give_state(1);
  auto first = world.send(put_batch(kId, 0, 1, "text"));
  std::vector<std::shared_ptr<std::optional<rpc::ExecuteReply>>> answers;
  for (int i = 0; i < 50; ++i) answers.push_back(world.send(update_batch(kId, kCountOne)));
  world.run(seconds(2));
  for (auto& answer : answers) CHECK(only(**answer).status);
  CHECK(has(stored(world), "\"count\":50"));

  auto update = world.send(update_batch(kId, kCountOne));
  auto put = world.send(put_batch(kId, 0, 1, "last"));
  auto after = world.send(update_batch(kId, kCountOne));
  world.run(seconds(1));
  CHECK(only(**put).timestamp_us > only(**update).timestamp_us);
  CHECK(has(stored(world), "\"count\":1"));
  CHECK(has(stored(world), "\"last\""));
}

TEST_CASE("token: what was applied is not applied again, by whatever way it comes") {
  DistributorWorld world(2);
  world.give_state(1, " .0.v:1 .1.v:1");
  REQUIRE(execute(world, put_batch(kId)).status);
  rpc::OperationResult first = execute(world, update_batch(kId, kCountOne, "T"));
  REQUIRE(first.status);
  rpc::OperationResult again = execute(world, update_batch(kId, kCountOne, "T"));
  REQUIRE(again.status);
  CHECK(again.timestamp_us == first.timestamp_us);
  CHECK(again.existed);
  CHECK(has(stored(world), "\"count\":1"));
  REQUIRE(execute(world, update_batch(kId, kCountOne, "U")).status);
  CHECK(has(stored(world), "\"count\":2"));

  world.give_state(2, " .0.v:1 .1.v:1");  // With the new state the distributor forgets its deduplication windows.
  CHECK(execute(world, update_batch(kId, kCountOne, "T")).timestamp_us == first.timestamp_us);
  CHECK(has(stored(world), "\"count\":2"));
  CHECK(world.counter("fjord_distributor_known_tokens_total") == 2);

  // The same holds for removes: a repeated remove does not delete a document that was put after it.
  rpc::Execute remove = with(batch_of(rpc::OperationKind::Remove, kId), "", false, "R");
  CHECK(execute(world, remove).existed);
  REQUIRE(execute(world, put_batch(kId, 0, 1, "new")).status);
  CHECK(execute(world, remove).existed);
  CHECK(has(stored(world), "\"new\""));
  const std::string too_long(rpc::kTokenBytesMax + 1, 't');
  CHECK(execute(world, update_batch(kId, kCountOne, too_long)).status.code() == StatusCode::InvalidArgument);
}

TEST_CASE("token: an operation in doubt is settled by a repetition, applied or not") {
  DistributorWorld world(2);
  world.give_state(1, " .0.v:1 .1.v:1");
  REQUIRE(execute(world, put_batch(kId)).status);
  bool lossy = true;
  world.hook = lose_answers_of_writes(world, 1, lossy);
  rpc::Execute batch = update_batch(kId, kCountOne, "T");
  batch.timeout_us = 500'000;
  CHECK(execute(world, batch).status.code() == StatusCode::Timeout);
  CHECK(world.counter("fjord_distributor_operations_total", {{"operation", "update"}, {"outcome", "in_doubt"}}) == 1);
  lossy = false;
  world.mute[1] = false;
  REQUIRE(execute(world, update_batch(kId, kCountOne, "T")).status);
  CHECK(has(stored(world), "\"count\":1"));
}

TEST_CASE("token: an operation that a node may have taken which is away is in doubt when the others refuse it") {
  DistributorWorld world(2);
  world.give_state(1);
  REQUIRE(execute(world, put_batch(kId, 0, 1, "text")).status);
  const bool is_away = GENERATE(true, false);
  bool is_cut = true;
  world.hook = [&](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    auto* apply = std::get_if<rpc::Apply>(&request);
    const bool is_write = apply != nullptr && apply->operations[0].kind != rpc::OperationKind::Get;
    world.mute[1] = is_cut && is_write && is_away;
    if (!is_write || (node == 1 && is_cut && is_away)) return std::nullopt;
    if (is_cut) return Result<rpc::Reply>(Status(StatusCode::NotReady, "said the test"));
    rpc::ApplyReply reply;
    reply.results.resize(apply->operations.size());
    for (rpc::OperationResult& result : reply.results) result.status = Status(StatusCode::NoSpace, "said the test");
    return Result<rpc::Reply>(rpc::Reply(std::move(reply)));
  };
  const auto update = world.send(with(update_batch(kId, kCountOne), "", false, "T"));
  world.run(milliseconds(50));
  REQUIRE_FALSE(update->has_value());
  is_cut = false;
  world.mute[1] = false;
  world.give_state(2, is_away ? " .1.s:d" : "");
  REQUIRE(world.scheduler.run_until([&] { return update->has_value(); }, seconds(60)));
  CHECK(only(**update).status.code() == (is_away ? StatusCode::Timeout : StatusCode::NoSpace));
}

TEST_CASE("token: one that was cancelled does not count") {
  DistributorWorld world(2);
  world.give_state(1);
  REQUIRE(execute(world, put_batch(kId)).status);
  const GlobalId gid = DocumentId::parse(kId)->gid();
  const std::uint64_t future = static_cast<std::uint64_t>(world.clock.wall_now().us) + 1'000'000'000;
  spi::TokenEntry entry = spi::TokenEntry::of(gid, "T", true);
  entry.state = spi::TokenEntry::State::Cancelled;
  for (auto& node : world.storage) node[kBucket.raw()].tokens[spi::token_gid(gid, "T")] = {entry.id(), future};
  rpc::OperationResult applied = execute(world, update_batch(kId, kCountOne, "T"));
  REQUIRE(applied.status);
  CHECK(applied.timestamp_us > future);  // With a lower timestamp the replicas would keep their own entry of the key.
  CHECK(has(stored(world), "\"count\":1"));
}

TEST_CASE("update: after a change of the cluster state it reads again instead of writing what it had computed") {
  DistributorWorld world(2);
  world.give_state(1, " .0.v:1 .1.v:1");
  REQUIRE(execute(world, put_batch(kId)).status);
  world.mute[0] = world.mute[1] = true;
  auto waiting = world.send(update_batch(kId, kCountOne, "T"));
  world.run(milliseconds(100));
  REQUIRE_FALSE(waiting->has_value());
  // Meanwhile another distributor owned the bucket and wrote to it.
  world.mute[0] = world.mute[1] = false;
  for (auto& node : world.storage) {
    TestReplica& replica = node[kBucket.raw()];
    replica.documents[kId].timestamp_us += 1'000;
  }
  world.give_state(3, " .0.v:1 .1.v:1");
  world.run(seconds(1));
  REQUIRE(waiting->has_value());
  REQUIRE(only(**waiting).status);
  CHECK(has(stored(world), "\"count\":1"));
}

TEST_CASE("update: without a token too, what was applied and not answered is not applied again") {
  DistributorWorld world(2);
  world.give_state(1, " .0.v:1 .1.v:1");
  REQUIRE(execute(world, put_batch(kId)).status);
  bool lost = true;
  world.hook = [&](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    const auto* apply = std::get_if<rpc::Apply>(&request);
    world.mute[node] = lost && apply != nullptr && apply->operations[0].kind != rpc::OperationKind::Get;
    return std::nullopt;
  };
  const auto waiting = world.send(update_batch(kId, kCountOne));
  world.run(milliseconds(100));
  REQUIRE_FALSE(waiting->has_value());
  const std::uint64_t applied_us = world.storage[0][kBucket.raw()].documents[kId].timestamp_us;
  CHECK(world.storage[1][kBucket.raw()].documents[kId].timestamp_us == applied_us);
  lost = false;
  world.mute[0] = world.mute[1] = false;
  SECTION("nothing has been written since") {
    world.give_state(3, " .0.v:1 .1.v:1");
    world.run(seconds(1));
    REQUIRE(waiting->has_value());
    const rpc::OperationResult result = only(**waiting);
    REQUIRE(result.status);
    CHECK(result.existed);
    CHECK(result.timestamp_us == applied_us);
    for (auto& node : world.storage) CHECK(node[kBucket.raw()].documents[kId].timestamp_us == applied_us);
  }
  SECTION("a newer version hides whether it was applied") {
    for (auto& node : world.storage) node[kBucket.raw()].documents[kId].timestamp_us += 1;
    world.give_state(3, " .0.v:1 .1.v:1");
    REQUIRE(world.scheduler.run_until([&] { return waiting->has_value(); }, seconds(60)));
    CHECK(only(**waiting).status.code() == StatusCode::Timeout);
  }
  CHECK(has(stored(world), "\"count\":1"));
}

TEST_CASE("update: waits while the replicas of its bucket may differ") {
  DistributorWorld world(2);
  world.give_state(1, " .0.v:1 .1.v:1");
  REQUIRE(execute(world, put_batch(kId)).status);
  // One replica took a write that the other missed, as after a crash.
  bool merges = false;
  world.hook = [&](std::uint16_t, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (!std::holds_alternative<rpc::MergeBucket>(request) || merges) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::NotReady, "said the test"));
  };
  world.storage[0][kBucket.raw()].documents[kId].timestamp_us += 5;
  world.give_state(2, " .0.v:2 .1.v:1");
  auto waiting = world.send(update_batch(kId, kCountOne));
  world.run(milliseconds(800));
  CHECK_FALSE(waiting->has_value());
  CHECK(execute(world, get_batch(kId)).status);  // The distributor still serves reads.
  merges = true;
  world.run(milliseconds(800));
  REQUIRE(waiting->has_value());
  CHECK(only(**waiting).status);
}

TEST_CASE("update: a version that reached a replica after the read makes it read again") {
  DistributorWorld world(2);
  world.give_state(1);
  REQUIRE(execute(world, put_batch(kId)).status);
  int interfered = 0;
  world.hook = [&](std::uint16_t, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    auto* apply = std::get_if<rpc::Apply>(&request);
    if (apply == nullptr || apply->operations[0].kind != rpc::OperationKind::Put || interfered > 0) return std::nullopt;
    ++interfered;
    for (auto& node : world.storage) node[kBucket.raw()].documents[kId].timestamp_us += 1;
    return std::nullopt;
  };
  REQUIRE(execute(world, update_batch(kId, kCountOne)).status);
  CHECK(interfered == 1);
  CHECK(has(stored(world), "\"count\":1"));
}

TEST_CASE("get: a field set cuts the answer, and the body stays where it is if nothing of it is wanted") {
  DistributorWorld world(2);
  world.give_state(1);
  REQUIRE(execute(world, put_batch(kId, 0, 1, "text")).status);
  REQUIRE(execute(world, update_batch(kId, kCountOne)).status);
  auto get = [&](const std::string& fields) {
    rpc::Execute batch = get_batch(kId);
    batch.operations[0].field_set = fields;
    return execute(world, batch);
  };
  CHECK_FALSE(has(get("item:count").json, "text"));
  CHECK(has(get("item:count").json, "\"count\":1"));
  CHECK(world.transport.sent_of<rpc::Apply>().back().operations[0].header_only);
  CHECK(has(get("item:[document]").json, "text"));
  CHECK_FALSE(world.transport.sent_of<rpc::Apply>().back().operations[0].header_only);
  CHECK(has(get("[id]").json, "\"fields\":{}"));
  CHECK(get("[none]").json.empty());
  CHECK(get("item:nothing").status.code() == StatusCode::InvalidField);
}

TEST_CASE("limits: they hold for puts and for what updates make, and change while the distributor runs") {
  DistributorWorld world(2);
  world.give_state(1);
  REQUIRE(execute(world, put_batch(kId, 0, 1, std::string(100, 'x'))).status);
  REQUIRE(world.tunables().set("distributor.document_bytes_max", 300));
  REQUIRE(world.tunables().set("distributor.document_bytes_warn", 100));
  rpc::OperationResult large = execute(world, put_batch(kId, 0, 1, std::string(1000, 'x')));
  CHECK(large.status.code() == StatusCode::TooLarge);
  CHECK(has(large.status.message(), "300"));
  const std::string append = R"({"value": {"assign": ")" + std::string(1000, 'y') + R"("}})";
  CHECK(execute(world, update_batch(kId, append)).status.code() == StatusCode::TooLarge);
  CHECK(has(stored(world), "xxx"));
  REQUIRE(execute(world, put_batch(kId, 0, 1, std::string(150, 'x'))).status);
  CHECK(world.counter("fjord_distributor_limit_warnings_total", {{"limit", "document bytes"}}) == 1);
  REQUIRE(world.tunables().set("distributor.document_bytes_max", 1 << 20));
  CHECK(execute(world, update_batch(kId, append)).status);
}

}  // namespace fjord::test
