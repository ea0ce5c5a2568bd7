#include "fjord/sim/pipeline.h"

#include <catch2/catch.hpp>
#include <memory>

namespace fjord::sim {
namespace {

constexpr std::uint32_t kRed = 0;  // The item of [KBD 2020, figure 6.4].

/// The two distributors and slaves of [KBD 2020, figure 6.4], with messages that the test delivers.
struct Figure {
  explicit Figure(ProcessingOrder order, MovedItems moved = MovedItems::NamedByMapper) {
    for (std::uint32_t i = 0; i < 2; ++i) {
      routers.push_back(std::make_unique<DataRouter>(
          DataRouter::Options{order, moved, i, 1}, std::vector<std::uint32_t>{1},
          std::map<std::uint32_t, std::uint64_t>{{kRed, 1}},
          [this, i](std::uint32_t item, std::uint64_t version, std::uint64_t) { slaves[i][item] = version; }));
    }
    slaves[1][kRed] = 1;
  }
  bool is_on(std::uint32_t slave) { return slaves[slave][kRed] != 0; }

  std::vector<std::unique_ptr<DataRouter>> routers;
  std::map<std::uint32_t, std::uint64_t> slaves[2];
};

const DataChange kRemoval{1, kRed, 0};
/// The mapper has seen the removal, so its list of items is empty.
const Quantum kRemap{1, {{0, 1, 0, {}}}};

/// Delivers the messages of pictures 2 to 5 of the figure.
void deliver(Figure& figure) {
  figure.routers[0]->take(kRemoval);
  figure.routers[0]->take(kRemap);
  figure.routers[1]->take(kRemap);
  figure.routers[1]->take(kRemoval);
}

TEST_CASE("figure 6.4: a removal that comes after the remap is lost if distributors process what comes") {
  Figure figure(ProcessingOrder::AsTheyArrive);
  deliver(figure);
  CHECK(figure.is_on(1));
  CHECK_FALSE(figure.is_on(0));
}

TEST_CASE("figure 6.4: in causal order the remap waits for the removal") {
  Figure figure(ProcessingOrder::Causal);
  figure.routers[1]->take(kRemap);
  CHECK(figure.is_on(1));
  CHECK(figure.routers[1]->waiting() == 1);
  figure.routers[1]->take(kRemoval);
  CHECK_FALSE(figure.is_on(1));
  CHECK(figure.routers[1]->waiting() == 0);
}

TEST_CASE("figure 6.4: a distributor that takes the items of the slice from its own copy loses nothing") {
  Figure figure(ProcessingOrder::AsTheyArrive, MovedItems::OwnCopy);
  deliver(figure);
  CHECK_FALSE(figure.is_on(1));
  CHECK_FALSE(figure.is_on(0));
}

TEST_CASE("a change that no quantum has seen waits") {
  Figure figure(ProcessingOrder::Causal);
  figure.routers[1]->take(DataChange{1, kRed, 2});
  CHECK(figure.slaves[1][kRed] == 1);
  figure.routers[1]->take(Quantum{0, {}});
  CHECK(figure.slaves[1][kRed] == 1);
  figure.routers[1]->take(Quantum{1, {}});
  CHECK(figure.slaves[1][kRed] == 2);
}

TEST_CASE("a change behind the clock of a quantum is processed after it") {
  Figure figure(ProcessingOrder::Causal);
  figure.routers[1]->take(DataChange{1, kRed, 2});
  figure.routers[1]->take(DataChange{2, kRed, 3});
  figure.routers[1]->take(Quantum{1, {{0, 1, 0, {kRed}}}});
  CHECK_FALSE(figure.is_on(1));
  figure.routers[1]->take(Quantum{2, {}});
  CHECK_FALSE(figure.is_on(1));
}

PipelineResult sum_over(std::uint64_t seeds, ProcessingOrder order, MovedItems moved) {
  PipelineResult sum;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    PipelineOptions options;
    options.seed = seed;
    options.order = order;
    options.moved = moved;
    const PipelineResult result = run_pipeline(options);
    sum.removals += result.removals;
    sum.moves += result.moves;
    sum.removals_lost += result.removals_lost;
    sum.left_behind += result.left_behind;
    sum.missing += result.missing;
    sum.outdated += result.outdated;
    sum.never_processed += result.never_processed;
    sum.passed_on += result.passed_on;
    sum.waited += result.waited;
  }
  return sum;
}

TEST_CASE("any delays: causal order loses nothing, without it removals and items are lost") {
  const PipelineResult causal = sum_over(1000, ProcessingOrder::Causal, MovedItems::NamedByMapper);
  CHECK(causal.wrong() == 0);
  CHECK(causal.removals > 10'000);
  CHECK(causal.moves > 1'000);
  const PipelineResult arriving = sum_over(1000, ProcessingOrder::AsTheyArrive, MovedItems::NamedByMapper);
  CHECK(arriving.removals == causal.removals);
  CHECK(arriving.moves == causal.moves);
  CHECK(arriving.removals_lost > 0);
  CHECK(arriving.left_behind > 0);
  CHECK(arriving.missing > 0);
  CHECK(arriving.never_processed == 0);
}

TEST_CASE("any delays: items from a distributor's own copy lose nothing in either order") {
  CHECK(sum_over(1000, ProcessingOrder::AsTheyArrive, MovedItems::OwnCopy).wrong() == 0);
  CHECK(sum_over(1000, ProcessingOrder::Causal, MovedItems::OwnCopy).wrong() == 0);
}

TEST_CASE("any delays: in causal order a change waits for the quantum that has seen it") {
  const PipelineResult causal = sum_over(300, ProcessingOrder::Causal, MovedItems::NamedByMapper);
  const PipelineResult arriving = sum_over(300, ProcessingOrder::AsTheyArrive, MovedItems::NamedByMapper);
  CHECK(causal.waited / static_cast<double>(causal.passed_on) >
        1.5 * arriving.waited / static_cast<double>(arriving.passed_on));
}

}  // namespace
}  // namespace fjord::sim
