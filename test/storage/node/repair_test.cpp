#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "fjord/storage/slotfile/slotfile_provider.h"
#include "fjord/storage/spi/token_entry.h"
#include "storage/node/node_world.h"

namespace fjord::test {
namespace {

constexpr std::uint64_t kState = 4;
const std::string kLost = id_in(1, 0);
const std::string kKept = id_in(1, 1);
const std::string kAbsent = id_in(1, 2);
const BucketId kBucket = get_of(kLost).bucket;

/// Two replicas with the same two documents, on disks whose bits the tests flip.
class RepairWorld {
 public:
  RepairWorld() {
    nodes.give_state(kState);
    for (std::uint16_t node : {std::uint16_t{0}, std::uint16_t{1}}) {
      REQUIRE(nodes.install(node, kState, kBucket, {epoch_, {0, 1}}));
      REQUIRE(nodes.apply_one(node, kState, put_of(kLost, 100, "the lost body", epoch_)).status);
      REQUIRE(nodes.apply_one(node, kState, put_of(kKept, 101, "the kept body", epoch_)).status);
    }
  }

  /// Damages the body of kLost; the node does not know of it yet.
  void damage(std::uint16_t node) {
    REQUIRE(engines_.at(node)->checkpoint().is_ok());
    const std::string folder = folder_of(node);
    const std::vector<std::string> names = *nodes.env().list_directory(folder);
    for (const std::string& name : names) {
      if (!name.ends_with(".slot")) continue;
      auto file = *nodes.env().open_random_access(folder + "/" + name);
      std::string bytes(*file->size(), '\0');
      REQUIRE(file->read(0, std::span<char>(bytes)).has_value());
      const std::size_t at = bytes.find("the lost body");
      if (at == std::string::npos) continue;
      REQUIRE(nodes.env().flip_bit(folder + "/" + name, at, 0).is_ok());
      return;
    }
    FAIL("the document is in no slotfile");
  }

  StatusCode get(std::uint16_t node, const std::string& id, bool even_damaged = false) {
    rpc::StorageOperation operation = get_of(id, epoch_);
    operation.even_damaged = even_damaged;
    return nodes.apply_one(node, kState, std::move(operation)).status.code();
  }
  rpc::MergeBucketReply merge(std::uint16_t node, std::uint16_t source, bool decides = false) {
    rpc::MergeBucket request;
    request.state_version = kState;
    request.distributor = nodes.owner(kBucket);
    request.bucket = kBucket;
    request.sources = {source};
    request.decides = decides;
    return nodes.ask(node, std::move(request));
  }
  rpc::BucketReport report(std::uint16_t node) {
    return nodes.reports(node, kState, nodes.owner(kBucket)).reports.at(0);
  }
  /// Sends the replica set of a distributor that has compared the replica with an intact one, until the node takes it.
  void say_repaired(std::uint16_t node, const BucketInfo& intact) {
    rpc::SetReplicaSets request;
    request.state_version = kState;
    request.distributor = nodes.owner(kBucket);
    request.buckets = {{kBucket, {++epoch_, {0, 1}}, true, intact}};
    constexpr int kAttempts = 100;
    Status answer;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      answer = nodes.ask(node, request).statuses.at(0);
      if (answer.code() != StatusCode::NotReady) break;
    }
    REQUIRE(answer);
  }
  std::vector<rpc::BucketReport> damaged_at(std::uint16_t node) {
    rpc::GetBucketInfo request;
    request.state_version = kState;
    request.distributor = nodes.owner(kBucket);
    request.all = true;
    request.only_damaged = true;
    return nodes.ask(node, std::move(request)).reports;
  }

 private:
  static std::string folder_of(std::uint16_t node) { return "/disk" + std::to_string(node); }
  Result<std::unique_ptr<spi::PersistenceProvider>> open(std::uint16_t node, unsigned stripe, unsigned stripes) {
    SlotfileOptions options;
    options.directory = folder_of(node);
    options.stripe = stripe;
    options.stripes = stripes;
    FJORD_TRY_ASSIGN(std::unique_ptr<spi::PersistenceProvider> provider, open_slotfile_provider(nodes.env(), options));
    engines_[node] = dynamic_cast<SlotfileProvider*>(provider.get());
    return provider;
  }

  std::uint64_t epoch_ = ReplicaSet::make_epoch(kState, 1);
  std::map<std::uint16_t, SlotfileProvider*> engines_;

 public:
  NodeWorld nodes{2, {.stripes = 1}, [this](std::uint16_t node, unsigned stripe, unsigned stripes) {
                    return open(node, stripe, stripes);
                  }};
};

}  // namespace

