// Guarantees that every balancing algorithm keeps, whichever moves it chooses.

#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <string>

#include "fjord/balancer/simulator.h"

namespace fjord::balancer {
namespace {

/// Returns a model of 12 nodes in four groups, some with twice the capacity, and of slices of which a few are hot.
BalanceModel uneven_model(unsigned redundancy, std::uint64_t seed) {
  Random random(seed);
  BalanceModel model;
  model.redundancy = redundancy;
  for (std::uint32_t node = 0; node < 12; ++node) {
    model.nodes.push_back({.capacity = node % 3 == 0 ? 2.0 : 1.0, .group = node % 4});
  }
  std::uint32_t begin = 0;
  while (begin < 1200) {
    Slice slice;
    slice.range = {begin, begin + 1 + static_cast<std::uint32_t>(random.below(8))};
    begin = slice.range.end;
    slice.reads = 100.0 * std::exp(draw_normal(random)) * (random.chance(0.02) ? 40.0 : 1.0);
    slice.writes = 0.1 * slice.reads;
    slice.bytes = 1'000 + random.below(10'000);
    while (slice.holders.size() < redundancy) {
      const auto node = static_cast<std::uint16_t>(random.below(model.nodes.size()));
      bool is_apart = true;
      for (const Holder& holder : slice.holders) is_apart &= model.nodes[holder.node].group != model.nodes[node].group;
      if (is_apart) slice.holders.push_back({node, 0.0});
    }
    slice.holders.share_equally();
    slice.in_transfer = random.chance(0.05);
    if (slice.range.begin % 5 == 0) slice.holders[0].own_load = slice.reads;
    model.slices.push_back(slice);
  }
  model.step_bytes_max = model.bytes() / 50;
  model.round = 1;
  return model;
}

/// Checks that the slices cover the buckets 0 to `buckets` - 1 once each, with the right number of replicas.
void check_whole(const BalanceModel& model, std::uint32_t buckets) {
  std::uint32_t at = 0;
  double reads = 0.0;
  for (const Slice& slice : model.slices) {
    REQUIRE(slice.range.begin == at);
    REQUIRE(slice.range.end > at);
    at = slice.range.end;
    std::set<std::uint32_t> groups;
    double shares = 0.0;
    for (const Holder& holder : slice.holders) {
      groups.insert(model.nodes[holder.node].group);
      shares += holder.read_share;
      CHECK(holder.read_share >= 0.0);
    }
    CHECK(groups.size() == slice.holders.size());
    CHECK(shares == Approx(1.0));
    reads += slice.reads;
  }
  CHECK(at == buckets);
}

void carry_out(const Plan& plan, BalanceModel& model) {
  for (const Move& move : plan.moves) REQUIRE(apply(move, model) == Status::ok());
}

double total_load(const BalanceModel& model) {
  double sum = 0.0;
  for (const Slice& slice : model.slices) sum += slice.load();
  return sum;
}

TEST_CASE("algorithms: a step ends also when slices have loads and no bytes") {
  // Rounding errors in sums of such loads can make each move of a slice to and fro look like a small gain.
  for (std::uint64_t seed = 1; seed < 300; ++seed) {
    Random random(seed);
    BalanceModel model;
    model.round = 5;
    model.redundancy = 1 + static_cast<unsigned>(random.below(2));
    const auto nodes = 3 + static_cast<std::uint32_t>(random.below(4));
    Random capacities(seed + 1000);
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const double capacity = seed % 2 == 0 ? 1.0 : 0.5 + 0.5 * static_cast<double>(capacities.below(4));
      model.nodes.push_back({.capacity = capacity, .group = node});
    }
    for (std::uint32_t begin = 0; begin < 16; ++begin) {
      Slice slice;
      slice.range = {begin, begin + 1};
      const auto first = static_cast<std::uint16_t>(random.below(nodes));
      slice.holders.push_back({first, 1.0});
      if (model.redundancy == 2) {
        slice.holders.push_back({static_cast<std::uint16_t>((first + 1 + random.below(nodes - 1)) % nodes), 0.0});
      }
      slice.holders.share_equally();
      slice.writes = random.chance(0.5) ? 0.0 : static_cast<double>(random.below(40)) / (0.3 + random.uniform());
      model.slices.push_back(slice);
    }
    for (const BalancingAlgorithm* algorithm : algorithms()) {
      INFO(algorithm->name() << ", seed " << seed);
      Memory memory;
      Random draws(seed);
      CHECK(algorithm->step(model, memory, draws).moves.size() <= 1000);
    }
  }
}

