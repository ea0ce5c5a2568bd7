#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fjord/common/coding.h"
#include "fjord/document/document_id.h"
#include "fjord/storage/memory/memory_provider.h"
#include "fjord/storage/storage_node.h"
#include "storage/node/test_process.h"

namespace fjord::test {

inline rpc::Address storage_address(std::uint16_t node) { return "storage." + std::to_string(node) + ":1"; }

/// Storage nodes, by default with the memory engine. The test acts as fleet controller and distributors.
class NodeWorld {
 public:
  /// Opens the engine of a stripe of a node.
  using MakeProvider =
      std::function<Result<std::unique_ptr<spi::PersistenceProvider>>(std::uint16_t node, unsigned, unsigned)>;

  explicit NodeWorld(std::uint16_t nodes, storage::StorageNodeOptions options = {}, MakeProvider providers = {})
      : caller(world), options_(std::move(options)), providers_(std::move(providers)) {
    if (!providers_) {
      providers_ = [](std::uint16_t, unsigned, unsigned) -> Result<std::unique_ptr<spi::PersistenceProvider>> {
        return make_memory_provider();
      };
    }
    for (std::uint16_t i = 0; i < nodes; ++i) start(i);
  }

  /// Kills the node and starts it again, without a cluster state.
  void restart(std::uint16_t node) {
    nodes_.erase(node);
    start(node);
  }

  /// Returns the cluster state of a version, with every node up.
  rpc::ClusterInfo info(std::uint64_t version, unsigned bits = 3) const {
    rpc::ClusterInfo info;
    info.state_version = version;
    const auto storage = static_cast<std::uint16_t>(std::max<std::size_t>(3, nodes_.size()));
    info.state = "version:" + std::to_string(version) + " bits:" + std::to_string(bits) +
                 " distributor:2 storage:" + std::to_string(storage);
    info.distribution = DistributionConfig::flat(storage, 2).to_string();
    info.distributor_addresses = {"d0:1", "d1:1"};
    for (std::uint16_t i = 0; i < storage; ++i) info.storage_addresses.push_back(storage_address(i));
    return info;
  }
  void give_state(std::uint64_t version, unsigned bits = 3) {
    for (auto& [index, node] : nodes_) {
      rpc::PollReply reply = ask(index, rpc::Poll{.info = info(version, bits)});
      REQUIRE(reply.status);
      REQUIRE(reply.state_version == version);
    }
  }
  std::uint16_t owner(BucketId bucket) {
    return *nodes_.begin()->second->node().snapshots().get()->distributor_of(bucket);
  }

  template <typename R>
  typename R::Reply ask(std::uint16_t node, R request) {
    return caller.ask(storage_address(node), std::move(request));
  }

  Status install(std::uint16_t node, std::uint64_t version, BucketId bucket, ReplicaSet set) {
    rpc::SetReplicaSets request;
    request.state_version = version;
    request.distributor = owner(bucket);
    request.buckets = {{bucket, std::move(set)}};
    rpc::SetReplicaSetsReply reply = ask(node, std::move(request));
    REQUIRE(reply.status);
    REQUIRE(reply.statuses.size() == 1);
    return reply.statuses[0];
  }
  rpc::ApplyReply apply(std::uint16_t node, std::uint64_t version, std::uint16_t distributor,
                        std::vector<rpc::StorageOperation> operations) {
    rpc::Apply request;
    request.state_version = version;
    request.distributor = distributor;
    request.operations = std::move(operations);
    return ask(node, std::move(request));
  }
  /// Sends one operation as the owner does.
  rpc::OperationResult apply_one(std::uint16_t node, std::uint64_t version, rpc::StorageOperation operation) {
    const std::uint16_t distributor = owner(operation.bucket);
    rpc::ApplyReply reply = apply(node, version, distributor, {std::move(operation)});
    REQUIRE(reply.status);
    REQUIRE(reply.results.size() == 1);
    return std::move(reply.results[0]);
  }
  rpc::GetBucketInfoReply reports(std::uint16_t node, std::uint64_t version, std::uint16_t distributor) {
    rpc::GetBucketInfo request;
    request.state_version = version;
    request.distributor = distributor;
    request.all = true;
    return ask(node, std::move(request));
  }

