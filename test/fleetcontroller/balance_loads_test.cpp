// Loads computed from the counts of storage nodes: no operation counts twice, and none is lost (I23).

#include "balance_loads.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "balance_model.h"

namespace fjord::fleetcontroller {
namespace {

/// Returns an answer in which bucket i has (i + 1) * `count` reads, and half as many writes of 1 us each.
rpc::GetLoadsReply answer(std::uint64_t incarnation, std::int64_t at_s, unsigned bits, std::uint64_t count) {
  rpc::GetLoadsReply reply;
  reply.incarnation = incarnation;
  reply.began_us = 1'000'000;
  reply.now_us = at_s * 1'000'000;
  reply.bits = bits;
  for (std::uint64_t i = 0; i < std::uint64_t{1} << bits; ++i) {
    rpc::BucketLoad load;
    load.bucket = i;
    load.reads = (i + 1) * count;
    load.writes = load.reads / 2;
    load.read_ns = 1000 * load.reads;
    load.write_ns = 1000 * load.writes;
    load.stored_bytes = 10 * i;
    reply.buckets.push_back(load);
    reply.total.reads += load.reads;
    reply.total.writes += load.writes;
    reply.total.read_ns += load.read_ns;
    reply.total.write_ns += load.write_ns;
  }
  return reply;
}

double sum_of_reads(const NodeLoads& loads) {
  double sum = 0;
  for (const LoadRate& rate : loads.rates) sum += rate.reads;
  return sum;
}

std::uint64_t operations(const rpc::GetLoadsReply& reply) { return reply.total.reads + reply.total.writes; }

}  // namespace

TEST_CASE("balance loads: the first answer is where counting begins, the next one gives rates") {
  BalanceLoads loads;
  REQUIRE(loads.add(2, answer(7, 10, 2, 100)));
  REQUIRE(loads.of(2) != nullptr);
  CHECK_FALSE(loads.of(2)->has_rates);
  REQUIRE(loads.add(2, answer(7, 14, 2, 300)));
  const NodeLoads& node = *loads.of(2);
  CHECK(node.has_rates);
  CHECK(node.rates[0].reads == Approx(50));
  CHECK(node.rates[3].reads == Approx(200));
  CHECK(node.rates[3].read_ns == Approx(200'000));
  CHECK(node.rates[3].writes == Approx(100));
  CHECK(sum_of_reads(node) == Approx(node.total.reads));
  CHECK(node.stored_bytes[3] == 30);
  CHECK(loads.of(1) == nullptr);
}

TEST_CASE("balance loads: an answer that comes twice, late or not at all changes no sum") {
  BalanceLoads loads;
  REQUIRE(loads.add(0, answer(7, 10, 2, 100)));
  REQUIRE(loads.add(0, answer(7, 20, 2, 300)));
  CHECK_FALSE(loads.add(0, answer(7, 20, 2, 300)));
  CHECK_FALSE(loads.add(0, answer(7, 15, 2, 200)));
  // The answers at 30 s and 40 s, which were lost, are not needed.
  REQUIRE(loads.add(0, answer(7, 50, 2, 1000)));
  const NodeLoads& node = *loads.of(0);
  CHECK(node.counted_before == operations(answer(7, 10, 2, 100)));
  CHECK(node.counted_before + node.counted == operations(answer(7, 50, 2, 1000)));
  CHECK(node.rates[0].reads == Approx(700.0 / 30));
}

TEST_CASE("balance loads: everything that a restarted process has counted is new") {
  BalanceLoads loads;
  REQUIRE(loads.add(0, answer(7, 10, 2, 100)));
  REQUIRE(loads.add(0, answer(7, 20, 2, 300)));
  // The clock of a new incarnation may show any time.
  REQUIRE(loads.add(0, answer(8, 5, 2, 40)));
  const NodeLoads& node = *loads.of(0);
  CHECK(node.rates[0].reads == Approx(10));
  CHECK(node.counted_before == 0);
  CHECK(node.counted == operations(answer(8, 5, 2, 40)));
}

TEST_CASE("balance loads: a change of the distribution bits loses no load") {
  for (const unsigned bits : {1U, 4U}) {
    BalanceLoads loads;
    REQUIRE(loads.add(0, answer(7, 10, 2, 100)));
    rpc::GetLoadsReply next = answer(7, 20, bits, 0);
    // The node now counts by buckets of `bits` bits. Meanwhile each bucket of 2 bits got 200 more reads.
    std::fill(next.buckets.begin(), next.buckets.end(), rpc::BucketLoad{});
    for (std::uint64_t i = 0; i < 16; ++i) {
      rpc::BucketLoad& load = next.buckets[i & ((1U << bits) - 1)];
      load.bucket = i & ((1U << bits) - 1);
      load.reads += ((i & 3) + 1) * 25 + 50;
    }
    next.total = answer(7, 10, 2, 100).total;
    next.total.reads += 800;
    REQUIRE(loads.add(0, next));
    const NodeLoads& node = *loads.of(0);
    CHECK(node.bits == bits);
    CHECK(node.rates.size() == std::size_t{1} << bits);
    CHECK(sum_of_reads(node) == Approx(80));
    CHECK(node.total.reads == Approx(80));
    CHECK(node.rates[1].reads == Approx(80.0 / static_cast<double>(node.rates.size())));
  }
}

TEST_CASE("balance loads: searches are load of the replica that had them, and their matches are operations") {
  BalanceLoads loads;
  for (std::uint16_t node = 0; node < 2; ++node) {
    for (const std::uint64_t count : {0, 10}) {
      rpc::GetLoadsReply reply = answer(7, 10 + static_cast<std::int64_t>(count), 1, 0);
      reply.buckets[1].search_candidates = reply.total.search_candidates = (node == 0 ? 100 : 300) * count;
      reply.buckets[1].search_ns = reply.total.search_ns = (node == 0 ? 2000 : 5000) * count;
      REQUIRE(loads.add(node, reply));
    }
  }
  CHECK(loads.of(1)->operations == 3000);
  CHECK(loads.of(1)->counted == 3000);
  BalancePlaces places;
  ClusterState state = ClusterState::parse("version:3 bits:1 distributor:1 storage:2").value();
  places.update(ClusterView::make(std::move(state), DistributionConfig::flat(2, 2)));
  const BalanceMoves last;
  ModelInput input{.places = places, .loads = loads, .last = last, .full = {}, .measure = LoadMeasure::Time};
  CHECK(balancer::node_loads(make_model(input)) == std::vector<double>{2000, 5000});
  CHECK(make_model(input).slices[1].reads == 0);
  CHECK(make_model(input).slices[1].writes == 0);
  CHECK(make_model(input).slices[0].load() == 0);
  input.measure = LoadMeasure::Operations;
  CHECK(balancer::node_loads(make_model(input)) == std::vector<double>{100'000, 300'000});
}

TEST_CASE("balance loads: work is by number and size of operations, whatever time they took") {
  const LoadRate rate{.read_ns = 5e9,
                      .write_ns = 5e9,
                      .reads = 100,
                      .writes = 10,
                      .search_ns = 5e9,
                      .candidates = 50,
                      .read_bytes = 80'000,
                      .written_bytes = 8'000};
  const MeasuredLoad work = measured(rate, LoadMeasure::Work);
  CHECK(work.reads == Approx(3'580'000 / 35.0));
  CHECK(work.writes == Approx(774'000 / 35.0));
  CHECK(work.searches == Approx(50'000 / 35.0));
  CHECK(work.sum() == Approx(4'404'000 / 35.0));
  CHECK(measured(rate, LoadMeasure::Time).sum() == Approx(15e9));
  CHECK(measured(rate, LoadMeasure::Operations).sum() == Approx(160'000));
}

TEST_CASE("balance loads: bytes that were read and written become rates") {
  BalanceLoads loads;
  for (const std::uint64_t count : {0, 10}) {
    rpc::GetLoadsReply reply = answer(7, 10 + static_cast<std::int64_t>(count), 1, 0);
    reply.buckets[1].read_bytes = reply.total.read_bytes = 300 * count;
    reply.buckets[1].written_bytes = reply.total.written_bytes = 70 * count;
    REQUIRE(loads.add(0, reply));
  }
  CHECK(loads.of(0)->rates[1].read_bytes == Approx(300));
  CHECK(loads.of(0)->rates[1].written_bytes == Approx(70));
  CHECK(loads.of(0)->total.read_bytes == Approx(300));
}

TEST_CASE("balance loads: reads at random belong to all replicas, other reads to the replica that had them") {
  BalanceLoads loads;
  for (std::uint16_t node = 0; node < 2; ++node) {
    for (const std::uint64_t count : {0, 10}) {
      rpc::GetLoadsReply reply = answer(7, 10 + static_cast<std::int64_t>(count), 1, 0);
      reply.buckets[0].read_ns = reply.total.read_ns = node * 600 * count;
      reply.buckets[0].write_ns = reply.total.write_ns = 50 * count;
      REQUIRE(loads.add(node, reply));
    }
  }
  BalancePlaces places;
  ClusterState state = ClusterState::parse("version:3 bits:1 distributor:1 storage:2 features:read_shares").value();
  places.update(ClusterView::make(std::move(state), DistributionConfig::flat(2, 2)));
  const BalanceMoves last;
  ModelInput input{.places = places, .loads = loads, .last = last, .full = {}, .measure = LoadMeasure::Time};
  CHECK(balancer::node_loads(make_model(input)) == std::vector<double>{350, 350});
  input.reads_at_random = false;
  CHECK(balancer::node_loads(make_model(input)) == std::vector<double>{50, 650});
  CHECK(make_model(input).slices[0].reads == 0);  // Nothing that read shares could move.
}

TEST_CASE("balance loads: the model knows where buckets lie without the table of overrides") {
  const auto places_of = [](std::string_view text) {
    BalancePlaces places;
    places.update(ClusterView::make(ClusterState::parse(text).value(), DistributionConfig::flat(3, 1)));
    return places;
  };
  const NodeList home = places_of("version:3 bits:1 distributor:1 storage:3").holders()[1];
  const int other = (home[0] + 1) % 3;
  const BalancePlaces places =
      places_of(fmt::format("version:4 bits:1 distributor:1 storage:3 except:1={}>{}", home[0], other));
  REQUIRE(places.holders()[1][0] == other);
  const BalanceLoads loads;
  const BalanceMoves last;
  const balancer::BalanceModel model = make_model({.places = places, .loads = loads, .last = last, .full = {}});
  REQUIRE(model.homes != nullptr);
  CHECK((*model.homes)[1][0] == home[0]);
  CHECK(rows_of(model, model.slices[0]) == 0);
  CHECK(rows_of(model, model.slices[1]) == 1);
  CHECK(model.rows_max == kBalanceRowsMax);
}

TEST_CASE("balance loads: what a node had of a bucket that has left it counts for the replica that has just come") {
  BalancePlaces places;
  ClusterState state = ClusterState::parse("version:3 bits:1 distributor:1 storage:3").value();
  places.update(ClusterView::make(std::move(state), DistributionConfig::flat(3, 2)));
  const NodeList holders = places.holders()[0];
  REQUIRE(holders.size() == 2);
  const auto left = static_cast<std::uint16_t>(3 - holders[0] - holders[1]);
  BalanceLoads loads;
  const std::map<std::uint16_t, std::uint64_t> searches = {{holders[0], 200}, {holders[1], 0}, {left, 500}};
  for (const auto& [node, rate] : searches) {
    for (const std::uint64_t count : {0, 10}) {
      rpc::GetLoadsReply reply = answer(7, 10 + static_cast<std::int64_t>(count), 1, 0);
      reply.buckets[0].search_ns = reply.total.search_ns = rate * count;
      REQUIRE(loads.add(node, reply));
    }
  }
  const BalanceMoves last;
  const balancer::BalanceModel model =
      make_model({.places = places, .loads = loads, .last = last, .full = {}, .measure = LoadMeasure::Time});
  CHECK(model.slices[0].holders.find(holders[0])->own_load == Approx(200));
  CHECK(model.slices[0].holders.find(holders[1])->own_load == Approx(500));
}

}  // namespace fjord::fleetcontroller