TEST_CASE("each algorithm has a name of its own and says what it does") {
  std::set<std::string_view> names;
  for (const BalancingAlgorithm* algorithm : algorithms()) {
    CHECK(names.insert(algorithm->name()).second);
    CHECK(find_algorithm(algorithm->name()) == algorithm);
    CHECK(!algorithm->summary().empty());
  }
  CHECK(algorithms().front()->name() == "descent");
  CHECK(find_algorithm("none") == nullptr);
}

TEST_CASE("a step of any algorithm can be carried out and keeps its limits") {
  for (const BalancingAlgorithm* algorithm : algorithms()) {
    for (const unsigned redundancy : {1u, 2u, 3u}) {
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        CAPTURE(algorithm->name(), redundancy, seed);
        BalanceModel model = uneven_model(redundancy, seed);
        model.nodes[5].accepts = false;
        const double before = total_load(model);
        Memory memory;
        Random random(seed);
        for (int round = 0; round < 4; ++round) {
          const Plan plan = algorithm->step(model, memory, random);
          REQUIRE(check(plan, model) == Status::ok());
          carry_out(plan, model);
          check_whole(model, model.buckets());
          CHECK(total_load(model) == Approx(before));
          for (Slice& slice : model.slices) slice.in_transfer = false;
          ++model.round;
        }
      }
    }
  }
}

TEST_CASE("any algorithm places slices that have no holder, apart from each other") {
  for (const BalancingAlgorithm* algorithm : algorithms()) {
    CAPTURE(algorithm->name());
    BalanceModel model = uneven_model(3, 1);
    for (Slice& slice : model.slices) {
      slice.holders = {};
      slice.in_transfer = false;
    }
    Random random(1);
    const Plan plan = algorithm->initialise(model, random);
    REQUIRE(check(plan, model) == Status::ok());
    carry_out(plan, model);
    check_whole(model, model.buckets());
    for (const Slice& slice : model.slices) CHECK(slice.holders.size() == 3);
  }
}

TEST_CASE("any algorithm takes everything off a node that is gone, whatever it may move") {
  for (const BalancingAlgorithm* algorithm : algorithms()) {
    CAPTURE(algorithm->name());
    BalanceModel model = uneven_model(2, 3);
    model.nodes[7].usable = false;
    model.step_bytes_max = 0;
    Memory memory;
    Random random(1);
    const Plan plan = algorithm->step(model, memory, random);
    REQUIRE(check(plan, model) == Status::ok());
    carry_out(plan, model);
    for (const Slice& slice : model.slices) {
      CHECK(slice.holders.find(7) == nullptr);
      CHECK(slice.holders.size() == 2);
    }
  }
}

TEST_CASE("the same model, memory and seed give the same plan") {
  for (const BalancingAlgorithm* algorithm : algorithms()) {
    CAPTURE(algorithm->name());
    const BalanceModel model = uneven_model(2, 5);
    std::vector<std::vector<BucketRange>> ranges;
    std::vector<double> after;
    for (int i = 0; i < 2; ++i) {
      Memory memory;
      Random random(9);
      const Plan plan = algorithm->step(model, memory, random);
      ranges.emplace_back();
      for (const Move& move : plan.moves) ranges.back().push_back(move.range);
      after.push_back(plan.imbalance_after);
    }
    CHECK(ranges[0] == ranges[1]);
    CHECK(after[0] == after[1]);
  }
}

