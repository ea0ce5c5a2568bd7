#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "fjord/common/random.h"
#include "flight.h"

/// Tests of the loops `entries` and `cache`, whose input comes from the engines of the storage nodes.
namespace fjord::tuner {
namespace {

constexpr const char* kEntriesMax = "storage.entries_max";
constexpr const char* kIndexBytes = "storage.index_bytes_max";
constexpr double kMiB = 1 << 20;
constexpr double kGiB = 1 << 30;

/// Returns the puts of a node to slotfiles of one size; `search_share` is the part of their time spent on searching.
NodePuts puts_of(std::uint64_t node, double entries, double search_share, double puts = 100) {
  constexpr double kPut = 100e-6;
  return {node, {{.puts = puts, .entries = entries, .put_s = kPut, .search_s = search_share * kPut}}};
}

AutoTunerInput with_puts(std::vector<NodePuts> puts, std::int64_t entries_max) {
  AutoTunerInput input = busy(0.005);
  input.figures.puts = std::move(puts);
  input.values[kEntriesMax] = entries_max;
  return input;
}

/// Returns input with the shares of time spent waiting for indexes and documents, on nodes with 16 GiB for both.
AutoTunerInput with_waits(double index, double document, std::int64_t index_bytes_max) {
  AutoTunerInput input = busy(0.005);
  input.figures.index_wait_share = index;
  input.figures.document_wait_share = document;
  input.figures.index_bytes_all = 8 * kGiB;
  input.figures.cache_bytes = 16 * kGiB;
  input.figures.memory_available_bytes = 15 * kGiB;
  input.condition.memory_left_bytes = input.figures.memory_available_bytes;
  input.values[kIndexBytes] = index_bytes_max;
  return input;
}

constexpr std::int64_t kOneGiB = 1 << 30;

}  // namespace

TEST_CASE("auto-tuner entries: lowered to where the search takes its share, when as many nodes as the quorum agree") {
  Flight flight{only("entries", ControlMode::On)};
  // On node 0 the search takes 90 % of a put with 9000 entries. It would take half of a put with 1000 entries.
  const AutoTunerInput one = with_puts({puts_of(0, 9000, 0.9), puts_of(1, 9000, 0.2), puts_of(2, 9000, 0.2)}, 16384);
  flight.steps(20, one);
  CHECK(flight.orders.empty());
  const AutoTunerInput two = with_puts({puts_of(0, 9000, 0.9), puts_of(1, 9000, 0.8), puts_of(2, 9000, 0.2)}, 16384);
  flight.steps(2, two);
  CHECK(flight.orders.empty());  // Two nodes agree, but not for long enough.
  flight.steps(1, two);
  REQUIRE(flight.orders.size() == 1);
  // The search takes half of a put with 1000 entries on node 0, and with 2250 on node 1. The second smallest number
  // counts, because the quorum is 2. It is rounded to a power of two.
  CHECK(flight.orders[0].new_value == 2048);
  CHECK(flight.orders[0].reason.find("2 nodes found puts bound") != std::string::npos);
  CHECK(flight.tuner.is_watching());
}

TEST_CASE("auto-tuner entries: nothing for few puts, for a period or two, or where the search is no matter") {
  Flight flight{only("entries", ControlMode::On)};
  for (int i = 0; i < 30; ++i) {
    const bool bound = i % 3 != 2;
    flight.steps(1, with_puts({puts_of(0, 9000, bound ? 0.9 : 0.1), puts_of(1, 9000, bound ? 0.9 : 0.1)}, 16384));
  }
  flight.steps(30, with_puts({puts_of(0, 9000, 0.9, 20), puts_of(1, 9000, 0.9, 20)}, 16384));
  flight.steps(30, with_puts({puts_of(0, 9000, 0.49), puts_of(1, 9000, 0.49)}, 16384));
  flight.steps(30, with_puts({}, 16384));
  CHECK(flight.orders.empty());
  CHECK(flight.notes.empty());
}

TEST_CASE("auto-tuner entries: a cluster of one node is its own quorum, and the least size that is bound counts") {
  Flight flight{only("entries", ControlMode::On)};
  NodePuts node = puts_of(0, 100'000, 0.95);
  node.costs.push_back({.puts = 100, .entries = 8000, .put_s = 100e-6, .search_s = 80e-6});
  node.costs.push_back({.puts = 100, .entries = 900, .put_s = 40e-6, .search_s = 4e-6});
  flight.steps(4, with_puts({node}, 1 << 20));
  REQUIRE(flight.orders.size() == 1);
  CHECK(flight.orders[0].new_value == 1024);  // The loop chooses 2000, rounded to the nearest power of two.
}

TEST_CASE("auto-tuner entries: the rails hold a second change within their pause, and one that is too small to gain") {
  Flight flight{only("entries", ControlMode::On)};
  flight.steps(4, with_puts({puts_of(0, 9000, 0.9), puts_of(1, 9000, 0.9)}, 65536));
  REQUIRE(flight.orders.size() == 1);
  CHECK(flight.values[kEntriesMax] == 512);
  flight.steps(20, with_puts({puts_of(0, 480, 0.6), puts_of(1, 480, 0.6)}, 512));
  CHECK(flight.orders.size() == 1);
  CHECK(flight.noted(AutoTunerNote::Kind::Held, "too recent"));

  // Halving the number of entries is a change by less than a factor of 3. It would save 29 us of a put. Half of the
  // operations are puts, so it would save 15 us of an operation on average.
  const auto small = [](double mean_s) {
    AutoTunerInput input = with_puts({puts_of(0, 8000, 0.6), puts_of(1, 8000, 0.6)}, 8192);
    input.figures.mean_s = mean_s;
    return input;
  };
  Flight slow{only("entries", ControlMode::On)};
  slow.steps(10, small(0.002));  // 15 us are too little if an operation takes 2000 us.
  CHECK(slow.orders.empty());
  CHECK(slow.noted(AutoTunerNote::Kind::Held, "3.0 times off"));
  Flight fast{only("entries", ControlMode::On)};
  fast.steps(10, small(0.0001));
  REQUIRE(fast.orders.size() == 1);
  CHECK(fast.orders[0].new_value == 4096);
}

TEST_CASE("auto-tuner entries: somebody who sets it begins anew, and what was taken back is not tried again") {
  AutoTunerOptions options = only("entries", ControlMode::On);
  options.hold_periods = 5;
  Flight flight{options};
  const AutoTunerInput bound = with_puts({puts_of(0, 9000, 0.9), puts_of(1, 9000, 0.9)}, 65536);
  flight.steps(4, bound);
  REQUIRE(flight.values[kEntriesMax] == 512);
  flight.values[kEntriesMax] = 1 << 24;
  flight.steps(100, with_puts({puts_of(0, 9000, 0.9), puts_of(1, 9000, 0.2)}, 0));
  CHECK_FALSE(
      flight.noted(AutoTunerNote::Kind::Held, "too recent"));  // Reports of the other node before that do not count.
  flight.steps(3000, with_puts({puts_of(0, 9000, 0.2), puts_of(1, 9000, 0.2)}, 0));
  flight.steps(10, with_puts({puts_of(0, 9000, 0.2), puts_of(1, 9000, 0.9)}, 0));
  CHECK(flight.orders.size() == 1);  // The report of the first node is too old.
  flight.steps(10, bound);
  REQUIRE(flight.orders.size() == 2);
  CHECK(flight.orders[1].old_value == 1 << 24);
  // Operations take longer after the change, so it is rolled back, and 512 is not tried again.
  AutoTunerInput worse = bound;
  worse.figures.mean_s = 0.004;
  flight.steps(3, worse);
  REQUIRE(flight.orders.size() == 3);
  CHECK(flight.orders[2].reverts.size() == 1);
  CHECK(flight.values[kEntriesMax] == 1 << 24);
  flight.steps(5000, bound);
  CHECK(flight.orders.size() == 4);
  CHECK(flight.values[kEntriesMax] == 1024);
}

namespace {

/// Nodes where a put searches all entries of its slotfile, as in [VDS 2007, 5.3.1]. Some nodes are slower than others,
/// and the nodes change over time.
class SearchingNodes {
 public:
  explicit SearchingNodes(std::uint64_t seed) : random_(seed) {
    nodes_.resize(3 + random_.below(8));
    for (Node& node : nodes_) node = draw();
    for (Node& node : nodes_) node.entries = 20'000 + 200'000 * random_.uniform();
  }
  /// Replaces each node by another one that searches `faster` times as fast and has as many entries.
  void replace_all(double faster) {
    for (Node& node : nodes_) {
      const double entries = node.entries;
      node = draw();
      node.entry_s /= faster;
      node.entries = entries;
    }
  }
  AutoTunerInput period(std::int64_t entries_max) {
    std::vector<NodePuts> puts;
    double mean = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Node& node = nodes_[i];
      node.speed = std::clamp(node.speed * (1 + 0.01 * (random_.uniform() - 0.5)), 0.9, 1.1);
      // Slotfiles split as they are written to, and have between half of the limit and all of it.
      const double wanted = 0.75 * static_cast<double>(entries_max);
      node.entries = node.entries > wanted ? std::max(wanted, node.entries / 2) : node.entries * 1.001;
      const double noise = 1 + 0.1 * (random_.uniform() - 0.5);
      const double search = node.entries * node.entry_s * node.speed * noise;
      puts.push_back({i, {{.puts = 200, .entries = node.entries, .put_s = search + node.rest_s, .search_s = search}}});
      mean += (search + node.rest_s) / static_cast<double>(nodes_.size());
    }
    AutoTunerInput input = with_puts(std::move(puts), entries_max);
    input.figures.mean_s = 0.0005 + mean;
    input.figures.p99_s = 5 * *input.figures.mean_s;
    return input;
  }
  /// Returns the number of entries with which the search takes half of a put's time on the second slowest node.
  double limit() const {
    std::vector<double> limits;
    for (const Node& node : nodes_) limits.push_back(node.rest_s / node.entry_s);
    std::sort(limits.begin(), limits.end());
    return limits[1];
  }

 private:
  struct Node {
    double entry_s = 0;
    double rest_s = 0;
    double speed = 1;
    double entries = 0;
  };
  Node draw() {
    Node node;
    const bool is_slow = random_.below(8) == 0;
    node.entry_s = (is_slow ? 30e-9 : 3e-9) * (1 + random_.uniform());
    node.rest_s = 20e-6 * (1 + random_.uniform());
    return node;
  }

  Random random_;
  std::vector<Node> nodes_;
};

}  // namespace

TEST_CASE("auto-tuner entries: finds the limit of the slowest node but one, on nodes that differ and change") {
  int judged = 0;
  int close = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    SearchingNodes nodes(seed);
    Flight flight{only("entries", ControlMode::On)};
    flight.values[kEntriesMax] = 1 << 20;
    const auto run = [&](int periods) {
      for (int i = 0; i < periods; ++i) static_cast<void>(flight.step(nodes.period(flight.values[kEntriesMax])));
    };
    const auto judge = [&] {
      const double limit = std::max(256.0, nodes.limit());
      const auto value = static_cast<double>(flight.values[kEntriesMax]);
      CAPTURE(value, limit);
      CHECK(value <= 3 * limit);  // The limit plus the hysteresis of the guard rails.
      CHECK(value >= limit / 2.5);
      ++judged;
      if (value <= 1.25 * limit) ++close;
    };
    run(60);
    judge();
    // Slower nodes replace all nodes. Later faster nodes replace these, and an operator resets the setting.
    nodes.replace_all(0.1);
    run(2500);
    judge();
    nodes.replace_all(2);
    flight.values[kEntriesMax] = 1 << 24;
    run(5000);
    judge();
    for (std::size_t i = 1; i < flight.orders.size(); ++i) CHECK(flight.orders[i].reverts.empty());
  }
  INFO(close << " of " << judged);
  CHECK(10 * close >= 8 * judged);
}

