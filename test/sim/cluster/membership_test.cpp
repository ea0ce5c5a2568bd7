// Nodes that join or leave while other events happen. Each case runs with several seeds.

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fjord/client/operations.h"
#include "fjord/common/log.h"
#include "fjord/fleetcontroller/memory_state_store.h"
#include "fjord/sim/sim_cluster.h"
#include "operator.h"

namespace fjord::sim {
namespace {

constexpr unsigned kDocuments = 40;
constexpr std::uint16_t kStorageNodesMax = 6;  ///< More nodes than any of these clusters has.

std::string id_of(unsigned n) { return "id:n:item::" + std::to_string(n); }

SimClusterOptions shape(std::uint64_t seed, unsigned storage_nodes, unsigned redundancy) {
  SimClusterOptions options;
  options.seed = seed;
  options.storage_nodes = storage_nodes;
  options.redundancy = redundancy;
  options.sync = true;
  options.power_loss = true;
  options.schemas = {"document item { field value type string { header } }"};
  return options;
}

/// Reads and writes all the time, and counts each read that is older than a write acknowledged before it.
class World {
 public:
  explicit World(const SimClusterOptions& options) : cluster(options), random_(mix64(options.seed, 17)) {
    log::set_level(log::Level::Off);
    cluster.start();
    client_ = &cluster.add_client();
    for (unsigned n = 0; n < kDocuments; ++n) put(n);
    run(seconds(2));
    REQUIRE(std::count(written_.begin(), written_.end(), 0U) == 0);
  }
  ~World() { *there_ = false; }

  void run(Duration duration) {
    const MonotonicTime end = now() + duration;
    while (now() < end) {
      get(static_cast<unsigned>(random_.below(kDocuments)));
      if (random_.chance(0.3)) put(static_cast<unsigned>(random_.below(kDocuments)));
      if (random_.chance(0.1)) {
        get_replica(static_cast<unsigned>(random_.below(kDocuments)),
                    static_cast<std::uint16_t>(random_.below(kStorageNodesMax)), nullptr);
      }
      cluster.scheduler().run_for(milliseconds(5));
    }
  }
  Duration up_to(std::int64_t ms) {
    return microseconds(static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(ms) * 1000)));
  }
  bool chance(double p) { return random_.chance(p); }
  void add_storage_node(bool* refused = nullptr) {
    rpc::ChangeNodes request;
    request.action = rpc::NodeAction::Add;
    request.nodes = {"storage"};
    request.force = true;  // The address is not tried first, because the network may lose that request.
    request.address = (added_.empty() ? added_ = cluster.add_storage_node() : added_) + ":1";
    operator_.change_nodes(std::move(request), [refused](const rpc::ChangeNodesReply& reply) {
      FJORD_CHECK(reply.status || reply.status.code() == StatusCode::AlreadyExists);
      if (refused != nullptr) *refused = !reply.refusals.empty();
    });
  }
  void change_capacity(const std::string& node, const std::string& to) {
    rpc::ChangeNodes request;
    request.action = rpc::NodeAction::Capacity;
    request.nodes = {node};
    request.capacity = to;
    operator_.change_nodes(std::move(request), {});
  }
  void change(rpc::NodeAction action, const std::string& node, bool* refused = nullptr) {
    rpc::ChangeNodes request;
    request.action = action;
    request.nodes = {node};
    // The change is forced, as fewer nodes than the redundancy would be left.
    request.force = action == rpc::NodeAction::Retire;
    operator_.change_nodes(std::move(request), [refused](const rpc::ChangeNodesReply& reply) {
      INFO(reply.status.to_string());
      CHECK(reply.status);
      if (refused != nullptr) *refused = !reply.refusals.empty();
    });
  }
  void set(const std::string& setting, bool* refused) {
    operator_.change_config(setting, [refused](const rpc::ChangeConfigReply& reply) { *refused = !reply.status; });
  }
  bool operator_is_idle() const { return operator_.is_idle(); }
  /// Adds the address as a new storage node without trying it first. Returns the name that the cluster gave it.
  std::string add_address(const std::string& address) {
    rpc::ChangeNodes request;
    request.action = rpc::NodeAction::Add;
    request.nodes = {"storage"};
    request.force = true;
    request.address = address;
    operator_.change_nodes(std::move(request), [](const rpc::ChangeNodesReply& reply) { FJORD_CHECK(reply.status); });
    REQUIRE(cluster.run_until([&] { return operator_.is_idle(); }, seconds(30)));
    const rpc::GetStatusReply seen = ask(rpc::GetStatus{});
    const auto added = std::find_if(seen.nodes.begin(), seen.nodes.end(),
                                    [&](const rpc::NodeStatus& node) { return node.address == address; });
    REQUIRE(added != seen.nodes.end());
    return added->node;
  }
  std::string state_of(const std::string& name) {
    const rpc::GetStatusReply seen = ask(rpc::GetStatus{});
    for (const rpc::NodeStatus& node : seen.nodes) {
      if (node.node == name) return node.state;
    }
    return "unknown";
  }
  /// Repeats the request until it gets an answer whose status is OK.
  template <typename Q>
  typename Q::Reply ask(const Q& request) {
    for (int i = 0; i < 100; ++i) {
      std::optional<Result<typename Q::Reply>> answer;
      cluster.admin().call_any(Q(request), seconds(5),
                               [&](Result<typename Q::Reply> reply) { answer.emplace(std::move(reply)); });
      REQUIRE(cluster.run_until([&] { return answer.has_value(); }, seconds(30)));
      if (*answer && (*answer)->status) return **answer;
      UNSCOPED_INFO((*answer ? (*answer)->status : answer->error()).to_string());
      cluster.scheduler().run_for(milliseconds(100));
    }
    FAIL(Q::kName << " gets no answer");
    return {};
  }