TEST_CASE("algorithms that look at loads lower the imbalance") {
  for (const std::string_view name : {"descent", "weighted-move", "two-tier", "stochastic", "local-search"}) {
    CAPTURE(name);
    BalanceModel model = uneven_model(1, 2);
    for (Slice& slice : model.slices) slice.in_transfer = false;
    model.step_bytes_max = UINT64_MAX;
    const double before = imbalance(model, node_loads(model));
    Memory memory;
    Random random(3);
    for (int round = 0; round < 10; ++round) {
      carry_out(find_algorithm(name)->step(model, memory, random), model);
      model.round += 10;
    }
    CHECK(imbalance(model, node_loads(model)) < 1.0 + 0.5 * (before - 1.0));
  }
}

TEST_CASE("descent shifts reads before it moves bytes") {
  BalanceModel model = uneven_model(2, 4);
  // Node 0 is hot; every slice also has a replica on a cool node.
  for (Slice& slice : model.slices) {
    slice.in_transfer = false;
    slice.writes = 0.0;
    slice.reads = slice.holders.find(0) != nullptr ? 200.0 : 100.0;
    for (Holder& holder : slice.holders) holder.own_load = 0.0;
  }
  Memory memory;
  Random random(1);
  const Plan plan = find_algorithm("descent")->step(model, memory, random);
  REQUIRE(!plan.moves.empty());
  CHECK(plan.moves.front().kind == MoveKind::ReadShare);
  CHECK(plan.imbalance_after < 1.05);
  CHECK(plan.bytes == 0);
}

TEST_CASE("descent moves replicas if the read shares do not say where their reads go") {
  BalanceModel model;
  model.redundancy = 2;
  for (std::uint32_t node = 0; node < 4; ++node) model.nodes.push_back({.group = node});
  // All reads go to the first holder of each slice. That is node 0 for twelve slices and node 2 for four.
  for (std::uint32_t bucket = 0; bucket < 16; ++bucket) {
    Slice slice;
    slice.range = {bucket, bucket + 1};
    slice.bytes = 100;
    const bool is_hot = bucket < 12;
    slice.holders.push_back({.node = static_cast<std::uint16_t>(is_hot ? 0 : 2), .own_load = 10.0});
    slice.holders.push_back({.node = static_cast<std::uint16_t>(is_hot ? 1 + bucket % 3 : 1)});
    slice.holders.share_equally();
    model.slices.push_back(slice);
  }
  CHECK(imbalance(model, node_loads(model)) == Approx(3.0));
  Memory memory;
  Random random(1);
  const Plan plan = find_algorithm("descent")->step(model, memory, random);
  carry_out(plan, model);
  CHECK(imbalance(model, node_loads(model)) == Approx(1.0));
  for (const Move& move : plan.moves) CHECK(move.kind == MoveKind::Place);
}

TEST_CASE("a requested step of bin-packing levels bytes, and one of random scatters replicas") {
  BalanceModel model = uneven_model(1, 2);
  for (Slice& slice : model.slices) slice.in_transfer = false;
  model.step_bytes_max = UINT64_MAX;
  const auto imbalance_of_bytes = [](const BalanceModel& placed) {
    std::vector<double> bytes(placed.nodes.size());
    for (const Slice& slice : placed.slices) {
      for (const Holder& holder : slice.holders) bytes[holder.node] += static_cast<double>(slice.bytes);
    }
    for (std::size_t node = 0; node < bytes.size(); ++node) bytes[node] /= placed.nodes[node].capacity;
    return imbalance(placed, bytes);
  };
  Memory memory;
  Random random(3);
  for (const std::string_view name : {"bin-packing", "random"}) {
    CHECK(find_algorithm(name)->step(model, memory, random).moves.empty());
  }
  model.is_requested = true;
  carry_out(find_algorithm("bin-packing")->step(model, memory, random), model);
  CHECK(imbalance_of_bytes(model) < 1.05);
  carry_out(find_algorithm("random")->step(model, memory, random), model);
  CHECK(imbalance_of_bytes(model) > 1.1);
}