TEST_CASE("auto-tuner cache: memory goes to indexes while waits for them cost more, and back, in whole MiB") {
  Flight flight{only("cache", ControlMode::On)};
  flight.steps(8, with_waits(0.3, 0.05, kOneGiB));
  REQUIRE(flight.orders.size() == 1);
  CHECK(flight.orders[0].new_value == 2 * kOneGiB);  // The loop adds a sixteenth of 16 GiB.
  CHECK(flight.orders[0].reason.find("indexes cost more") != std::string::npos);
  CHECK(flight.orders[0].reason.find("30.0 % and 5.0 %") != std::string::npos);
  flight.steps(30, with_waits(0.1, 0.09, kOneGiB));
  CHECK(flight.orders.size() == 1);
  flight.steps(30, with_waits(0.05, 0.3, kOneGiB));
  REQUIRE(flight.orders.size() >= 2);
  CHECK(flight.orders[1].new_value == kOneGiB);
  for (const SettingChange& order : flight.orders) CHECK(order.new_value % (1 << 20) == 0);
}

TEST_CASE(
    "auto-tuner cache: nothing for waits that are no matter, without known memory, or beyond what a node has left") {
  Flight flight{only("cache", ControlMode::On)};
  flight.steps(20, with_waits(0.008, 0, kOneGiB));
  AutoTunerInput unknown = with_waits(0.3, 0, kOneGiB);
  unknown.figures.cache_bytes = 0;
  flight.steps(20, unknown);
  CHECK(flight.orders.empty());
  CHECK(flight.notes.empty());
  AutoTunerInput full = with_waits(0.3, 0, kOneGiB);
  full.condition.memory_left_bytes = 0.9 * kGiB;
  flight.steps(20, full);
  CHECK(flight.orders.empty());
  CHECK(flight.noted(AutoTunerNote::Kind::Held, "more memory"));
  flight.steps(20, with_waits(0.3, 0, kOneGiB));
  CHECK_FALSE(flight.orders.empty());
}