  /// Checks that, with all processes up, all replicas are in sync on their ideal nodes and every document is as
  /// acknowledged.
  void check() {
    cluster.network().heal();
    cluster.restart_everything();
    REQUIRE(cluster.run_until_steady(seconds(120)));
    run(seconds(1));
    cluster.scheduler().run_for(seconds(25));  // Waits for operations in flight to end.
    REQUIRE(cluster.run_until_steady(seconds(120)));
    CHECK(cluster.check_replicas() == "");
    CHECK(cluster.check_documents() == "");
    for (unsigned n = 0; n < kDocuments; ++n) get(n);
    std::vector<std::vector<std::uint64_t>> replicas(kDocuments);
    for (unsigned n = 0; n < kDocuments; ++n) {
      for (std::uint16_t node = 0; node < kStorageNodesMax; ++node) get_replica(n, node, &replicas[n]);
    }
    cluster.scheduler().run_for(seconds(21));
    CHECK(unanswered_ == 0);
    for (unsigned n = 0; n < kDocuments; ++n) {
      INFO(id_of(n));
      CHECK_FALSE(replicas[n].empty());
      for (const std::uint64_t version_us : replicas[n]) CHECK(version_us == replicas[n].front());
      if (!replicas[n].empty()) CHECK(replicas[n].front() >= written_[n]);
    }
    INFO(stale_example_);
    CHECK(stale_ == 0);
    CHECK(reads_ > 0);
  }

  SimCluster cluster;

 private:
  MonotonicTime now() { return cluster.scheduler().clock().now(); }
  void put(unsigned n) {
    ++unanswered_;
    client_->put_json(id_of(n), R"({"value": ")" + std::to_string(++value_) + R"("})", seconds(20),
                      [this, n, there = there_](const OperationOutcome& outcome) {
                        if (!*there) return;
                        --unanswered_;
                        if (outcome.is_ok()) written_[n] = std::max(written_[n], outcome.timestamp_us);
                      });
  }
  void get(unsigned n) {
    ++unanswered_;
    client_->get_json(id_of(n), seconds(20),
                      [this, n, least = written_[n], there = there_](const OperationOutcome& outcome) {
                        if (!*there) return;
                        --unanswered_;
                        const bool decided = outcome.is_ok() || outcome.status.code() == StatusCode::NotFound;
                        reads_ += decided ? 1 : 0;
                        if (!decided || (outcome.is_ok() && outcome.timestamp_us >= least) || least == 0) return;
                        ++stale_;
                        stale_example_ = id_of(n) + " of " + std::to_string(least) + " was read as " +
                                         outcome.status.to_string() + " " + std::to_string(outcome.timestamp_us);
                      });
  }