/// Returns a model of `buckets` slices with one replica each, by turns on the nodes where they are at home.
/// `load(bucket)` is the load of a slice.
template <typename Load>
BalanceModel homely_model(std::uint32_t buckets, std::uint16_t nodes, Load load) {
  BalanceModel model;
  for (std::uint32_t node = 0; node < nodes; ++node) model.nodes.push_back({.group = node});
  std::vector<NodeList> homes;
  for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) {
    Slice slice;
    slice.range = {bucket, bucket + 1};
    slice.holders.push_back({.node = static_cast<std::uint16_t>(bucket % nodes), .read_share = 1.0});
    slice.bytes = 100;
    slice.reads = load(bucket);
    homes.push_back({slice.holders[0].node});
    model.slices.push_back(slice);
  }
  model.homes = std::make_shared<std::vector<NodeList>>(std::move(homes));
  model.round = 1;
  return model;
}

std::size_t rows_of(const BalanceModel& model) {
  std::size_t rows = 0;
  for (const Slice& slice : model.slices) rows += rows_of(model, slice);
  return rows;
}

TEST_CASE("algorithms: a step needs no more rows of the table of overrides than there are") {
  for (const BalancingAlgorithm* algorithm : algorithms()) {
    CAPTURE(algorithm->name());
    for (const std::size_t rows_max : {std::size_t{0}, std::size_t{3}, SIZE_MAX}) {
      BalanceModel model = homely_model(64, 4, [](std::uint32_t bucket) { return bucket % 4 == 0 ? 40.0 : 10.0; });
      model.rows_max = rows_max;
      model.is_requested = true;
      Memory memory;
      Random random(1);
      carry_out(algorithm->step(model, memory, random), model);
      CHECK(rows_of(model) <= rows_max);
      if (algorithm->name() == "descent") CHECK(rows_of(model) >= std::min<std::size_t>(rows_max, 8));
    }
  }
}

