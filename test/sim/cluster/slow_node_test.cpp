#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fjord/common/log.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {
namespace {

constexpr unsigned kDocuments = 60;
constexpr const char* kSlow = "storage.1";
/// Duration of one operation on the slow disk; a sync takes ten times as long. Other disks take no time.
constexpr Duration kDiskTakes = milliseconds(5);

std::string id_of(unsigned n) { return "id:n:item::" + std::to_string(n); }

/// Reads and writes all the time while the disk of one storage node is slow, and records the durations of reads.
struct SlowNodeWorld {
  explicit SlowNodeWorld(std::uint64_t seed) : cluster(shape(seed)) {
    log::set_level(log::Level::Off);
    cluster.start();
    client = &cluster.add_client();
    for (unsigned n = 0; n < kDocuments; ++n) put(n);
    run(seconds(2));
    (void)take_reads();
  }
  ~SlowNodeWorld() { *stopped = true; }

  static SimClusterOptions shape(std::uint64_t seed) {
    SimClusterOptions options;
    options.seed = seed;
    options.storage_nodes = 4;
    options.redundancy = 3;
    options.sync = true;
    options.schemas = {"document item { field value type string { header } }"};
    return options;
  }
  void put(unsigned n) {
    client->put_json(id_of(n), R"({"value": ")" + std::to_string(++value) + R"("})", seconds(20),
                     [](OperationOutcome) {});
  }
  void get(unsigned n) {
    const MonotonicTime start = cluster.scheduler().clock().now();
    client->get_json(id_of(n), seconds(20),
                     [this, start, there = std::weak_ptr<bool>(stopped)](OperationOutcome outcome) {
                       if (there.expired()) return;
                       if (!outcome.is_ok()) ++failed;
                       reads_us.push_back((cluster.scheduler().clock().now() - start).count());
                     });
  }
  /// Sends a read each 5 ms, and a write of another document each 50 ms: a client runs the operations on one document
  /// one after the other.
  void run(Duration duration) {
    const MonotonicTime end = cluster.scheduler().clock().now() + duration;
    while (cluster.scheduler().clock().now() < end) {
      get(next_read++ % kDocuments);
      if (next_read % 10 == 0) put(kDocuments + next_write++ % kDocuments);
      cluster.scheduler().run_for(milliseconds(5));
    }
  }
  std::vector<std::int64_t> take_reads() { return std::exchange(reads_us, {}); }
  std::string mark() {
    std::string slow;
    bool answered = false;
    client->call_any(rpc::GetStatus{}, seconds(5), [&](Result<rpc::GetStatusReply> reply) {
      answered = true;
      if (!reply) return;
      for (const rpc::NodeStatus& node : reply->nodes) {
        if (!node.slow.empty()) slow += node.node + " ";
      }
    });
    cluster.run_until([&] { return answered; }, seconds(10));
    return slow;
  }
  /// Returns the seconds until mark() equals `marks`; -1 if that takes longer than `limit`.
  double marked_after(const std::string& marks, Duration limit) {
    const MonotonicTime start = cluster.scheduler().clock().now();
    while (cluster.scheduler().clock().now() - start < limit) {
      if (mark() == marks) return static_cast<double>((cluster.scheduler().clock().now() - start).count()) / 1e6;
      run(milliseconds(100));
    }
    return -1;
  }

  SimCluster cluster;
  AsyncClient* client = nullptr;
  std::vector<std::int64_t> reads_us;
  unsigned failed = 0;
  unsigned next_read = 0;
  unsigned next_write = 0;
  std::uint64_t value = 0;
  std::uint64_t disk_operations = 0;
  std::shared_ptr<bool> stopped = std::make_shared<bool>(false);
};

std::int64_t p99(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() * 99 / 100);
}

}  // namespace

TEST_CASE("a storage node with a slow disk is noticed within five seconds, not read, and comes back by itself",
          "[sim]") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(1, 9)));
  CAPTURE(seed);
  SlowNodeWorld world(seed);
  world.run(seconds(5));
  const std::int64_t before = p99(world.take_reads());
  REQUIRE(world.mark().empty());

  world.cluster.slow_disk(kSlow, kDiskTakes, &world.disk_operations);
  const double noticed = world.marked_after(std::string(kSlow) + " ", seconds(20));
  CAPTURE(noticed);
  CHECK(noticed > 0);
  CHECK(noticed < 5);
  world.run(seconds(1));  // Waits for operations in flight to end.
  (void)world.take_reads();
  world.run(seconds(20));
  CHECK(world.disk_operations > 0);
  const std::int64_t avoiding = p99(world.take_reads());
  WARN("seed " << seed << ": noticed after " << noticed << " s, p99 of reads " << before << " us before, " << avoiding
               << " us while it is slow");
  CHECK(avoiding <= 2 * before);
  CHECK(world.mark() == std::string(kSlow) + " ");

  world.cluster.slow_disk(kSlow, Duration(0), nullptr);
  // Reads come back after some seconds. Operators are told when the node was well for half a minute.
  const double restored = world.marked_after("", seconds(150));
  CAPTURE(restored);
  CHECK(restored > 30);
  CHECK(restored < 90);
  CHECK(world.cluster.run_until_steady(seconds(60)));
  CHECK(world.failed == 0);
}

}  // namespace fjord::sim