  /// Reads the replica of one storage node. `found` gets the version's timestamp if the node holds one.
  void get_replica(unsigned n, std::uint16_t node, std::vector<std::uint64_t>* found) {
    ++unanswered_;
    rpc::Operation read = get_json_operation(id_of(n));
    read.node = node;
    client_->execute(std::move(read), seconds(20), [this, found, there = there_](const OperationOutcome& outcome) {
      if (!*there) return;
      --unanswered_;
      if (found != nullptr && outcome.is_ok()) found->push_back(outcome.timestamp_us);
    });
  }

  Random random_;
  Operator operator_{cluster};
  AsyncClient* client_ = nullptr;
  std::string added_;
  std::vector<std::uint64_t> written_ = std::vector<std::uint64_t>(kDocuments);  ///< Newest acknowledged timestamp.
  unsigned unanswered_ = 0;
  unsigned reads_ = 0;
  unsigned stale_ = 0;
  std::string stale_example_;
  std::uint64_t value_ = 0;
  std::shared_ptr<bool> there_ = std::make_shared<bool>(true);
};

std::uint64_t draw_seed(int runs) { return static_cast<std::uint64_t>(GENERATE_REF(range(1, runs + 1))); }

}  // namespace

TEST_CASE("a third storage node comes into a cluster of two that wants three replicas, while nodes come and go",
          "[sim]") {
  const std::uint64_t seed = draw_seed(40);
  CAPTURE(seed);
  World world(shape(seed, 2, 3));
  const std::string one = "storage." + std::to_string(seed % 2);
  const std::string other = "storage." + std::to_string(1 - seed % 2);
  switch (seed / 2 % 5) {
    case 0:  // No failure.
      world.add_storage_node();
      break;
    case 1:  // One of the two is down before, and comes back after.
      world.cluster.crash(one);
      world.run(world.up_to(3000));
      world.add_storage_node();
      world.run(world.up_to(3000));
      world.cluster.restart(one);
      break;
    case 2:  // Both end while the third one joins.
      world.add_storage_node();
      world.run(world.up_to(60));
      world.cluster.crash(one);
      world.run(world.up_to(20));
      world.cluster.lose_power(other);
      world.run(seconds(5));
      world.cluster.restart(one);
      world.run(world.up_to(3000));
      break;
    case 3:  // The one that held everything ends while the third and the other are catching up.
      world.cluster.crash(one);
      world.run(seconds(3) + world.up_to(1000));
      world.add_storage_node();
      world.cluster.restart(one);
      world.run(world.up_to(2000));
      world.cluster.crash(other);
      world.run(seconds(4));
      break;
    default:  // The new one restarts repeatedly.
      world.add_storage_node();
      for (int i = 0; i < 4; ++i) {
        world.run(world.up_to(800));
        world.cluster.crash("storage.2");
        world.run(world.up_to(900));
        world.cluster.restart("storage.2");
      }
  }
  world.run(seconds(3));
  CHECK(world.operator_is_idle());
  world.check();
  CHECK_FALSE(world.cluster.sets_of("storage.2").empty());
}

TEST_CASE("a third storage node comes, the two others end, and distributors start that know of no other time",
          "[sim]") {
  const std::uint64_t seed = draw_seed(30);
  CAPTURE(seed);
  World world(shape(seed, 2, 3));
  world.add_storage_node();
  world.run(world.up_to(60));
  for (const char* node : {"storage.0", "storage.1"}) world.cluster.crash(node);
  world.run(world.up_to(seed % 2 == 0 ? 20 : 3000));
  for (const char* node : {"distributor.0", "distributor.1"}) world.cluster.crash(node);
  world.run(world.up_to(500));
  for (const char* node : {"distributor.0", "distributor.1"}) world.cluster.restart(node);
  world.run(seconds(5));
  world.cluster.restart("storage.0");
  world.run(world.up_to(3000));
  world.check();
  CHECK_FALSE(world.cluster.sets_of("storage.2").empty());
}

TEST_CASE("a storage node comes, or more replicas are wanted, while those are away that hold everything", "[sim]") {
  const std::uint64_t seed = draw_seed(12);
  CAPTURE(seed);
  const bool is_added = seed % 2 == 0;
  World world(shape(seed, 2, is_added ? 3 : 1));
  world.cluster.crash("storage.0");
  if (is_added) world.cluster.crash("storage.1");
  world.run(world.up_to(4000));
  bool refused = true;
  if (is_added) {
    world.add_storage_node(&refused);
  } else {
    world.set("cluster.redundancy=2", &refused);
  }
  world.run(seconds(4));
  CHECK_FALSE(refused);
  world.check();
  CHECK(world.cluster.sets_of(is_added ? "storage.2" : "storage.0").size() > 0);
}