  void set_tunable(const std::string& name, std::int64_t value) {
    for (auto& [index, node] : nodes_) REQUIRE(node->runtime().tunables.set(name, value).is_ok());
  }
  /// Lets the stripe of the bucket do one thing for so long.
  void stall_stripe(std::uint16_t node, BucketId bucket, Duration duration) {
    nodes_.at(node)->node().on_stripe(
        bucket, [this, duration](spi::PersistenceProvider&) { world.scheduler.stall_running(duration); });
  }
  /// Returns the sum over all nodes.
  double metric(const std::string& name, const Labels& labels = {}) {
    double sum = 0;
    for (auto& [index, node] : nodes_) {
      for (const MetricRegistry::Entry& entry : node->runtime().metrics.entries()) {
        if (entry.name != name || entry.labels != labels) continue;
        sum += entry.kind == MetricKind::Gauge ? entry.gauge->value() : static_cast<double>(entry.counter->value());
      }
    }
    return sum;
  }
  storage::StorageNode& node(std::uint16_t node) { return nodes_.at(node)->node(); }
  /// The disk that all nodes share.
  sim::SimEnv& env() { return env_; }

  TestNetwork world{5};
  TestCaller caller;

 private:
  void start(std::uint16_t node) {
    options_.index = node;
    const std::string name = "storage." + std::to_string(node);
    auto process = std::make_unique<TestProcess<storage::StorageNode>>(world, name, env_, ++incarnation_);
    auto opened =
        storage::StorageNode::open(options_, process->runtime(), process->transport(),
                                   [&](unsigned stripe, unsigned of) { return providers_(node, stripe, of); });
    REQUIRE(opened);
    process->run(std::move(*opened));
    nodes_[node] = std::move(process);
  }

  storage::StorageNodeOptions options_;
  MakeProvider providers_;
  unsigned incarnation_ = 0;
  sim::SimEnv env_;
  std::map<std::uint16_t, std::unique_ptr<TestProcess<storage::StorageNode>>> nodes_;
};

/// Returns an id in the bucket of `location`; all ids of a location share a bucket.
inline std::string id_in(unsigned location, int number) {
  return "id:test:item:n=" + std::to_string(location) + ":" + std::to_string(number);
}

inline rpc::StorageOperation operation_on(rpc::OperationKind kind, const std::string& id, std::uint64_t timestamp_us,
                                          const std::string& body = {}, std::uint64_t epoch = 0) {
  rpc::StorageOperation operation;
  operation.kind = kind;
  operation.gid = DocumentId::parse(id)->gid();
  operation.bucket = bucket_of(operation.gid, 3);
  operation.timestamp_us = timestamp_us;
  operation.epoch = epoch;
  operation.id = id;
  if (kind != rpc::OperationKind::Put) return operation;
  operation.header = std::string(
      "\x01"
      "type",
      5);  // The first bytes of a header part, by document/FORMAT.md.
  put_string(operation.header, id);
  operation.body = body;
  return operation;
}
inline rpc::StorageOperation put_of(const std::string& id, std::uint64_t timestamp_us, const std::string& body,
                                    std::uint64_t epoch = 0) {
  return operation_on(rpc::OperationKind::Put, id, timestamp_us, body, epoch);
}
inline rpc::StorageOperation remove_of(const std::string& id, std::uint64_t timestamp_us, std::uint64_t epoch = 0) {
  return operation_on(rpc::OperationKind::Remove, id, timestamp_us, {}, epoch);
}
inline rpc::StorageOperation get_of(const std::string& id, std::uint64_t epoch = 0) {
  return operation_on(rpc::OperationKind::Get, id, 0, {}, epoch);
}

}  // namespace fjord::test
