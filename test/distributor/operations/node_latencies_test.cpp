#include "operations/node_latencies.h"

#include <catch2/catch.hpp>
#include <functional>

#include "../distributor_world.h"

namespace fjord::test {
namespace {

using distributor::NodeLatencies;
using Kind = NodeLatencies::Kind;
using Nodes = std::vector<std::uint16_t>;

/// Three storage nodes, each with one batch of each kind every 20 ms; a batch takes as long as `us` says.
struct LatencyWorld {
  MetricRegistry metrics;
  NodeLatencies latencies{metrics};
  MonotonicTime now{1'000'000};
  std::function<std::int64_t(std::uint16_t node, Kind kind)> us = [](std::uint16_t, Kind) { return 300; };
  std::multimap<std::int64_t, std::pair<std::uint16_t, std::uint64_t>> under_way;

  void run(Duration duration) {
    const MonotonicTime end = now + duration;
    while (now < end) {
      for (std::uint16_t node = 0; node < 3; ++node) {
        for (const Kind kind : {Kind::Read, Kind::Write}) {
          const std::int64_t takes = us(node, kind);
          if (takes < 0) continue;  // Negative: the node gets no request.
          under_way.emplace(now.us + takes, std::pair(node, latencies.sent(node, kind, 1, now)));
        }
      }
      const MonotonicTime next = now + milliseconds(20);
      while (!under_way.empty() && under_way.begin()->first <= next.us) {
        const auto [at, call] = *under_way.begin();
        under_way.erase(under_way.begin());
        latencies.answered(call.first, call.second, true, {at});
      }
      now = next;
      (void)latencies.report(now);
    }
  }
  bool avoids(std::uint16_t node) {
    const Nodes left = latencies.without_slow({0, 1, 2}, now);
    return std::find(left.begin(), left.end(), node) == left.end();
  }
  /// Returns the ms until the node is avoided or not, as `avoided` says; -1 after `limit`.
  std::int64_t avoided_after(std::uint16_t node, bool avoided, Duration limit) {
    const MonotonicTime start = now;
    while (now - start < limit) {
      if (avoids(node) == avoided) return (now - start).count() / 1000;
      run(milliseconds(20));
    }
    return -1;
  }
};

}  // namespace

TEST_CASE("node latencies: a node a hundred times slower is avoided soon, and comes back by itself") {
  const bool reads = GENERATE(true, false);
  LatencyWorld world;
  world.run(seconds(5));
  CHECK_FALSE(world.avoids(1));
  world.us = [&](std::uint16_t node, Kind kind) {
    return node == 1 && (kind == Kind::Read) == reads ? std::int64_t{30'000} : std::int64_t{300};
  };
  const std::int64_t noticed = world.avoided_after(1, true, seconds(20));
  CHECK(noticed > 0);
  CHECK(noticed < 3000);
  CHECK_FALSE(world.avoids(0));
  CHECK_FALSE(world.avoids(2));
  world.run(seconds(60));
  CHECK(world.avoids(1));
  const std::vector<rpc::NodeLatency> report = world.latencies.report(world.now);
  REQUIRE(report.size() == 3);
  CHECK(report[1].suspect);
  CHECK((reads ? report[1].read_us : report[1].write_us) == Approx(30'000).epsilon(0.1));
  CHECK((reads ? report[1].peers_read_us : report[1].peers_write_us) == Approx(300).epsilon(0.1));
  CHECK_FALSE(report[0].suspect);
  world.us = [](std::uint16_t, Kind) { return 300; };
  const std::int64_t healed = world.avoided_after(1, false, seconds(60));
  CHECK(healed >= 5000);
  CHECK(healed < 15'000);
}

TEST_CASE("node latencies: a node that takes batches and answers none is avoided") {
  LatencyWorld world;
  world.run(seconds(2));
  world.us = [](std::uint16_t node, Kind) { return node == 2 ? std::int64_t{10'000'000} : std::int64_t{300}; };
  const std::int64_t noticed = world.avoided_after(2, true, seconds(20));
  CHECK(noticed > 0);
  CHECK(noticed < 4000);
}

TEST_CASE("node latencies: neither noise below the limit, nor a short stall, nor a slow cluster makes a suspect") {
  LatencyWorld world;
  SECTION("noise") {
    world.us = [](std::uint16_t node, Kind) { return node == 1 ? 9'000 : 50; };
    world.run(seconds(20));
  }
  SECTION("a stall of half a second now and then") {
    for (int i = 0; i < 20; ++i) {
      world.us = [](std::uint16_t, Kind) { return 300; };
      world.run(seconds(3));
      world.us = [](std::uint16_t node, Kind) { return node == 1 ? 500'000 : 300; };
      world.run(milliseconds(20));
    }
  }
  SECTION("all are slow") {
    world.us = [](std::uint16_t node, Kind) { return 100'000 + 50'000 * node; };
    world.run(seconds(20));
  }
  SECTION("one of ten answers takes long") {
    world.us = [n = 0](std::uint16_t node, Kind) mutable { return node == 1 && ++n % 10 == 0 ? 200'000 : 300; };
    world.run(seconds(20));
  }
  CHECK_FALSE(world.avoids(0));
  CHECK_FALSE(world.avoids(1));
  CHECK_FALSE(world.avoids(2));
}

TEST_CASE("node latencies: without others to compare it with, nobody is slow") {
  LatencyWorld world;
  world.us = [](std::uint16_t node, Kind) { return node == 1 ? 100'000 : -1; };
  world.run(seconds(20));
  CHECK_FALSE(world.avoids(1));
}

TEST_CASE("node latencies: who hovers around the limit does not flap, and who is not asked any more is forgotten") {
  LatencyWorld world;
  world.us = [](std::uint16_t node, Kind) { return node == 1 ? 50'000 : 300; };
  world.run(seconds(10));
  REQUIRE(world.avoids(1));
  world.us = [](std::uint16_t node, Kind) { return node == 1 ? 7'000 : 300; };  // 7 ms is neither slow nor normal.
  world.run(seconds(30));
  CHECK(world.avoids(1));
  world.us = [](std::uint16_t node, Kind) { return node == 1 ? -1 : 300; };
  world.run(seconds(20));
  CHECK(world.avoids(1));
  world.run(seconds(20));
  CHECK_FALSE(world.avoids(1));
}

TEST_CASE("node latencies: what the fleet controller marks is avoided too, unless nothing else is left") {
  LatencyWorld world;
  world.run(seconds(2));
  world.latencies.set_marked({0});
  CHECK(world.avoids(0));
  CHECK(world.latencies.without_slow({0}, world.now) == Nodes{0});
  CHECK(world.latencies.wants_probe(0, world.now));
  CHECK_FALSE(world.latencies.wants_probe(0, world.now));  // Node 0 was probed just before.
  CHECK_FALSE(world.latencies.wants_probe(1, world.now));
  world.run(seconds(1));
  CHECK(world.latencies.wants_probe(0, world.now));
  world.latencies.set_marked({});
  CHECK_FALSE(world.avoids(0));
  world.us = [](std::uint16_t node, Kind) { return node == 1 ? 50'000 : 300; };
  world.run(seconds(5));
  REQUIRE(world.avoids(1));
  world.latencies.forget(1);
  CHECK_FALSE(world.avoids(1));
}

TEST_CASE("distributor: writes that a slow node has to take use up a part of the budget only") {
  DistributorWorld world(4, 2, 4);
  world.give_state(1);
  std::uint64_t sequence = 0;
  std::vector<std::string> of_slow;
  std::vector<std::string> of_others;
  for (int n = 0; of_slow.size() < 40 || of_others.size() < 40; ++n) {
    const std::string id = "id:n:item::" + std::to_string(n);
    const std::vector<std::uint16_t> nodes = world.ideal(bucket_of_id(id, 4));
    const bool has_slow = std::find(nodes.begin(), nodes.end(), 3) != nodes.end();
    (has_slow ? of_slow : of_others).push_back(id);
    REQUIRE(world.ask(put_batch(id, ++sequence)).results.at(0).status);
  }
  REQUIRE(world.tunables().set("distributor.pending_operations_max", 80));
  world.poll([](rpc::Poll& poll) {
    poll.info.state_version = 1;
    poll.slow_storage = {3};
  });
  world.mute[3] = true;
  std::size_t refused = 0;
  std::vector<std::shared_ptr<std::optional<rpc::ExecuteReply>>> waiting;
  for (std::size_t i = 0; i < 40; ++i) {
    auto answer = world.send(put_batch(of_slow[i], ++sequence));
    world.run(milliseconds(2));
    if (!answer->has_value()) {
      waiting.push_back(answer);
      continue;
    }
    ++refused;
    CHECK((*answer)->results.at(0).status.code() == StatusCode::Busy);
    CHECK((*answer)->results.at(0).retry_after_ms > 0);
  }
  CHECK(refused >= 25);
  CHECK(waiting.size() >= 10);
  CHECK(world.counter("fjord_distributor_refused_total", {{"class", "normal"}, {"reason", "slow_node"}}) == refused);
  for (std::size_t i = 0; i < 40; ++i) REQUIRE(world.ask(put_batch(of_others[i], ++sequence)).results.at(0).status);
  world.mute[3] = false;
  world.run(milliseconds(500));
  for (const auto& answer : waiting) {
    REQUIRE(answer->has_value());
    CHECK((*answer)->results.at(0).status);
  }
  CHECK(world.ask(put_batch(of_slow[39], ++sequence)).results.at(0).status);
}

TEST_CASE("distributor: reads leave a slow replica alone, writes do not, and it is read again when it is fast") {
  DistributorWorld world(2, 2);
  world.give_state(1);
  REQUIRE(world.ask(put_batch("id:n:item::0", 1)).results.at(0).status);
  // The transport takes 1 ms to every node; node 1 answers reads 60 ms later.
  bool slow = true;
  std::size_t reads_of_1 = 0;
  std::size_t writes_of_1 = 0;
  std::size_t waited_for_1 = 0;
  world.hook = [&](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (const auto* apply = std::get_if<rpc::Apply>(&request); apply != nullptr && node == 1) {
      const bool is_read = apply->operations.at(0).kind == rpc::OperationKind::Get;
      ++(is_read ? reads_of_1 : writes_of_1);
      if (is_read && slow) ++waited_for_1;
    }
    return std::nullopt;
  };
  world.transport.set_delay_of([&](const rpc::Address& to, const rpc::Request& request) {
    const auto* apply = std::get_if<rpc::Apply>(&request);
    const bool is_slow_read =
        slow && to == "1" && apply != nullptr && apply->operations.at(0).kind == rpc::OperationKind::Get;
    return milliseconds(is_slow_read ? 60 : 1);
  });
  std::vector<std::int64_t> took;
  const auto read_for = [&](Duration duration) {
    took.clear();
    const MonotonicTime end = world.scheduler.clock().now() + duration;
    std::uint64_t sequence = world.scheduler.clock().now().us;
    while (world.scheduler.clock().now() < end) {
      const MonotonicTime start = world.scheduler.clock().now();
      REQUIRE(world.ask(get_batch("id:n:item::0")).results.at(0).status);
      took.push_back((world.scheduler.clock().now() - start).count());
      REQUIRE(world.ask(put_batch("id:n:item::0", ++sequence)).results.at(0).status);
      world.run(milliseconds(3));
    }
  };
  read_for(seconds(4));
  CHECK(*std::max_element(took.begin(), took.end()) >= 60'000);
  writes_of_1 = 0;
  read_for(seconds(20));
  CHECK(*std::max_element(took.begin(), took.end()) < 10'000);
  CHECK(reads_of_1 > 0);
  CHECK(writes_of_1 >= took.size());
  CHECK(world.counter("fjord_distributor_probe_reads_total") > 10);
  slow = false;
  read_for(seconds(15));
  reads_of_1 = 0;
  read_for(seconds(2));
  CHECK(reads_of_1 > took.size() / 4);
}

}  // namespace fjord::test