TEST_CASE("nodes are retired while another one is away: none leaves with a copy that is needed", "[sim]") {
  const std::uint64_t seed = draw_seed(12);
  CAPTURE(seed);
  World world(shape(seed, 4, 3));
  const auto node = [&](std::uint64_t n) { return "storage." + std::to_string((seed + n) % 4); };
  world.cluster.crash(node(0));
  world.run(seconds(3) + world.up_to(2000));
  for (std::uint64_t n : {1U, 2U}) {
    world.change(rpc::NodeAction::Retire, node(n));
    world.run(seconds(4));
    bool refused = false;
    world.change(rpc::NodeAction::Remove, node(n), &refused);
    world.run(seconds(1));
    CHECK(refused);
    if (refused) continue;
    world.cluster.retire(node(n));  // Retires the process with its data.
  }
  world.cluster.crash(node(3));
  world.run(seconds(3));
  world.cluster.restart(node(0));
  world.run(seconds(4));  // Documents whose replicas are all down must not be reported as missing.
  world.cluster.restart(node(3));
  for (std::uint64_t n : {1U, 2U}) {
    bool refused = true;
    for (int i = 0; refused && i < 60; ++i) {
      world.change(rpc::NodeAction::Remove, node(n), &refused);
      world.run(seconds(1));
    }
    REQUIRE_FALSE(refused);
    world.cluster.retire(node(n));
  }
  world.check();
}

TEST_CASE("a storage node restarts twice while one state becomes active", "[sim]") {
  const std::uint64_t seed = draw_seed(60);
  CAPTURE(seed);
  SimClusterOptions options = shape(seed, 3 + seed % 2, 2);
  options.sync = seed % 5 == 0;  // Without sync the node loses its last writes when it ends.
  World world(options);
  const std::string node = "storage." + std::to_string(seed % 3);
  // A distributor that does not answer, or is cut off, holds the pending state back until its lease is over.
  const std::string slow = "distributor." + std::to_string(seed / 3 % 2);
  if (world.chance(0.5)) {
    world.cluster.pause(slow);
  } else {
    world.cluster.network().partition(slow, "fleetcontroller.0");
  }
  world.run(world.up_to(300));
  world.change_capacity("storage." + std::to_string((seed + 1) % 3), "3");
  for (int i = 0; i < 2; ++i) {
    world.run(world.up_to(400));
    if (world.chance(0.5)) {
      world.cluster.crash(node);
    } else {
      world.cluster.lose_power(node);
    }
    world.run(world.up_to(300));
    world.cluster.restart(node);
  }
  world.run(world.up_to(1500));
  world.cluster.resume(slow);
  world.cluster.network().heal();
  world.run(seconds(4));
  world.check();
}

TEST_CASE("nothing is copied while a node is in maintenance for long, and it catches up when it is back", "[sim]") {
  const std::uint64_t seed = draw_seed(6);
  CAPTURE(seed);
  const unsigned redundancy = 1 + static_cast<unsigned>(seed % 3);
  World world(shape(seed, 5, redundancy));
  const auto buckets_of = [&](unsigned node) {
    std::set<BucketId> buckets;
    for (const auto& [bucket, set] : world.cluster.sets_of("storage." + std::to_string(node))) buckets.insert(bucket);
    return buckets;
  };
  std::vector<std::set<BucketId>> before;
  for (unsigned node = 0; node < 5; ++node) before.push_back(buckets_of(node));
  bool refused = true;
  world.change(rpc::NodeAction::Maintenance, "storage.1", &refused);
  world.run(seconds(1));
  CHECK(refused == (redundancy == 1));
  if (!refused) world.cluster.crash("storage.1");
  world.run(seconds(40));
  for (unsigned node = 0; node < 5; ++node) {
    if (refused || node != 1) CHECK(buckets_of(node) == before[node]);
  }
  world.cluster.restart("storage.1");
  world.change(rpc::NodeAction::Up, "storage.1");
  world.run(seconds(3));
  world.check();
  for (unsigned node = 0; node < 5; ++node) CHECK(buckets_of(node) == before[node]);
}

