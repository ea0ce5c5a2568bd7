#include "foreground_cpus.h"

#include <catch2/catch.hpp>

#include "storage/node/node_world.h"

namespace fjord::test {
namespace {

using storage::ForegroundCpus;

constexpr std::uint64_t kState = 4;
constexpr int kMany = static_cast<int>(ForegroundCpus::kOperationsLeast);
const std::string kSetting = "storage.foreground_cpu_percent";

/// A storage node that receives batches, on a simulated machine of a hundred processors.
class World {
 public:
  World() { nodes_.give_state(kState); }

  void gets(int operations, int in_background) {
    rpc::Apply request;
    request.state_version = kState;
    for (int i = 0; i < operations; ++i) request.operations.push_back(get_of(id_in(1, i), 1));
    request.distributor = nodes_.owner(request.operations[0].bucket);
    request.in_background = static_cast<std::uint32_t>(in_background);
    nodes_.ask(0, std::move(request));
  }
  void run(Duration time) { nodes_.world.scheduler.run_for(time); }
  double kept_free() { return nodes_.metric("fjord_storage_foreground_cpus"); }
  void set(std::int64_t percent) { nodes_.set_tunable(kSetting, percent); }

 private:
  NodeWorld nodes_{1};
};

}  // namespace

TEST_CASE("foreground cpus: kept free from the first period with many operations until ten seconds after the last") {
  World world;
  world.run(seconds(1));
  CHECK(world.kept_free() == 0);
  world.gets(kMany, 0);
  world.run(ForegroundCpus::kPeriod);
  CHECK(world.kept_free() == 25);
  world.run(seconds(6));
  world.gets(kMany, 0);
  world.run(seconds(9));
  CHECK(world.kept_free() == 25);
  world.run(seconds(2));
  CHECK(world.kept_free() == 0);
}

TEST_CASE("foreground cpus: a few operations, and those that nobody waits for, find their way as it is") {
  World world;
  for (int i = 0; i < 20; ++i) {
    world.gets(kMany - 1, 0);
    world.run(ForegroundCpus::kPeriod);
    REQUIRE(world.kept_free() == 0);
  }
  world.gets(1000, 1000);
  world.gets(1000, 2000);  // More background operations than operations, which no distributor sends.
  world.run(ForegroundCpus::kPeriod);
  CHECK(world.kept_free() == 0);
  world.gets(1000, 1000 - kMany);
  world.run(ForegroundCpus::kPeriod);
  CHECK(world.kept_free() == 25);
}

TEST_CASE("foreground cpus: the setting is in force at once, and 0 keeps none free") {
  World world;
  world.gets(kMany, 0);
  world.set(60);
  world.run(ForegroundCpus::kPeriod);
  CHECK(world.kept_free() == 60);
  world.set(0);
  world.run(ForegroundCpus::kPeriod);
  CHECK(world.kept_free() == 0);
}

}  // namespace fjord::test
