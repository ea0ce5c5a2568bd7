#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fjord/common/log.h"
#include "fjord/library/detail/client_core.h"
#include "fjord/sim/sim_clock.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {

constexpr unsigned kDocuments = 200;
constexpr unsigned kSeeds = 40;
/// Longest simulated time that one call of the library may take. Calls normally take far less.
constexpr Duration kCallLimit = seconds(300);

inline std::string id_of(unsigned n) { return "id:n:item::" + std::to_string(n); }

/// A process outside of the cluster that uses the library.
class LibraryProcess {
 public:
  explicit LibraryProcess(SimCluster& cluster)
      : cluster_(cluster),
        scheduler_(cluster.scheduler().make_node_scheduler("library")),
        random_(cluster.random().next()),
        transport_(cluster.network().transport_for("library")),
        executor_(scheduler_->make_executor("client")),
        client_(std::make_unique<ClientCore>(
            ClientSeams{
                cluster.add_client(), *transport_, cluster.scheduler().clock(), *executor_, random_,
                [this](const std::function<bool()>& is_done) { REQUIRE(cluster_.run_until(is_done, kCallLimit)); }},
            ClientSettings{})) {}

  Client& client() { return client_; }
  ClientCore& core() { return client_.core(); }
  /// Runs the world until the operation has ended.
  template <typename T>
  T wait(Pending<T> pending) {
    REQUIRE(cluster_.run_until([&] { return pending.is_ready(); }, kCallLimit));
    return std::move(pending).wait();
  }

 private:
  SimCluster& cluster_;
  std::unique_ptr<SimNodeScheduler> scheduler_;
  Random random_;
  std::unique_ptr<rpc::Transport> transport_;
  std::unique_ptr<Executor> executor_;
  Client client_;
};

inline SimClusterOptions shape(std::uint64_t seed) {
  SimClusterOptions options;
  options.seed = seed;
  options.storage_nodes = 4;
  options.distributors = 2;
  options.redundancy = 3;
  options.schemas = {"document item { field value type long { header } field count type long { header } }"};
  return options;
}

/// A cluster with documents, and faults that the seed draws.
struct World {
  explicit World(std::uint64_t seed) : World(shape(seed)) {}
  explicit World(const SimClusterOptions& options) : cluster(options), random(options.seed) {
    log::set_level(log::Level::Off);
    cluster.start();
    writer = &cluster.add_client();
    for (unsigned n = 0; n < kDocuments; ++n) put(n);
    settle();
  }

  void put(unsigned n) { put(n, ++values); }
  void put(unsigned n, std::int64_t value) {
    ++under_way;
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
      NetworkFaults faults = usual;
      faults.lose = 0.02;
      faults.duplicate = 0.05;
      cluster.network().set_faults(faults);
      cluster.scheduler().outside().post_after(milliseconds(500), [this] { cluster.network().set_faults(usual); });
    }
  }

  /// Sets the delays of messages.
  void slow_down(Duration most) {
    usual.delay_max = most;
    cluster.network().set_faults(usual);
  }
  /// Changes a live setting: "name=value".
  void configure(const std::string& setting) {
    std::optional<Status> status;
    rpc::ChangeConfig change;
    change.who = "simulation";
    change.set = {setting};
    cluster.admin().call_any(std::move(change), seconds(30), [&](Result<rpc::ChangeConfigReply> reply) {
      status = reply ? reply->status : reply.error();
    });
    REQUIRE(cluster.run_until([&] { return status.has_value(); }, seconds(60)));
    INFO(status->to_string());
    REQUIRE(status->is_ok());
  }

  SimCluster cluster;
  NetworkFaults usual;  ///< Faults of the network while disturb() is not active.
  Random random;
  AsyncClient* writer = nullptr;
  std::map<std::string, std::int64_t> live;
  std::int64_t values = 0;
  int under_way = 0;
};

}  // namespace fjord::sim
