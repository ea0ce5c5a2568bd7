// Storage nodes that come back without their files. Each case runs with several seeds.

#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "fjord/client/operations.h"
#include "fjord/common/log.h"
#include "fjord/sim/sim_cluster.h"
#include "operator.h"

namespace fjord::sim {
namespace {

constexpr unsigned kDocuments = 40;
constexpr int kSeeds = 10;

std::string id_of(unsigned n) { return "id:n:item::" + std::to_string(n); }

SimClusterOptions shape(std::uint64_t seed, unsigned storage_nodes) {
  SimClusterOptions options;
  options.seed = seed;
  options.storage_nodes = storage_nodes;
  options.redundancy = 2;
  options.sync = true;
  options.power_loss = true;
  options.schemas = {"document item { field value type string { header } }"};
  return options;
}

/// A cluster with documents, and a client that waits for each outcome.
class World {
 public:
  explicit World(const SimClusterOptions& options) : cluster(options) {
    log::set_level(log::Level::Off);
    cluster.start();
    client_ = &cluster.add_client();
    for (unsigned n = 0; n < kDocuments; ++n) REQUIRE(put(n).is_ok());
    REQUIRE(cluster.run_until_steady(seconds(60)));
  }

  OperationOutcome put(unsigned n) {
    std::optional<OperationOutcome> outcome;
    client_->put_json(id_of(n), R"({"value": ")" + std::to_string(++value_) + R"("})", seconds(10),
                      [&](const OperationOutcome& ended) { outcome = ended; });
    REQUIRE(cluster.run_until([&] { return outcome.has_value(); }, seconds(20)));
    return *outcome;
  }
  OperationOutcome get(unsigned n) {
    std::optional<OperationOutcome> outcome;
    client_->get_json(id_of(n), seconds(5), [&](const OperationOutcome& ended) { outcome = ended; });
    REQUIRE(cluster.run_until([&] { return outcome.has_value(); }, seconds(10)));
    return *outcome;
  }
  void run(Duration duration) { cluster.scheduler().run_for(duration); }
  unsigned count(StatusCode code) {
    unsigned found = 0;
    for (unsigned n = 0; n < kDocuments; ++n) found += get(n).status.code() == code ? 1 : 0;
    return found;
  }
  rpc::GetStatusReply status() {
    for (int i = 0; i < 100; ++i) {
      std::optional<Result<rpc::GetStatusReply>> answer;
      cluster.admin().call_any(rpc::GetStatus{}, seconds(5),
                               [&](Result<rpc::GetStatusReply> reply) { answer.emplace(std::move(reply)); });
      REQUIRE(cluster.run_until([&] { return answer.has_value(); }, seconds(30)));
      if (*answer && (*answer)->status) return **answer;
      run(milliseconds(100));
    }
    FAIL("no status");
    return {};
  }
  std::string reason_of(const std::string& name) {
    for (const rpc::NodeStatus& node : status().nodes) {
      if (node.node == name) return node.reason;
    }
    return "unknown";
  }
  std::uint64_t unavailable() {
    std::uint64_t sum = 0;
    for (const rpc::NodeStatus& node : status().nodes) sum += node.last.buckets_unavailable;
    return sum;
  }
  void accept_loss(const std::string& name) {
    rpc::ChangeNodes request;
    request.action = rpc::NodeAction::AcceptLoss;
    request.nodes = {name};
    operator_.change_nodes(std::move(request), [](const rpc::ChangeNodesReply& reply) {
      INFO(reply.status.to_string());
      CHECK(reply.status);
    });
    REQUIRE(cluster.run_until([&] { return operator_.is_idle(); }, seconds(30)));
  }

  SimCluster cluster;

