// Visits and subscriptions of the library on a simulated cluster: storage nodes crash, messages are lost, documents are
// written meanwhile, and the program stops and resumes with the cursor again and again.

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "fjord/common/log.h"
#include "fjord/library/detail/client_core.h"
#include "fjord/library/subscription.h"
#include "fjord/library/visit.h"
#include "fjord/sim/sim_clock.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {
namespace {

constexpr unsigned kDocuments = 200;
constexpr unsigned kSeeds = 40;
/// Longest simulated time that one call of the library may take. Calls normally take far less.
constexpr Duration kCallLimit = seconds(300);

std::string id_of(unsigned n) { return "id:n:item::" + std::to_string(n); }

/// A process that uses the library, beside the cluster.
class LibraryProcess {
 public:
  explicit LibraryProcess(SimCluster& cluster)
      : cluster_(cluster),
        scheduler_(cluster.scheduler().make_node_scheduler("library")),
        random_(cluster.random().next()),
        transport_(cluster.network().transport_for("library")),
        executor_(scheduler_->make_executor("client")),
        core_({cluster.add_client(), *transport_, cluster.scheduler().clock(), *executor_, random_,
               [this](const std::function<bool()>& is_done) { REQUIRE(cluster_.run_until(is_done, kCallLimit)); }},
              {}) {}

  ClientCore& core() { return core_; }

 private:
  SimCluster& cluster_;
  std::unique_ptr<SimNodeScheduler> scheduler_;
  Random random_;
  std::unique_ptr<rpc::Transport> transport_;
  std::unique_ptr<Executor> executor_;
  ClientCore core_;
};

SimClusterOptions shape(std::uint64_t seed) {
  SimClusterOptions options;
  options.seed = seed;
  options.storage_nodes = 4;
  options.distributors = 2;
  options.redundancy = 3;
  options.schemas = {"document item { field value type long { header } }"};
  return options;
}

/// A cluster with documents, and faults that the seed draws.
struct World {
  explicit World(std::uint64_t seed) : cluster(shape(seed)), random(seed) {
    log::set_level(log::Level::Off);
    cluster.start();
    writer = &cluster.add_client();
    for (unsigned n = 0; n < kDocuments; ++n) put(n);
    settle();
  }

  void put(unsigned n) {
    ++under_way;
    const std::int64_t value = ++values;
    writer->put_json(id_of(n), R"({"value": )" + std::to_string(value) + "}", seconds(60),
                     [this, n, value](OperationOutcome outcome) {
                       --under_way;
                       REQUIRE(outcome.is_ok());
                       live[id_of(n)] = value;
                     });
  }
  void remove(unsigned n) {
    ++under_way;
    writer->remove(id_of(n), seconds(60), [this, n](OperationOutcome outcome) {
      --under_way;
      REQUIRE(outcome.is_ok());
      live.erase(id_of(n));
    });
  }
  /// Waits until all writes have ended, so that at most one write of each document is in flight.
  void settle() {
    REQUIRE(cluster.run_until([this] { return under_way == 0; }, seconds(120)));
  }
  /// Crashes a storage node for a while, or loses and duplicates messages for a while.
  void disturb() {
    if (random.chance(0.5)) {
      const auto node = static_cast<unsigned>(random.below(4));
      cluster.crash_storage(node);
      const auto pause = milliseconds(100 + static_cast<std::int64_t>(random.below(3000)));
      cluster.scheduler().outside().post_after(pause, [this, node] { cluster.restart_storage(node); });
    } else {
      NetworkFaults faults;
      faults.lose = 0.02;
      faults.duplicate = 0.05;
      cluster.network().set_faults(faults);
      cluster.scheduler().outside().post_after(milliseconds(500), [this] { cluster.network().set_faults({}); });
    }
  }

  SimCluster cluster;
  Random random;
  AsyncClient* writer = nullptr;
  std::map<std::string, std::int64_t> live;
  std::int64_t values = 0;
  int under_way = 0;
};

}  // namespace

TEST_CASE("library: a visit that is stopped and resumed through faults gives each document once") {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    LibraryProcess process(world.cluster);
    VisitOptions options;
    options.slices = seed % 3 == 0 ? 3 : 1;
    options.snapshot = seed % 4 == 0;
    options.buffer_bytes = 500;
    options.priority = ClientPriority::Normal;
    std::map<std::string, int> given;
    int runs = 0;
    for (bool is_over = false; !is_over; ++runs) {
      Visit visit(process.core(), options);
      for (unsigned n = 0; n < 3; ++n) world.put(static_cast<unsigned>(world.random.below(kDocuments)));
      if (world.random.chance(0.3)) world.disturb();
      std::uint64_t left = 1 + world.random.below(40);
      const Document* document = nullptr;
      while (left-- > 0 && (document = visit.next()) != nullptr) ++given[document->id().str()];
      is_over = document == nullptr;
      INFO(visit.status().to_string());
      REQUIRE(visit.status().is_ok());
      options.resume = visit.cursor();
      world.settle();
    }
    CHECK(runs > 4);
    CHECK(given.size() == kDocuments);
    for (const auto& [id, times] : given) CHECK(times == 1);
  }
}

TEST_CASE("library: a copy that follows a subscription through stops and faults equals the documents") {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    LibraryProcess process(world.cluster);
    SubscribeOptions options;
    options.buffer_bytes = 500;
    options.poll_interval = milliseconds(100);
    std::map<std::string, std::int64_t> copy;
    constexpr int kRuns = 8;
    for (int run = 0; run <= kRuns; ++run) {
      // The last run has no faults and follows until it has caught up after the last write.
      const bool is_last = run == kRuns;
      if (is_last) {
        world.settle();
        REQUIRE(world.cluster.run_until_steady(seconds(300)));
      }
      Subscription changes(process.core(), options);
      if (!is_last) {
        for (unsigned n = 0; n < 5; ++n) {
          const auto number = static_cast<unsigned>(world.random.below(kDocuments));
          world.settle();
          world.random.chance(0.3) ? world.remove(number) : world.put(number);
        }
        if (world.random.chance(0.5)) world.disturb();
      }
      std::uint64_t left = is_last ? SIZE_MAX : 1 + world.random.below(100);
      while (left-- > 0) {
        const Change* change = changes.next();
        INFO(changes.status().to_string());
        REQUIRE(change != nullptr);
        REQUIRE(change->kind != Change::Kind::Resync);
        if (change->kind == Change::Kind::Put) copy[change->id] = *change->document->integer("value");
        if (change->kind == Change::Kind::Remove) copy.erase(change->id);
        if (is_last && change->kind == Change::Kind::CaughtUp) break;
      }
      options.resume = changes.cursor();
    }
    CHECK(copy == world.live);
  }
}

}  // namespace fjord::sim