TEST_CASE("descent sends cold slices home when the table of overrides is nearly full") {
  // Buckets 0 to 15 are not at home; those of node 0 are hot from bucket 16 on.
  BalanceModel model = homely_model(64, 4, [](std::uint32_t bucket) {
    if (bucket < 16) return 1.0 + bucket;
    return bucket % 4 == 0 ? 40.0 : 20.0;
  });
  for (std::uint32_t bucket = 0; bucket < 16; ++bucket) model.slices[bucket].holders[0].node ^= 2;
  const BalancingAlgorithm& descent = *find_algorithm("descent");
  const auto moved_home = [&](std::size_t rows_max, std::uint64_t bytes_max, const Memory& remembered) {
    model.rows_max = rows_max;
    model.step_bytes_max = bytes_max;
    Memory memory = remembered;
    Random random(1);
    std::vector<std::uint32_t> buckets;
    for (const Move& move : descent.step(model, memory, random).moves) {
      if (move.reason == MoveReason::Home) buckets.push_back(move.range.begin);
    }
    return buckets;
  };
  CHECK(moved_home(100, 100'000, {}).empty());
  const std::vector<std::uint32_t> home = moved_home(18, 2'000, {});
  REQUIRE(home.size() >= 2);
  CHECK(std::is_sorted(home.begin(), home.end()));  // The coldest first.
  // A slice does not go back to a node that it left less than 60 rounds ago.
  Memory memory;
  for (const Slice& slice : model.slices) {
    const std::uint16_t other = slice.holders[0].node ^ 2;
    memory.slices.push_back({.range = slice.range,
                             .level = slice.reads,
                             .load = slice.reads,
                             .moved_round = slice.range.begin % 2 * 100,
                             .moved_from = other});
  }
  model.round = 159;
  CHECK(moved_home(18, 2'000, memory).empty());
  model.round = 160;
  CHECK(moved_home(18, 2'000, memory) == home);
}

TEST_CASE("descent sends no slice home that it has moved in the same step") {
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    BalanceModel model = uneven_model(2, seed);
    std::vector<NodeList> homes;
    for (Slice& slice : model.slices) {
      slice.in_transfer = false;
      const NodeList away{static_cast<std::uint16_t>(slice.range.begin % 12),
                          static_cast<std::uint16_t>((slice.range.begin + 1) % 12)};
      homes.insert(homes.end(), slice.range.size(), away);
    }
    model.homes = std::make_shared<std::vector<NodeList>>(std::move(homes));
    model.rows_max = rows_of(model) + 10;
    model.step_bytes_max = model.bytes();
    Memory memory;
    Random random(1);
    std::set<std::uint32_t> touched;
    std::size_t home = 0;
    for (const Move& move : find_algorithm("descent")->step(model, memory, random).moves) {
      const bool is_new = touched.insert(move.range.begin).second;
      if (move.reason != MoveReason::Home) continue;
      ++home;
      CHECK(is_new);
    }
    CHECK(home > 0);
  }
}

TEST_CASE("descent does not take loads that alternate for a trend") {
  BalanceModel model = homely_model(64, 4, [](std::uint32_t) { return 10.0; });
  model.step_bytes_max = 0;
  Memory memory;
  Random random(1);
  double measured = 0.0;
  for (std::uint64_t round = 1; round <= 20; ++round) {
    model.round = round;
    // Nodes 0 and 1 are hot in turns.
    for (Slice& slice : model.slices) slice.reads = slice.range.begin % 4 == round % 2 ? 15.0 : 10.0;
    measured = imbalance(model, node_loads(model));
    const Plan plan = find_algorithm("descent")->step(model, memory, random);
    if (round > 4) CHECK(plan.imbalance_before < measured);
  }
  // A load that goes on rising is a trend.
  for (std::uint64_t round = 21; round <= 26; ++round) {
    model.round = round;
    for (Slice& slice : model.slices) {
      const double rise = static_cast<double>(round - 20);
      slice.reads = slice.range.begin % 4 == 0 ? 10.0 + 2.0 * rise : 10.0;
    }
    measured = imbalance(model, node_loads(model));
    const Plan plan = find_algorithm("descent")->step(model, memory, random);
    if (round > 24) CHECK(plan.imbalance_before > measured + 0.02);
  }
}

TEST_CASE("descent expects that a load which has jumped stays where it is") {
  BalanceModel model = homely_model(64, 4, [](std::uint32_t) { return 10.0; });
  model.step_bytes_max = 0;
  Memory memory;
  Random random(1);
  for (std::uint64_t round = 1; round <= 8; ++round) {
    model.round = round;
    // What is hot changes in round 3. Node 1 goes on with a tenth of what it had.
    for (Slice& slice : model.slices) slice.reads = slice.range.begin % 4 == 1 ? (round < 3 ? 100.0 : 10.0) : 10.0;
    const Plan plan = find_algorithm("descent")->step(model, memory, random);
    if (round > 4) CHECK(plan.imbalance_before < 1.5);
    if (round > 5) CHECK(plan.imbalance_before < 1.05);
  }
}

TEST_CASE("descent moves no slice again within the cool-down, and none back") {
  TraceOptions options{.buckets = 2048, .nodes = 8, .operations = 80'000, .seed = 3};
  const auto trace = make_trace("moving-hotspot", options);
  BalanceModel model = empty_model(options, 1);
  const BalancingAlgorithm& descent = *find_algorithm("descent");
  Random random(2);
  carry_out(descent.initialise(model, random), model);
  model.step_bytes_max = model.bytes() / 50;
  Memory memory;
  std::vector<double> operations(options.buckets);
  std::vector<std::uint64_t> moved(options.buckets, 0);
  std::vector<std::uint16_t> from(options.buckets, UINT16_MAX);
  std::size_t moves = 0;
  for (std::uint64_t round = 1; round < 120; ++round) {
    trace->fill(round, operations);
    for (Slice& slice : model.slices) {
      slice.reads = 0.0;
      for (std::uint32_t bucket = slice.range.begin; bucket < slice.range.end; ++bucket)
        slice.reads += operations[bucket];
    }
    model.round = round;
    const Plan plan = descent.step(model, memory, random);
    for (const Move& move : plan.moves) {
      if (move.kind != MoveKind::Place) continue;
      ++moves;
      for (std::uint32_t bucket = move.range.begin; bucket < move.range.end; ++bucket) {
        CHECK((moved[bucket] == 0 || round >= moved[bucket] + 6));
        CHECK(from[bucket] != move.to);
        moved[bucket] = round;
        from[bucket] = move.from;
      }
    }
    carry_out(plan, model);
  }
  CHECK(moves > 50);
}

}  // namespace
}  // namespace fjord::balancer