TEST_CASE("repair: a damaged bucket is reported, and read only by who has no other replica") {
  RepairWorld world;
  world.damage(0);
  CHECK(world.get(0, kKept) == StatusCode::Ok);  // No read has met the damage yet.
  CHECK(world.damaged_at(0).empty());
  CHECK(world.get(0, kLost) == StatusCode::Corruption);
  REQUIRE(world.damaged_at(0).size() == 1);
  CHECK(world.damaged_at(0)[0].bucket == kBucket);
  CHECK(world.damaged_at(0)[0].damaged);
  CHECK(world.nodes.ask(0, rpc::Poll{}).buckets_damaged == 1);
  CHECK(world.damaged_at(1).empty());

  CHECK(world.get(0, kKept) == StatusCode::Corruption);
  CHECK(world.get(0, kKept, true) == StatusCode::Ok);
  CHECK(world.get(0, kLost, true) == StatusCode::Corruption);
  CHECK(world.get(1, kLost) == StatusCode::Ok);
}

TEST_CASE("repair: a bucket is whole again when it was merged from an intact replica and holds the same") {
  const bool restart = GENERATE(false, true);
  INFO("restart of the damaged node: " << restart);
  RepairWorld world;
  world.damage(0);
  REQUIRE(world.get(0, kLost) == StatusCode::Corruption);
  if (restart) {
    REQUIRE(world.nodes.apply_one(0, kState, put_of(id_in(1, 9), 102, "", world.report(0).replica_set.epoch)).status);
    REQUIRE(world.nodes.apply_one(1, kState, put_of(id_in(1, 9), 102, "", world.report(0).replica_set.epoch)).status);
    world.say_repaired(0, {});  // Makes the engine store a new replica set together with the damage.
    world.nodes.restart(0);
    world.nodes.give_state(kState);
    CHECK(world.damaged_at(0).size() == 1);
    // NotFound would be wrong: the document may have been lost.
    CHECK(world.get(0, kAbsent, true) == StatusCode::Corruption);
    CHECK(world.get(0, kLost, true) == StatusCode::Corruption);
  }
  const BucketInfo intact = world.report(1).info;
  world.say_repaired(0, intact);
  CHECK(world.report(0).damaged);  // Still damaged: the contents of the two replicas differ.
  CHECK(world.get(0, kLost, true) == StatusCode::Corruption);

  rpc::MergeBucketReply merged = world.merge(0, 1);
  REQUIRE(merged.status);
  CHECK(merged.damaged_sources.empty());
  CHECK(world.report(0).damaged);  // Still damaged: the contents have not been compared yet.
  CHECK(world.report(0).info.same_content(intact));
  world.say_repaired(0, intact);
  CHECK_FALSE(world.report(0).damaged);
  CHECK(world.nodes.ask(0, rpc::Poll{}).buckets_damaged == 0);
  CHECK(world.get(0, kLost) == StatusCode::Ok);
  CHECK(world.get(0, kKept) == StatusCode::Ok);
  CHECK(world.get(0, kAbsent) == StatusCode::NotFound);
}

TEST_CASE("repair: what was repaired is on disk and needs no other replica after a restart") {
  RepairWorld world;
  world.damage(0);
  REQUIRE(world.get(0, kLost) == StatusCode::Corruption);
  REQUIRE(world.merge(0, 1).status);
  world.say_repaired(0, world.report(1).info);
  REQUIRE_FALSE(world.report(0).damaged);
  for (int restart = 0; restart < 2; ++restart) {
    world.nodes.restart(0);
    world.nodes.give_state(kState);
    CHECK(world.damaged_at(0).empty());
    CHECK(world.get(0, kLost) == StatusCode::Ok);
    CHECK(world.get(0, kKept) == StatusCode::Ok);
    CHECK(world.damaged_at(0).empty());
  }
}

TEST_CASE("repair: a restart in the middle of a repair leaves the replica damaged") {
  RepairWorld world;
  world.damage(0);
  REQUIRE(world.get(0, kLost) == StatusCode::Corruption);
  const bool is_merged = GENERATE(false, true);
  if (is_merged) REQUIRE(world.merge(0, 1).status);
  world.nodes.world.scheduler.run_for(seconds(3));  // The engine makes durable that the bucket is damaged.
  world.nodes.restart(0);
  world.nodes.give_state(kState);
  REQUIRE(world.damaged_at(0).size() == 1);
  REQUIRE(world.merge(0, 1).status);
  world.say_repaired(0, world.report(1).info);
  CHECK_FALSE(world.report(0).damaged);
  CHECK(world.get(0, kLost) == StatusCode::Ok);
}

