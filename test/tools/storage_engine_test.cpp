#include "storage_engine.h"

#include <catch2/catch.hpp>

#include "fjord/document/document_id.h"
#include "storage/leveldb/locked_env.h"
#include "storage/node/test_process.h"

namespace fjord::test {
namespace {

constexpr std::uint64_t kState = 1;

/// A storage node on a simulated disk, made from a configuration as a storage process does it.
class ConfiguredNode {
 public:
  ConfiguredNode(const std::string& engine, const std::string& durability)
      : env_(disk_), process_(network_, "storage.0", env_, 1), caller_(network_) {
    config::ClusterConfig config = config::default_config();
    config.engine = engine;
    config.durability = durability;
    config.storage.resize(1);
    config.storage[0].directory = "/node";
    REQUIRE(env_.create_directories("/node").is_ok());
    syncs_ = process_.runtime().scheduler.make_executor("syncs");
    auto chosen = choose_storage_engine(config, 0, "/node/buckets", 1, process_.runtime(), *syncs_);
    REQUIRE(chosen);
    engine_ = std::move(*chosen);
    auto node = storage::StorageNode::open(storage_node_options(config, 0), process_.runtime(), process_.transport(),
                                           engine_.open);
    REQUIRE(node);
    process_.run(std::move(*node));

    rpc::Poll poll;
    poll.info.state_version = kState;
    poll.info.state = "version:1 bits:1 distributor:1 storage:1";
    poll.info.distribution = DistributionConfig::flat(1, 1).to_string();
    poll.info.distributor_addresses = {"d:1"};
    poll.info.storage_addresses = {kAddress};
    REQUIRE(caller_.ask(kAddress, poll).status);
  }

  /// Returns the number of syncs of the disk for one replica set.
  std::uint64_t syncs_of_replica_set() {
    return syncs_of([&] {
      rpc::SetReplicaSets request;
      request.state_version = kState;
      request.buckets = {{bucket_of(gid(), 1), {kEpoch, {0}}}};
      rpc::SetReplicaSetsReply reply = caller_.ask(kAddress, request);
      REQUIRE(reply.status);
      REQUIRE(reply.statuses.at(0));
    });
  }
  std::uint64_t syncs_of_remove(rpc::Durability durability) {
    return syncs_of([&] {
      rpc::StorageOperation operation;
      operation.kind = rpc::OperationKind::Remove;
      operation.id = kId;
      operation.gid = gid();
      operation.bucket = bucket_of(gid(), 1);
      operation.epoch = kEpoch;
      operation.timestamp_us = ++timestamp_us_;
      operation.durability = durability;
      rpc::Apply request;
      request.state_version = kState;
      request.operations = {std::move(operation)};
      rpc::ApplyReply reply = caller_.ask(kAddress, std::move(request));
      REQUIRE(reply.status);
      REQUIRE(reply.results.at(0).status);
    });
  }

 private:
  static constexpr const char* kAddress = "storage.0:1";
  static constexpr const char* kId = "id:test:item::a";
  static constexpr std::uint64_t kEpoch = ReplicaSet::make_epoch(kState, 1);

  static GlobalId gid() { return DocumentId::parse(kId)->gid(); }
  std::uint64_t syncs() {
    return env_.locked([](sim::SimEnv& disk) { return disk.operations(sim::FileOperation::Sync); });
  }
  template <typename F>
  std::uint64_t syncs_of(F act) {
    const std::uint64_t before = syncs();
    act();
    return syncs() - before;
  }

  sim::SimEnv disk_;
  LockedEnv env_;
  TestNetwork network_;
  std::unique_ptr<Executor> syncs_;
  StorageEngine engine_;
  TestProcess<storage::StorageNode> process_;
  TestCaller caller_;
  std::uint64_t timestamp_us_ = 0;
};

}  // namespace

TEST_CASE("storage process: with durability sync writes are synced, unless their client asks for less") {
  const std::string engine = GENERATE("slotfile", "leveldb");
  CAPTURE(engine);
  ConfiguredNode node(engine, "sync");
  CHECK(node.syncs_of_replica_set() > 0);  // Installing the set creates the bucket, too.
  CHECK(node.syncs_of_remove(rpc::Durability::Default) == 1);
  CHECK(node.syncs_of_remove(rpc::Durability::Sync) == 1);
  CHECK(node.syncs_of_remove(rpc::Durability::Process) == 0);
}

TEST_CASE("storage process: with durability process writes are not synced, unless their client asks for it") {
  const std::string engine = GENERATE("slotfile", "leveldb");
  CAPTURE(engine);
  ConfiguredNode node(engine, "process");
  CHECK(node.syncs_of_replica_set() == 0);
  CHECK(node.syncs_of_remove(rpc::Durability::Default) == 0);
  CHECK(node.syncs_of_remove(rpc::Durability::Sync) == 1);
  CHECK(node.syncs_of_remove(rpc::Durability::Process) == 0);
}

TEST_CASE("storage process: the engine of a node's own section counts before that of all") {
  sim::SimEnv disk;
  LockedEnv env(disk);
  TestNetwork network;
  TestProcess<storage::StorageNode> process(network, "storage.0", env, 1);
  const auto syncs = process.runtime().scheduler.make_executor("syncs");
  config::ClusterConfig config = config::default_config();
  config.storage.resize(2);
  config.storage[1].engine = "leveldb";
  const auto choose = [&](std::uint16_t index, const std::string& directory) {
    return choose_storage_engine(config, index, directory, 1, process.runtime(), *syncs);
  };
  // Only the slotfile engine has tunables.
  CHECK(choose(0, "/0")->tunables != nullptr);
  CHECK(choose(1, "/1")->tunables == nullptr);
  config.engine = "leveldb";
  config.storage[0].engine = "slotfile";
  CHECK(choose(0, "/0")->tunables != nullptr);
  CHECK(choose(1, "/1")->tunables == nullptr);
}

TEST_CASE("storage process: what the configuration says of a storage node reaches it") {
  config::ClusterConfig config = config::default_config();
  config.storage.resize(3);
  config.storage[2].directory = "/data/2";
  storage::StorageNodeOptions options = storage_node_options(config, 2);
  CHECK(options.index == 2);
  CHECK(options.directory == "/data/2");
  CHECK(options.durability == spi::Durability::Process);
  config.durability = "sync";
  CHECK(storage_node_options(config, 2).durability == spi::Durability::Sync);
}

}  // namespace fjord::test
