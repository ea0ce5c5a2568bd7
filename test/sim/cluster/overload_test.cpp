#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "fjord/common/log.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {
namespace {

constexpr unsigned kDocuments = 200;
/// Duration of each disk operation, in virtual time; it limits the cluster's capacity.
constexpr Duration kDiskTakes = milliseconds(10);
constexpr Duration kTimeout = seconds(2);
constexpr std::size_t kInFlight = 64;

std::string id_of(std::uint64_t n) { return "id:n:item::" + std::to_string(n % kDocuments); }

/// A cluster with slow disks, and clients that read. Each client keeps to its own window; many together send more than
/// the distributors accept.
struct OverloadWorld {
  OverloadWorld(std::uint64_t seed, int client_count) : cluster(shape(seed)) {
    log::set_level(log::Level::Off);
    cluster.start();
    for (int i = 0; i < client_count; ++i) clients.push_back(&cluster.add_client());
    unsigned stored = 0;
    const std::string text(400, 'x');
    for (unsigned n = 0; n < kDocuments; ++n) {
      clients[0]->put_json(id_of(n), R"({"value": ")" + text + R"("})", seconds(20),
                           [&](OperationOutcome outcome) { stored += outcome.is_ok() ? 1 : 0; });
    }
    REQUIRE(cluster.run_until([&] { return stored == kDocuments; }, seconds(30)));
    for (unsigned i = 0; i < 3; ++i) {
      cluster.slow_disk("storage." + std::to_string(i), kDiskTakes, &disk_operations);
    }
  }
  ~OverloadWorld() { there.reset(); }

  static SimClusterOptions shape(std::uint64_t seed) {
    SimClusterOptions options;
    options.seed = seed;
    options.storage_nodes = 3;
    options.schemas = {"document item { field value type string { header } }"};
    return options;
  }
  void get() {
    ++pending;
    clients[next % clients.size()]->get(id_of(next), kTimeout, [this, alive = std::weak_ptr(there)](auto outcome) {
      if (alive.expired()) return;
      --pending;
      ++(outcome.is_ok() ? applied : outcome.status.code() == StatusCode::Busy ? busy : other);
    });
    ++next;
  }
  /// Keeps `kInFlight` reads in flight; returns the number of reads answered per second.
  double closed_loop(int seconds_long) {
    const std::uint64_t before = applied;
    for (int ms = 0; ms < seconds_long * 1000; ++ms) {
      while (pending < kInFlight) get();
      cluster.scheduler().run_for(milliseconds(1));
    }
    return static_cast<double>(applied - before) / seconds_long;
  }
  double open_loop(double rate, int seconds_long) {
    const std::uint64_t before = applied;
    double owed = 0;
    for (int ms = 0; ms < seconds_long * 1000; ++ms) {
      for (owed += rate / 1000; owed >= 1; --owed) get();
      cluster.scheduler().run_for(milliseconds(1));
    }
    return static_cast<double>(applied - before) / seconds_long;
  }
  std::string down() {
    std::string names = "no answer";
    bool answered = false;
    clients[0]->call_any(rpc::GetStatus{}, seconds(20), [&](Result<rpc::GetStatusReply> reply) {
      answered = true;
      if (!reply) return;
      names.clear();
      for (const rpc::NodeStatus& node : reply->nodes) {
        if (node.state != "up") names += node.node + " ";
      }
    });
    cluster.run_until([&] { return answered; }, seconds(30));
    return names;
  }

  SimCluster cluster;
  std::vector<AsyncClient*> clients;
  std::uint64_t next = 0;
  std::uint64_t applied = 0;
  std::uint64_t busy = 0;
  std::uint64_t other = 0;
  std::uint64_t disk_operations = 0;
  std::size_t pending = 0;
  std::shared_ptr<bool> there = std::make_shared<bool>(true);
};

}  // namespace

TEST_CASE("ten times more reads than the disks can do: nobody is taken down, and afterwards all is as before",
          "[sim]") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(1, 2, 3));
  const int clients = GENERATE(2, 12);
  CAPTURE(seed, clients);
  OverloadWorld world(seed, clients);
  (void)world.closed_loop(2);
  const double before = world.closed_loop(5);
  REQUIRE(world.disk_operations > 0);
  const double during = world.open_loop(10 * before, 8);
  const std::string down = world.down();
  // The throughput may recover late: at first the queues may still hold reads whose deadline has passed.
  int recovered_after = -1;
  double after = 0;
  for (int second = 1; second <= 30 && recovered_after < 0; ++second) {
    after = world.closed_loop(1);
    if (after >= 0.9 * before) recovered_after = second;
  }
  WARN("seed " << seed << ", " << clients << " clients: " << before << " reads a second before, " << during
               << " during, " << after << " after, recovered within " << recovered_after << " s; " << world.busy
               << " BUSY, " << world.other << " ended otherwise");
  CHECK(down.empty());
  CHECK(during > 0.2 * before);
  CHECK(recovered_after > 0);
  CHECK(recovered_after <= 30);
}

}  // namespace fjord::sim
