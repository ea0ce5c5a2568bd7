// A process that ends in an orderly way, as against one that crashes: what the fleet controller makes of it.

#include <catch2/catch.hpp>
#include <string>

#include "fjord/common/log.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {
namespace {

struct World {
  explicit World(std::uint64_t seed) : cluster(shape(seed)) {
    log::set_level(log::Level::Off);
    cluster.start();
    client = &cluster.add_client();
    // The second crash takes a node out.
    rpc::ChangeConfig change;
    change.set = {"controller.crashes_max=1"};
    bool is_set = false;
    client->call_any(std::move(change), seconds(5),
                     [&](Result<rpc::ChangeConfigReply> reply) { is_set = reply && reply->status; });
    REQUIRE(cluster.run_until([&] { return is_set; }, seconds(10)));
  }

  static SimClusterOptions shape(std::uint64_t seed) {
    SimClusterOptions options;
    options.seed = seed;
    options.storage_nodes = 3;
    options.distributors = 2;
    options.redundancy = 2;
    options.schemas = {"document item { field value type string { header } }"};
    return options;
  }

  rpc::NodeStatus status(const std::string& name) {
    rpc::NodeStatus found;
    bool answered = false;
    client->call_any(rpc::GetStatus{}, seconds(5), [&](Result<rpc::GetStatusReply> reply) {
      answered = true;
      if (!reply) return;
      for (const rpc::NodeStatus& node : reply->nodes) {
        if (node.node == name) found = node;
      }
    });
    cluster.run_until([&] { return answered; }, seconds(10));
    return found;
  }
  bool run_until_state(const std::string& name, const std::string& state, Duration limit) {
    const MonotonicTime end = cluster.scheduler().clock().now() + limit;
    while (cluster.scheduler().clock().now() < end) {
      if (status(name).state == state) return true;
      cluster.scheduler().run_for(milliseconds(100));
    }
    return false;
  }

  SimCluster cluster;
  AsyncClient* client = nullptr;
};

}  // namespace

TEST_CASE("a process that says that it stops is out of the cluster at once, and has not crashed", "[sim]") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(1, 6)));
  const std::string name = GENERATE(as<std::string>(), "storage.1", "distributor.1");
  CAPTURE(seed, name);
  World world(seed);
  for (int i = 0; i < 4; ++i) {
    CAPTURE(i);
    world.cluster.stop(name);
    // It goes on serving until the state that is in force counts on it no more.
    REQUIRE(world.cluster.run_until([&] { return !world.cluster.alive(name); }, seconds(2)));
    rpc::NodeStatus status = world.status(name);
    CHECK(status.state == (name == "storage.1" ? "maintenance" : "down"));  // A restart moves no data.
    CHECK((status.reason == "is being stopped" || status.reason == "was stopped"));
    world.cluster.scheduler().run_for(seconds(3));
    CHECK(world.status(name).reason == "was stopped");
    world.cluster.restart(name);
    REQUIRE(world.run_until_state(name, "up", seconds(10)));
  }
  CHECK(world.cluster.run_until_steady(seconds(60)));
}

TEST_CASE("a process that crashes as often is taken out", "[sim]") {
  const std::string name = GENERATE(as<std::string>(), "storage.1", "distributor.1");
  CAPTURE(name);
  World world(1);
  for (int i = 0; i < 2; ++i) {
    world.cluster.crash(name);
    REQUIRE(world.run_until_state(name, "down", seconds(10)));
    world.cluster.restart(name);
    world.cluster.scheduler().run_for(seconds(5));
  }
  CHECK(world.status(name).state == "down");
  CHECK(world.status(name).reason.find("crashed 2 times") != std::string::npos);
}

TEST_CASE("a process that stops while no controller is there ends within a second, too", "[sim]") {
  World world(3);
  world.cluster.crash_controller(0);
  world.cluster.stop("storage.1");
  CHECK(world.cluster.run_until([&] { return !world.cluster.alive("storage.1"); }, milliseconds(1100)));
}

}  // namespace fjord::sim