TEST_CASE("repair: a loss that is accepted without an intact replica is confirmed when it is on disk") {
  RepairWorld world;
  world.damage(0);
  REQUIRE(world.get(0, kLost) == StatusCode::Corruption);
  // No merge from an intact replica has had the files rewritten. The message is repeated until they are.
  world.say_repaired(0, world.report(0).info);
  CHECK_FALSE(world.report(0).damaged);
  world.nodes.restart(0);
  world.nodes.give_state(kState);
  CHECK(world.get(0, kLost) == StatusCode::NotFound);
  CHECK(world.get(0, kKept) == StatusCode::Ok);
  CHECK(world.damaged_at(0).empty());
}

TEST_CASE("repair: a late copy of the message that it is whole does not hide what was lost since") {
  RepairWorld world;
  world.damage(0);
  const ReplicaSet set = world.report(0).replica_set;
  REQUIRE(world.get(0, kLost) == StatusCode::Corruption);
  rpc::SetReplicaSets late;
  late.state_version = kState;
  late.distributor = world.nodes.owner(kBucket);
  late.buckets = {{kBucket, set, true, world.report(0).info}};
  REQUIRE(world.nodes.ask(0, late).statuses.at(0));
  CHECK(world.report(0).damaged);
}

TEST_CASE("repair: a cluster state with more bits splits a damaged bucket into damaged halves") {
  RepairWorld world;
  world.damage(0);
  REQUIRE(world.get(0, kLost) == StatusCode::Corruption);
  world.nodes.give_state(kState + 1, 4);
  std::set<BucketId> damaged;
  for (const std::uint16_t distributor : {std::uint16_t{0}, std::uint16_t{1}}) {
    for (const rpc::BucketReport& report : world.nodes.reports(0, kState + 1, distributor).reports) {
      if (report.damaged) damaged.insert(report.bucket);
    }
  }
  const auto halves = halves_of(kBucket);
  CHECK(damaged == std::set<BucketId>(halves.begin(), halves.end()));
}

TEST_CASE("repair: a merge says which of its sources have lost something") {
  RepairWorld world;
  world.damage(0);
  CHECK_FALSE(world.merge(1, 0).status.code() == StatusCode::Corruption);  // Nothing is missing, so nothing is read.
  REQUIRE(world.get(0, kLost) == StatusCode::Corruption);
  rpc::MergeBucketReply merged = world.merge(1, 0);
  REQUIRE(merged.status);
  CHECK(merged.damaged_sources == std::vector<std::uint16_t>{0});
}

TEST_CASE("repair: the token of a write is cancelled if the only member that had the write has lost it") {
  RepairWorld world;
  const std::uint64_t epoch = world.report(0).replica_set.epoch;
  const auto write = [&](const std::string& id, std::uint64_t timestamp_us, const std::string& body) {
    rpc::StorageOperation put = put_of(id, timestamp_us, body, epoch);
    put.token_gid = spi::token_gid(put.gid, "T");
    put.token_entry = spi::TokenEntry::of(put.gid, "T", true).id();
    REQUIRE(world.nodes.apply_one(0, kState, std::move(put)).status);  // Node 1 does not get this write.
  };
  write(kLost, 200, "the lost body");
  write(kKept, 201, "the kept body");
  world.damage(0);
  REQUIRE(world.get(0, kLost) == StatusCode::Corruption);
  REQUIRE(world.merge(1, 0, true).status);
  const auto at_1 = [&](const std::string& id) {
    rpc::StorageOperation get = get_of(id, epoch);
    get.token_gid = spi::token_gid(get.gid, "T");
    return world.nodes.apply_one(1, kState, std::move(get));
  };
  CHECK(at_1(kLost).timestamp_us == 100);
  CHECK(at_1(kLost).token_entry.ends_with(":x"));
  CHECK(at_1(kKept).timestamp_us == 201);
  CHECK(at_1(kKept).token_entry.ends_with(":1"));
  REQUIRE(world.merge(0, 1).status);
  CHECK(world.report(0).info.same_content(world.report(1).info));
}

TEST_CASE("repair: a lost version that an intact member does not have gives way to the one it has") {
  RepairWorld world;
  const std::uint64_t epoch = world.report(0).replica_set.epoch;
  REQUIRE(world.nodes.apply_one(0, kState, put_of(kLost, 200, "the lost body", epoch)).status);  // Node 1 lacks it.
  world.damage(0);
  REQUIRE(world.get(0, kLost) == StatusCode::Corruption);
  REQUIRE(world.merge(0, 1).status);
  CHECK(world.report(0).info.same_content(world.report(1).info));
  CHECK(world.report(0).damaged);
  world.say_repaired(0, world.report(1).info);
  CHECK(world.get(0, kLost) == StatusCode::Ok);
}

}  // namespace fjord::test
