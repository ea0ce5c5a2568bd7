#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "faulty_store.h"
#include "fjord/cluster/cluster_state.h"
#include "fjord/cluster/distribution.h"
#include "fjord/fleetcontroller/fleet_controller.h"
#include "fjord/fleetcontroller/memory_state_store.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "stop_check.h"
#include "storage/node/test_process.h"

namespace fjord::fleetcontroller {

inline constexpr const char* kController = "controller:1";

/// Returns the facts of a healthy cluster.
inline ClusterFacts well(const std::string& groups = "redundancy:2 (root 0-3)", std::uint16_t nodes = 4) {
  ClusterState state = *ClusterState::parse("version:9 bits:6 distributor:2 storage:" + std::to_string(nodes));
  ClusterFacts facts;
  facts.active = ClusterView::make(state, *DistributionConfig::parse(groups));
  for (std::uint16_t i = 0; i < nodes; ++i)
    facts.nodes.push_back({.id = NodeId::storage(i), .buckets = 10, .bytes = 1000});
  for (std::uint16_t i = 0; i < 2; ++i) facts.nodes.push_back({.id = NodeId::distributor(i), .buckets = 20});
  for (NodeFacts& node : facts.nodes) {
    node.state = NodeState::Up;
    node.is_fresh = true;
    node.state_version = 9;
  }
  return facts;
}
inline NodeFacts& node_of(ClusterFacts& facts, NodeId id) { return const_cast<NodeFacts&>(*facts.find(id)); }

/// A polled node: accepts every state that the controller sends.
class AnsweringNode final : public rpc::Service {
 public:
  explicit AnsweringNode(std::uint64_t incarnation) : incarnation_(incarnation) {}

  bool handle(rpc::Request& request, rpc::Responder& respond) override {
    if (auto* question = std::get_if<rpc::GetBucketInfo>(&request)) {
      rpc::GetBucketInfoReply sizes;
      if (!question->of_all_owners)
        sizes.status = {StatusCode::InvalidArgument, "only the controller asks in these tests"};
      sizes.reports = held;
      respond(std::move(sizes));
      return true;
    }
    if (std::holds_alternative<rpc::GetLoads>(request) && loads) {
      respond(loads(incarnation_));
      return true;
    }
    if (std::holds_alternative<rpc::GetClusterInfo>(request)) {
      rpc::GetClusterInfoReply known;
      if (const auto snapshot = snapshots.get()) known.info = snapshot->info();
      known.time_ceiling_us = time_ceiling_us;
      respond(std::move(known));
      return true;
    }
    if (const auto* question = std::get_if<rpc::CheckWithout>(&request); question != nullptr && without) {
      asked_without = question->nodes;
      respond(*without);
      return true;
    }
    const auto* poll = std::get_if<rpc::Poll>(&request);
    if (poll == nullptr) return false;
    respond(answer(*poll));
    return true;
  }
  std::uint64_t version() const { return snapshots.get() == nullptr ? 0 : snapshots.get()->state_version(); }
  std::uint64_t schema_version() const { return snapshots.get() == nullptr ? 0 : snapshots.get()->schema_version(); }

  rpc::SnapshotHolder snapshots;
  std::string node_state = "s:u";
  bool acknowledges = true;
  bool renewed = false;      ///< True if the last poll renewed the lease.
  bool heard_ahead = false;  ///< A poll returned a clock value that this process has never sent: one of an earlier
                             ///< incarnation.
  std::int64_t clock_us = 0;
  std::uint64_t buckets = 1;
  std::uint64_t out_of_sync = 0;
  std::uint64_t unavailable = 0;
  std::vector<rpc::NodeLatency> latencies;
  std::vector<std::uint16_t> slow_storage;  ///< The field slow_storage of the last poll.
  std::uint64_t time_ceiling_us = 0;        ///< The highest ceiling that a poll has granted.
  bool floor_too_low = false;               ///< True if a state had a time floor below an earlier ceiling.
  std::vector<rpc::BucketReport> held;
  /// Answers GetLoads; absent: the node is of a version that counts no loads.
  std::function<rpc::GetLoadsReply(std::uint64_t incarnation)> loads;
  std::optional<rpc::CheckWithoutReply> without;  ///< The answer to CheckWithout; absent: the node is of a version
                                                  ///< without this call.
  std::vector<std::uint16_t> asked_without;       ///< The nodes that the last CheckWithout asked about.
  std::string says_it_is;                         ///< The node name in its answers to polls; empty: as of a version
                                                  ///< that sends no name.
  std::vector<std::string> features;              ///< The features in its answers to polls.
  std::vector<std::string> settings;              ///< The settings in its answers to polls that ask for them.
  bool asked_for_settings = false;                ///< True if the last poll asked for the settings.
  std::uint64_t folder = 0;                       ///< The number of its folder in its answers to polls.
  int polls = 0;
  int polls_of_strangers = 0;  ///< Number of polls that were meant for another incarnation of this node.