 private:
  Operator operator_{cluster};
  AsyncClient* client_ = nullptr;
  std::uint64_t value_ = 0;
};

std::uint64_t draw_seed() { return static_cast<std::uint64_t>(GENERATE(range(1, kSeeds + 1))); }

}  // namespace

TEST_CASE("lost folder: nothing is NOT_FOUND when both nodes come back empty, until an operator accepts it", "[sim]") {
  const std::uint64_t seed = draw_seed();
  CAPTURE(seed);
  World world(shape(seed, 2));
  world.cluster.wipe("storage.0");
  world.cluster.wipe("storage.1");
  if (seed % 2 == 0) world.run(seconds(5));
  world.cluster.restart("storage.0");
  world.cluster.restart("storage.1");
  world.run(seconds(8));
  CHECK(world.count(StatusCode::NotFound) == 0);
  CHECK_FALSE(world.put(0).is_ok());
  CHECK(world.unavailable() > 0);
  CHECK(world.reason_of("storage.0").find("came back without its data") == 0);
  CHECK(world.reason_of("storage.1").find("came back without its data") == 0);

  world.accept_loss("storage.0");
  world.accept_loss("storage.1");
  world.run(seconds(8));
  CHECK(world.reason_of("storage.0").empty());
  CHECK(world.count(StatusCode::NotFound) == kDocuments);
  for (unsigned n = 0; n < kDocuments; ++n) CHECK(world.put(n).is_ok());
  CHECK(world.cluster.run_until_steady(seconds(60)));
}

TEST_CASE("lost folder: one empty node of several is named, blocks nothing, and is filled", "[sim]") {
  const std::uint64_t seed = draw_seed();
  CAPTURE(seed);
  World world(shape(seed, seed % 2 == 0 ? 2 : 4));
  world.cluster.wipe("storage.1");
  if (seed % 3 == 0) {
    // All of them start again at once.
    for (const char* name : {"storage.0", "distributor.0", "distributor.1", "fleetcontroller.0"}) {
      world.cluster.crash(name);
      world.cluster.restart(name);
    }
  } else {
    world.run(seconds(5));
  }
  world.cluster.restart("storage.1");
  bool is_named = false;
  CHECK(world.cluster.run_until_steady(seconds(120)));
  for (unsigned n = 0; n < kDocuments; ++n) CHECK(world.get(n).is_ok());
  is_named = !world.reason_of("storage.1").empty();
  if (is_named) world.run(seconds(5));
  CHECK(world.reason_of("storage.1").empty());
  CHECK(world.cluster.check_replicas() == "");

  // The other one may be lost now.
  world.cluster.wipe("storage.0");
  world.run(seconds(5));
  world.cluster.restart("storage.0");
  CHECK(world.cluster.run_until_steady(seconds(120)));
  for (unsigned n = 0; n < kDocuments; ++n) CHECK(world.get(n).is_ok());
}

TEST_CASE("lost folder: what only the empty node had taken is unavailable and not an older version", "[sim]") {
  const std::uint64_t seed = draw_seed();
  CAPTURE(seed);
  World world(shape(seed, 2));
  world.cluster.crash("storage.0");
  world.run(seconds(5));
  std::vector<std::uint64_t> written(kDocuments);
  for (unsigned n = 0; n < kDocuments; ++n) {
    const OperationOutcome outcome = world.put(n);
    if (outcome.is_ok()) written[n] = outcome.timestamp_us;
  }
  world.cluster.wipe("storage.1");
  world.run(milliseconds(static_cast<std::int64_t>(seed) * 400));
  world.cluster.restart(seed % 2 == 0 ? "storage.0" : "storage.1");
  world.run(milliseconds(static_cast<std::int64_t>(seed) * 300));
  world.cluster.restart("storage.0");
  world.cluster.restart("storage.1");
  world.run(seconds(8));
  for (unsigned n = 0; n < kDocuments; ++n) {
    INFO(n);
    const OperationOutcome outcome = world.get(n);
    CHECK(outcome.status.code() != StatusCode::NotFound);
    if (outcome.is_ok()) CHECK(outcome.timestamp_us >= written[n]);
  }
}

TEST_CASE("lost folder: a node that came back with its own folder again has lost nothing", "[sim]") {
  const std::uint64_t seed = draw_seed();
  CAPTURE(seed);
  World world(shape(seed, 2));
  world.cluster.crash("storage.1");
  world.run(milliseconds(static_cast<std::int64_t>(seed) * 500));
  world.cluster.restart("storage.1");
  CHECK(world.cluster.run_until_steady(seconds(60)));
  CHECK(world.reason_of("storage.1").empty());
}

}  // namespace fjord::sim