TEST_CASE("with too few storage nodes up writes are refused with the reason, and further nodes are marked", "[sim]") {
  const std::uint64_t seed = draw_seed(4);
  CAPTURE(seed);
  World world(shape(seed, 4, 2));
  bool refused = true;
  world.set("controller.storage_up_ratio_min=0.9", &refused);
  world.run(seconds(1));
  REQUIRE_FALSE(refused);
  AsyncClient& client = world.cluster.add_client();
  for (const char* node : {"storage.0", "storage.2"}) {
    world.cluster.crash(node);
    world.run(seconds(5));
  }
  std::size_t done = 0;
  std::size_t explained = 0;
  constexpr std::size_t kPuts = 100;
  for (std::size_t n = 0; n < kPuts; ++n) {
    client.put_json(id_of(static_cast<unsigned>(n)), R"({"value": "x"})", seconds(3),
                    [&](const OperationOutcome& outcome) {
                      ++done;
                      CHECK(outcome.outcome == Outcome::NotApplied);
                      const std::string& why = outcome.status.message();
                      explained += why.find("2 of 4 are up") != std::string::npos &&
                                           why.find("controller.storage_up_ratio_min") != std::string::npos
                                       ? 1
                                       : 0;
                    });
  }
  REQUIRE(world.cluster.run_until([&] { return done == kPuts; }, seconds(10)));
  CHECK(explained == kPuts);
  world.set("controller.storage_up_ratio_min", &refused);
  world.check();
}

TEST_CASE("the fleet controller loses its records, and recovers them from nodes that come and go", "[sim]") {
  const std::uint64_t seed = draw_seed(12);
  CAPTURE(seed);
  World world(shape(seed, 4, 2));
  bool refused = true;
  world.set("storage.entries_max=100", &refused);
  world.change_capacity("storage.3", "2");  // Makes a state later than the first one.
  world.run(seconds(1) + world.up_to(2000));
  REQUIRE_FALSE(refused);
  const std::string away = "storage." + std::to_string(seed % 3);
  const std::uint64_t known = world.ask(rpc::GetStatus{}).info.state_version;

  world.cluster.crash_controller();
  world.cluster.controller_records().lose_records();
  if (seed % 2 == 0) world.cluster.crash("distributor." + std::to_string(seed / 2 % 2));
  world.run(world.up_to(4000));
  world.cluster.restart_controller();
  world.run(world.up_to(1000));

  rpc::RecoverState request{.dry_run = true, .force = false, .who = "simulation"};
  const rpc::RecoverStateReply dry = world.ask(request);
  CHECK(dry.state_version >= known);
  if (seed % 2 == 0) {
    CHECK_FALSE(dry.refusals.empty());  // The recovery is refused: the distributor that is down may know a newer state.
    request.force = true;
  } else {
    CHECK(dry.refusals.empty());
  }
  if (seed % 3 == 0) {
    world.cluster.lose_power(away);
    request.force = true;
  }
  request.dry_run = false;
  CHECK(world.ask(request).next_version > known);
  world.run(seconds(5));
  world.check();
  const rpc::GetStatusReply after = world.ask(rpc::GetStatus{});
  CHECK(after.info.state_version > known);
  CHECK(after.info.config == std::vector<std::string>{"storage.entries_max=100"});
}

TEST_CASE("a storage process that was started under another index than the cluster's serves nothing", "[sim]") {
  const std::uint64_t seed = draw_seed(6);
  CAPTURE(seed);
  World world(shape(seed, 4, 2));
  const std::string node = "storage." + std::to_string(seed % 4);
  world.cluster.crash(node);
  world.run(seconds(8));  // The crashed node's replicas are rebuilt on other nodes.
  rpc::ChangeNodes removal;
  removal.action = rpc::NodeAction::Remove;
  removal.nodes = {node};
  removal.force = true;
  removal.who = "simulation";
  REQUIRE(world.ask(removal).refusals.empty());
  const std::string added = world.add_address(node + ":1");
  CHECK(added == "storage.4");
  world.cluster.restart(node);
  world.run(seconds(5));
  CHECK(world.state_of(added) != "up");
  removal.nodes = {added};
  REQUIRE(world.ask(removal).refusals.empty());
  world.cluster.retire(node);
  world.check();
}

}  // namespace fjord::sim