 private:
  rpc::PollReply answer(const rpc::Poll& poll) {
    rpc::PollReply reply;
    const std::uint64_t version_before = version();
    Result<bool> updated = snapshots.update(poll.info);
    if (updated && version() != version_before) {
      floor_too_low = floor_too_low || snapshots.get()->state().time_floor_us() < time_ceiling_us;
    }
    if (updated) time_ceiling_us = std::max(time_ceiling_us, poll.time_ceiling_us);
    if (!updated) reply.status = updated.error();
    if (auto snapshot = snapshots.get()) {
      reply.state_version = snapshot->state_version();
      reply.schema_version = snapshot->schema_version();
      reply.term = snapshot->term();
      reply.config_version = snapshot->config_version();
      if (acknowledges) reply.pending_version = snapshot->pending_version();
    }
    heard_ahead = heard_ahead || (poll.heard_incarnation == incarnation_ && poll.heard_us > clock_us);
    reply.clock_us = ++clock_us;
    renewed = poll.renews_lease && poll.heard_incarnation == incarnation_ && poll.heard_us > 0;
    reply.buckets = buckets;
    reply.buckets_out_of_sync = out_of_sync;
    reply.buckets_unavailable = unavailable;
    reply.node_state = node_state;
    reply.features = features;
    reply.incarnation = incarnation_;
    reply.latencies = latencies;
    reply.node = says_it_is;
    reply.folder_id = folder;
    asked_for_settings = poll.wants_settings;
    if (poll.wants_settings) reply.settings = settings;
    slow_storage = poll.slow_storage;
    ++polls;
    if (poll.heard_incarnation != incarnation_) ++polls_of_strangers;
    return reply;
  }

  std::uint64_t incarnation_;
};

inline rpc::ChangeNodes change(rpc::NodeAction action, const std::string& node) {
  rpc::ChangeNodes request;
  request.action = action;
  request.nodes = {node};
  return request;
}
inline rpc::ChangeConfig set(std::vector<std::string> settings) {
  rpc::ChangeConfig request;
  request.set = std::move(settings);
  return request;
}

/// A fleet controller, three storage nodes and a distributor.
class Fleet {
 public:
  explicit Fleet(Duration session = seconds(2)) : ensemble(world.scheduler.clock(), {.session_timeout = session}) {
    options.distributors = {"distributor.0:1"};
    options.storage = {"storage.0:1", "storage.1:1", "storage.2:1"};
    options.distribution = DistributionConfig::flat(3, 2).to_string();
    options.distribution_bits = 4;
    options.name = kController;
  }

  Status start_controller() {
    stop_controller();
    controller_ = std::make_unique<test::TestProcess<FleetController>>(world, "controller", env, 1);
    store_ = std::make_unique<FaultyStore>(ensemble, store_faults);
    auto opened = FleetController::open(options, controller_->runtime(), controller_->transport(), *store_);
    if (!opened) return opened.error();
    controller_->run(std::move(*opened));
    return Status::ok();
  }
  FleetController& controller() { return controller_->node(); }
  const FaultyStore& store() const { return *store_; }
  /// Returns the value of a counter or a gauge of the controller.
  double metric(const std::string& name) {
    for (const MetricRegistry::Entry& entry : controller_->runtime().metrics.entries()) {
      if (entry.name != name) continue;
      return entry.counter != nullptr ? static_cast<double>(entry.counter->value()) : entry.gauge->value();
    }
    FAIL(name);
    return 0;
  }
  sim::SimNodeScheduler& controller_scheduler() { return controller_->scheduler(); }
  void stop_controller() {
    controller_.reset();
    store_.reset();
  }
  void start_node(const std::string& name) {
    nodes_.erase(name);
    auto process = std::make_unique<test::TestProcess<AnsweringNode>>(world, name, node_env_, 1);
    process->run(std::make_unique<AnsweringNode>(++incarnations_));
    nodes_[name] = std::move(process);
  }
  void stop_node(const std::string& name) { nodes_.erase(name); }
  AnsweringNode& node(const std::string& name) { return nodes_.at(name)->node(); }
  void start_all() {
    for (const char* name : {"storage.0", "storage.1", "storage.2", "distributor.0"}) start_node(name);
    REQUIRE(start_controller());
    REQUIRE(run_until_all_know(1, seconds(5)));
  }

  bool run_until_all_know(std::uint64_t version, Duration limit) {
    return world.scheduler.run_until(
        [&] {
          return std::all_of(nodes_.begin(), nodes_.end(),
                             [&](const auto& entry) { return entry.second->node().version() >= version; });
        },
        limit);
  }
  ClusterState state() {
    rpc::GetClusterInfoReply reply = caller.ask(kController, rpc::GetClusterInfo{});
    REQUIRE(reply.status);
    Result<ClusterState> parsed = ClusterState::parse(reply.info.state);
    REQUIRE(parsed);
    CHECK(parsed->version() == reply.info.state_version);
    return *parsed;
  }
  rpc::DeploySchemasReply deploy(std::vector<std::string> schemas) {
    return caller.ask(kController, rpc::DeploySchemas{.schemas = std::move(schemas)});
  }

  test::TestNetwork world{7};
  test::TestCaller caller{world};
  sim::SimEnv env;
  MemoryStateEnsemble ensemble;
  FaultyStore::Faults store_faults;
  FleetControllerOptions options;

 private:
  sim::SimEnv node_env_;
  std::unique_ptr<FaultyStore> store_;
  std::unique_ptr<test::TestProcess<FleetController>> controller_;
  std::map<std::string, std::unique_ptr<test::TestProcess<AnsweringNode>>> nodes_;
  std::uint64_t incarnations_ = 10;
};

}  // namespace fjord::fleetcontroller