TEST_CASE("auto-tuner cache: advice is said once although the memory that is left swings") {
  Flight flight{only("cache", ControlMode::Advise)};
  for (int i = 0; i < 100; ++i) {
    AutoTunerInput input = with_waits(0.3, 0.02, kOneGiB);
    input.figures.cache_bytes *= i % 2 == 0 ? 0.95 : 1.05;
    flight.steps(1, input);
  }
  CHECK(flight.orders.empty());
  CHECK(flight.notes.size() == 1);
}

namespace {

/// Nodes with different memory, disks and data. The data grows, and the most-read part of it changes.
class CachingNodes {
 public:
  explicit CachingNodes(std::uint64_t seed) : random_(seed) {
    nodes_.resize(3 + random_.below(6));
    for (Node& node : nodes_) {
      node.memory = kGiB * (6 + 6 * random_.uniform());
      node.indexes = kGiB * (1 + 5 * random_.uniform());
      node.hot = kGiB * (4 + 12 * random_.uniform());
      node.load_s = 1e-3 * (1 + random_.uniform());
      node.seek_s = 0.3e-3 * (1 + 3 * random_.uniform());
    }
  }
  /// Users read other documents, and the amounts of hot documents and indexes change by these factors.
  void shift(double hot, double indexes) {
    for (Node& node : nodes_) {
      node.hot *= hot;
      node.indexes *= indexes;
    }
  }
  AutoTunerInput period(std::int64_t index_bytes_max) {
    for (Node& node : nodes_) {
      node.hot *= 1 + 0.01 * (random_.uniform() - 0.5);
      node.indexes *= 1.00001;
    }
    AutoTunerInput input = busy(0.005);
    PeriodFigures& figures = input.figures;
    const auto [index, document] = waits(static_cast<double>(index_bytes_max));
    figures.index_wait_share = index * (1 + 0.1 * (random_.uniform() - 0.5));
    figures.document_wait_share = document * (1 + 0.1 * (random_.uniform() - 0.5));
    figures.cache_bytes = std::numeric_limits<double>::max();
    for (const Node& node : nodes_) {
      figures.index_bytes_all = std::max(figures.index_bytes_all, node.indexes);
      figures.cache_bytes = std::min(figures.cache_bytes, node.memory);
    }
    figures.memory_available_bytes = 0.9 * figures.cache_bytes;
    input.condition.memory_left_bytes = figures.memory_available_bytes;
    figures.mean_s = 0.0005 + (index + document) / kOperations;
    figures.p99_s = 5 * *figures.mean_s;
    input.values[kIndexBytes] = index_bytes_max;
    return input;
  }
  double cost(double index_bytes) const { return waits(index_bytes).first + waits(index_bytes).second; }
  /// Returns the lowest cost over all settings that the loop may choose.
  double best_cost() const {
    double budget = std::numeric_limits<double>::max();
    for (const Node& node : nodes_) budget = std::min(budget, node.memory);
    double best = std::numeric_limits<double>::max();
    for (double share = 0.05; share <= 0.6; share += 0.01) best = std::min(best, cost(share * budget));
    return best;
  }

