#include "http/load_sampler.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "fjord/monitoring/metric_http_server.h"

namespace fjord::gateway {
namespace {

/// A clock that stands still between calls of advance().
class StandingClock final : public Clock {
 public:
  MonotonicTime now() const override { return MonotonicTime{us_}; }
  WallTime wall_now() const override { return WallTime{us_}; }
  void advance(Duration by) { us_ += by.count(); }

 private:
  std::atomic<std::int64_t> us_ = 1;
};

/// A fleet controller, of which only the metrics are there.
struct Controller {
  explicit Controller(bool is_leading) : leads(registry.gauge("fjord_fleetcontroller_leads", "")) {
    leads.set(is_leading ? 1 : 0);
    const auto count = [this] {
      const std::lock_guard lock(mutex);
      ++reads;
      changed.notify_all();
    };
    server = std::move(*MetricHttpServer::listen({.before_metrics = count}, registry, [] { return Health{}; }));
  }
  bool wait_for_reads(int number) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(60), [&] { return reads >= number; });
  }
  std::mutex mutex;
  std::condition_variable changed;
  int reads = 0;
  MetricRegistry registry;
  Gauge& leads;
  std::unique_ptr<MetricHttpServer> server;
};

}  // namespace

TEST_CASE("load: an old look at the processes is repeated for who asks, a recent one is not") {
  Controller controller(true);
  const auto clock = std::make_shared<StandingClock>();
  LoadSampler sampler({{"fleetcontroller.0", controller.server->address()}}, clock);
  const auto look = [&] { return sampler.processes(seconds(60)).at("fleetcontroller.0"); };
  CHECK(look().answers);
  CHECK(look().leads);
  controller.leads.set(0);
  clock->advance(seconds(7));
  CHECK_FALSE(look().leads);
}

TEST_CASE("load: points are taken while nobody asks") {
  Controller controller(true);
  LoadSampler sampler({{"fleetcontroller.0", controller.server->address()}}, std::make_shared<SystemClock>(),
                      std::chrono::milliseconds(1));
  REQUIRE(controller.wait_for_reads(6));
  CHECK(sampler.latest().points.size() >= 4);  // The first point needs two readings; the last may still be on its way.
}

}  // namespace fjord::gateway
