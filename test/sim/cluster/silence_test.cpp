// A storage node dies and others do not answer for a while: how long documents are not served, and that none is old.

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
/// The bound of the outage after a silent node answers again (docs/design/0001, "A member that was silent").
constexpr Duration kServedAfter = seconds(2);

std::string id_of(unsigned n) { return "id:n:item::" + std::to_string(n); }

/// Writes all documents all the time, and remembers the newest acknowledged version of each.
class World {
 public:
  explicit World(std::uint64_t seed, unsigned storage_nodes = 3, unsigned distributors = 2)
      : cluster(shape(seed, storage_nodes, distributors)), random_(mix64(seed, 29)) {
    log::set_level(log::Level::Off);
    cluster.start();
    client_ = &cluster.add_client();
    for (unsigned n = 0; n < kDocuments; ++n) put(n);
    REQUIRE(cluster.run_until([&] { return unanswered_ == 0; }, seconds(30)));
    REQUIRE(std::count(written_.begin(), written_.end(), 0U) == 0);
    REQUIRE(cluster.run_until_steady(seconds(60)));
  }
  ~World() { *there_ = false; }

  void run(Duration duration) {
    const MonotonicTime end = now() + duration;
    while (now() < end) {
      put(static_cast<unsigned>(random_.below(kDocuments)));
      cluster.scheduler().run_for(milliseconds(20));
    }
  }
  Duration between(std::int64_t least_ms, std::int64_t most_ms) {
    return milliseconds(least_ms +
                        static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(most_ms - least_ms + 1))));
  }
  /// What a read of all documents gave.
  struct Answers {
    unsigned unserved = 0;           ///< Not served within the limit.
    std::vector<std::string> wrong;  ///< Not found, or older than an acknowledged write.
  };
  Answers read(Duration limit) {
    Answers answers;
    unsigned left = kDocuments;
    AsyncClient& reader = cluster.add_client();
    for (unsigned n = 0; n < kDocuments; ++n) {
      reader.get_json(id_of(n), limit, [&, n, least = written_[n], there = there_](const OperationOutcome& outcome) {
        if (!*there) return;
        --left;
        answers.unserved += outcome.is_ok() ? 0 : 1;
        const bool is_old = outcome.is_ok() && outcome.timestamp_us < least;
        if (is_old || outcome.status.code() == StatusCode::NotFound) {
          answers.wrong.push_back(id_of(n) + (is_old ? " is old" : " is not found"));
        }
      });
    }
    REQUIRE(cluster.run_until([&] { return left == 0; }, limit + seconds(30)));
    return answers;
  }
  void check_served(Duration limit) {
    const Answers answers = read(limit);
    CHECK(answers.unserved == 0);
    CHECK(answers.wrong.empty());
  }
  void end() {
    cluster.restart_everything();
    REQUIRE(cluster.run_until_steady(seconds(120)));
    check_served(seconds(20));
    CHECK(cluster.check_replicas() == "");
  }

  SimCluster cluster;

 private:
  static SimClusterOptions shape(std::uint64_t seed, unsigned storage_nodes, unsigned distributors) {
    SimClusterOptions options;
    options.seed = seed;
    options.storage_nodes = storage_nodes;
    options.distributors = distributors;
    options.redundancy = 2;
    options.schemas = {"document item { field value type string { header } }"};
    return options;
  }
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

  Random random_;
  AsyncClient* client_ = nullptr;
  std::vector<std::uint64_t> written_ = std::vector<std::uint64_t>(kDocuments);  ///< Newest acknowledged timestamp.
  unsigned unanswered_ = 0;
  std::uint64_t value_ = 0;
  std::shared_ptr<bool> there_ = std::make_shared<bool>(true);
};

std::uint64_t draw_seed(int runs) { return static_cast<std::uint64_t>(GENERATE_REF(range(1, runs + 1))); }

}  // namespace

TEST_CASE("a storage node that was silent beside a dead one serves again within the bound", "[sim]") {
  const std::uint64_t seed = draw_seed(20);
  CAPTURE(seed);
  World world(seed, seed % 2 == 0 ? 3 : 4);
  world.cluster.crash("storage.1");
  world.run(world.between(0, 3000));
  world.cluster.pause("storage.0");
  world.run(world.between(1900, 5000));
  world.cluster.resume("storage.0");
  world.check_served(kServedAfter);
  SECTION("once") {}
  SECTION("and silent again before all is settled") {
    world.cluster.pause("storage.0");
    world.run(world.between(1900, 3000));
    world.cluster.resume("storage.0");
    world.run(world.between(0, 300));
    world.cluster.pause("storage.0");
    world.run(world.between(1900, 3000));
    world.cluster.resume("storage.0");
    world.check_served(kServedAfter);
  }
  world.end();
}

TEST_CASE("all storage nodes are silent while one of them dies: the others serve again within the bound", "[sim]") {
  const std::uint64_t seed = draw_seed(20);
  CAPTURE(seed);
  World world(seed);
  for (const char* name : {"storage.0", "storage.1", "storage.2"}) world.cluster.pause(name);
  if (seed % 3 == 1) world.cluster.pause("distributor.0");
  world.run(world.between(0, 1500));
  world.cluster.crash("storage.1");
  world.run(world.between(2500, 4000));
  if (seed % 3 == 1) world.cluster.resume("distributor.0");
  world.cluster.resume("storage.0");
  world.run(world.between(0, seed % 2 == 0 ? 1000 : 0));
  world.cluster.resume("storage.2");
  world.check_served(kServedAfter);
  world.end();
}

TEST_CASE("a storage node that was silent while another went on alone does not serve what it missed", "[sim]") {
  const std::uint64_t seed = draw_seed(20);
  CAPTURE(seed);
  World world(seed, seed % 2 == 0 ? 3 : 4);
  world.cluster.pause("storage.0");
  world.run(world.between(1500, 6000));
  world.cluster.crash("storage.1");
  world.run(world.between(0, 3000));
  world.cluster.resume("storage.0");
  world.run(world.between(0, 1000));
  CHECK(world.read(seconds(5)).wrong == std::vector<std::string>{});
  world.end();
}

TEST_CASE("a storage node that has restarted beside a dead one serves nothing old", "[sim]") {
  const std::uint64_t seed = draw_seed(20);
  CAPTURE(seed);
  World world(seed);
  world.cluster.crash("storage.1");
  world.run(world.between(500, 3000));
  world.cluster.crash("storage.0");
  world.run(world.between(0, 3000));
  world.cluster.restart("storage.0");
  CHECK(world.read(seconds(5)).wrong == std::vector<std::string>{});
  world.end();
}

}  // namespace fjord::sim