 private:
  static constexpr double kOperations = 1000;  // Operations per second on each node.
  struct Node {
    double memory = 0;
    double indexes = 0;
    double hot = 0;  ///< Bytes of documents that are read.
    double load_s = 0;
    double seek_s = 0;
  };
  /// The most-used data stays longest in a cache, so its last part saves less than its first.
  static double misses(double cache, double all) {
    const double share = std::clamp(cache / all, 0.0, 1.0);
    return (1 - share) * (1 - share);
  }
  std::pair<double, double> waits(double index_bytes) const {
    double index = 0;
    double document = 0;
    for (const Node& node : nodes_) {
      const double used = std::min(index_bytes, node.indexes);
      index += kOperations * misses(used, node.indexes) * node.load_s;
      document += kOperations * misses(std::max(0.0, node.memory - used), node.hot) * node.seek_s;
    }
    const auto count = static_cast<double>(nodes_.size());
    return {index / count, document / count};
  }

  Random random_;
  std::vector<Node> nodes_;
};

}  // namespace

TEST_CASE("auto-tuner cache: comes near the best division, on nodes that differ and change, and does not swing") {
  double log_sum = 0;
  double worst = 0;
  double began = 0;
  int measured = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    CachingNodes nodes(seed);
    Flight flight{only("cache", ControlMode::On)};
    flight.values[kIndexBytes] = 256 << 20;
    const auto run = [&](int periods) {
      for (int i = 0; i < periods; ++i) static_cast<void>(flight.step(nodes.period(flight.values[kIndexBytes])));
    };
    const auto judge = [&] {
      // Waits of a thousandth of the time do not matter.
      const double best = nodes.best_cost() + 0.01;
      const double ratio = (nodes.cost(static_cast<double>(flight.values[kIndexBytes])) + 0.01) / best;
      log_sum += std::log(ratio);
      began += std::log((nodes.cost(256 * kMiB) + 0.01) / best);
      worst = std::max(worst, ratio);
      ++measured;
    };
    run(400);
    judge();
    nodes.shift(1.0, 2.0);  // Indexes double, as by many more documents.
    run(400);
    judge();
    nodes.shift(2.0, 0.7);
    run(400);
    judge();
    int turns = 0;
    for (std::size_t i = 1; i < flight.orders.size(); ++i) {
      const bool is_up = flight.orders[i].new_value > flight.orders[i].old_value;
      const bool was_up = flight.orders[i - 1].new_value > flight.orders[i - 1].old_value;
      if (is_up != was_up) ++turns;
    }
    CHECK(turns <= 10);
  }
  const double mean = std::exp(log_sum / measured);
  const double before = std::exp(began / measured);
  INFO("mean " << mean << ", worst " << worst << " of the best; where it began " << before);
  CHECK(mean <= 1.35);
  CHECK(worst <= 2.5);
  CHECK(before > 1.5);
}

}  // namespace fjord::tuner
