#include "fjord/balancer/simulator.h"

#include <catch2/catch.hpp>
#include <numeric>

namespace fjord::balancer {
namespace {

SimulationOptions small() {
  SimulationOptions options;
  options.trace = {.buckets = 4096, .nodes = 10, .operations = 150'000, .seed = 2};
  options.rounds = 150;
  return options;
}

SimulationResult run(std::string_view algorithm, std::string_view trace_name, SimulationOptions options = small()) {
  const SystemClock clock;
  const auto trace = make_trace(trace_name, options.trace);
  return simulate(find_algorithm(algorithm), *trace, options, clock);
}

TEST_CASE("each trace keeps its sum and repeats itself") {
  for (const std::string_view name : trace_names()) {
    CAPTURE(name);
    const TraceOptions options{.buckets = 1024, .nodes = 8, .operations = 50'000, .seed = 5};
    const auto a = make_trace(name, options);
    const auto b = make_trace(name, options);
    std::vector<double> first(options.buckets);
    std::vector<double> second(options.buckets);
    for (std::uint64_t round = 0; round < 130; ++round) {
      a->fill(round, first);
      b->fill(round, second);
      REQUIRE(first == second);
      CHECK(std::accumulate(first.begin(), first.end(), 0.0) == Approx(options.operations));
    }
  }
  CHECK(make_trace("none", {}) == nullptr);
}

TEST_CASE("counts are drawn with the mean and variance of a Poisson distribution") {
  Random random(11);
  for (const double mean : {0.5, 12.0, 400.0}) {
    CAPTURE(mean);
    double sum = 0.0;
    double squares = 0.0;
    const int draws = 20'000;
    for (int i = 0; i < draws; ++i) {
      const double count = draw_poisson(random, mean);
      sum += count;
      squares += count * count;
    }
    CHECK(sum / draws == Approx(mean).epsilon(0.02));
    CHECK(squares / draws - (sum / draws) * (sum / draws) == Approx(mean).epsilon(0.06));
  }
}

TEST_CASE("moves stay within the rows of the table of overrides") {
  SimulationOptions options = small();
  options.rows_max = SIZE_MAX;
  const SimulationResult free = run("weighted-move", "moving-hotspot", options);
  REQUIRE(free.rows > 50);
  options.rows_max = 50;
  const SimulationResult bound = run("weighted-move", "moving-hotspot", options);
  CHECK(bound.rows <= 50);
  CHECK(bound.mean > free.mean);
}

TEST_CASE("the default follows a moving hot spot also when the table of overrides is small") {
  SimulationOptions options = small();
  options.rounds = 600;
  options.rows_max = 512;
  const SimulationResult result = run("descent", "moving-hotspot", options);
  CHECK(result.rows <= 512);
  CHECK(result.p95 < 1.15);
  CHECK(result.bytes_part_mean < 0.005);
}

TEST_CASE("what leaves a node that is gone needs no row") {
  SimulationOptions options = small();
  options.rows_max = 0;
  const SimulationResult result = run("descent", "node-loss", options);
  CHECK(result.moves_per_round > 0.0);
  CHECK(result.rows == 0);
}

TEST_CASE("the default follows a moving hot spot better than the algorithm of Slicer, with fewer bytes") {
  const SimulationResult none = run("rendezvous", "moving-hotspot");
  const SimulationResult descent = run("descent", "moving-hotspot");
  const SimulationResult slicer = run("weighted-move", "moving-hotspot");
  CHECK(descent.p50 < 1.08);
  CHECK(descent.p95 < none.p95 - 0.2);
  CHECK(descent.p95 <= slicer.p95);
  CHECK(descent.bytes_part_mean < 0.5 * slicer.bytes_part_mean);
  CHECK(descent.moves_per_round < slicer.moves_per_round);
  CHECK(descent.bytes_part_max <= 0.0101);
}

TEST_CASE("one bucket that is hot at once is answered by read shares within three rounds") {
  const SimulationResult result = run("descent", "flash");
  CHECK(result.rounds_to_balance.value_or(1000) <= 3);
  CHECK_FALSE(run("rendezvous", "flash").rounds_to_balance.has_value());
  CHECK(result.rounds[60].imbalance > 1.2);
}

TEST_CASE("a node that is lost has no load afterwards, a new one gets its part") {
  CHECK(run("descent", "node-loss").p95 < 1.1);
  const SimulationResult added = run("descent", "node-add");
  CHECK(added.rounds.back().imbalance < 1.1);
  // Until the load is balanced, each round moves at most a hundredth of the bytes.
  CHECK(added.bytes_part_max <= 0.0101);
}

TEST_CASE("a simulation repeats itself") {
  const SimulationResult a = run("descent", "topics");
  const SimulationResult b = run("descent", "topics");
  REQUIRE(a.rounds.size() == b.rounds.size());
  for (std::size_t i = 0; i < a.rounds.size(); ++i) CHECK(a.rounds[i].imbalance == b.rounds[i].imbalance);
}

TEST_CASE("spreading topics lowers what the slowest node of a query has to do") {
  CHECK(run("topic-spread", "topics").topic_cost < 0.8 * run("consistent-1", "topics").topic_cost);
}

}  // namespace
}  // namespace fjord::balancer
