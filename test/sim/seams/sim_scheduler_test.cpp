#include "fjord/sim/sim_scheduler.h"

#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace fjord::sim {
namespace {

/// Runs two executors that post to each other with random delays; returns the order and times of their tasks.
std::string run_scenario(std::uint64_t seed, std::uint64_t* hash = nullptr) {
  SimScheduler sim(seed);
  auto node = sim.make_node_scheduler("node");
  auto a = node->make_executor("a");
  auto b = node->make_executor("b");
  std::string order;
  for (int i = 0; i < 50; ++i) {
    a->post([&] { order += 'a'; });
    b->post([&] { order += 'b'; });
    a->post_after(milliseconds(1), [&] { order += 'A'; });
    b->post_after(milliseconds(1), [&] {
      order += 'B';
      sim.trace("B ran");
    });
  }
  sim.run_for(milliseconds(2));
  if (hash != nullptr) *hash = sim.trace_hash();
  return order;
}

TEST_CASE("sim scheduler: a seed decides how executors interleave") {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  CHECK(run_scenario(1, &first) == run_scenario(1, &second));
  CHECK(first == second);
  std::set<std::string> orders;
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    orders.insert(run_scenario(seed, &first));
    hashes.insert(first);
  }
  CHECK(orders.size() == 20);
  CHECK(hashes.size() == 20);
}

TEST_CASE("sim scheduler: timers of two executors at one instant run in either order") {
  std::set<char> first;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::string order = run_scenario(seed);
    first.insert(order[order.find_first_of("AB")]);
  }
  CHECK(first.size() == 2);
}

TEST_CASE("sim scheduler: the trace hash notices a changed line and kept lines say when and where") {
  const auto run = [](std::string_view line, std::deque<std::string>* kept) {
    SimScheduler sim(1);
    sim.keep_trace(2);
    auto node = sim.make_node_scheduler("storage.1");
    auto executor = node->make_executor("stripe0");
    sim.trace("dropped from the kept ones");
    executor->post_after(microseconds(500), [&] { sim.trace(line); });
    sim.run_for(milliseconds(1));
    sim.trace("end");
    if (kept != nullptr) *kept = sim.kept_trace();
    return sim.trace_hash();
  };
  std::deque<std::string> kept;
  CHECK(run("x", &kept) == run("x", nullptr));
  CHECK(run("x", nullptr) != run("y", nullptr));
  CHECK(kept == std::deque<std::string>{"500 storage.1/stripe0: x", "1000 world: end"});
}

TEST_CASE("sim scheduler: time jumps from event to event and stops at the end of a run") {
  SimScheduler sim(1);
  bool ran = false;
  sim.outside().post_after(seconds(5), [&] { ran = true; });
  sim.run_for(seconds(4));
  CHECK_FALSE(ran);
  CHECK(sim.clock().now() == MonotonicTime{4'000'000});
  sim.run_for(seconds(1));
  CHECK(ran);
  CHECK(sim.clock().wall_now().us == SimClock::kDefaultWallStart.us + 5'000'000);
  CHECK_FALSE(sim.run_one());
}

TEST_CASE("sim scheduler: run_until says whether the condition came true within the limit") {
  SimScheduler sim(1);
  int count = 0;
  std::function<void()> tick = [&] {
    ++count;
    sim.outside().post_after(seconds(1), tick);
  };
  sim.outside().post(tick);
  CHECK(sim.run_until([&] { return count == 4; }, seconds(10)));
  CHECK(count == 4);
  CHECK_FALSE(sim.run_until([&] { return count == 1000; }, seconds(10)));
  CHECK(count >= 13);
  SimScheduler idle(1);
  CHECK_FALSE(idle.run_until([] { return false; }, seconds(1)));
  CHECK(idle.run_until([] { return true; }, seconds(0)));
}

TEST_CASE("sim scheduler: nothing of a killed process runs again, and other processes go on") {
  SimScheduler sim(1);
  auto first = sim.make_node_scheduler("node");
  auto other = sim.make_node_scheduler("other");
  auto executor = first->make_executor("a");
  auto living = other->make_executor("b");
  int dead_ran = 0;
  int living_ran = 0;
  auto token = std::make_shared<int>(0);
  executor->post([&dead_ran, token] { ++dead_ran; });
  executor->post_after(seconds(1), [&dead_ran, token] { ++dead_ran; });
  living->post([&] {
    ++living_ran;
    executor->post([&dead_ran] { ++dead_ran; });
  });
  living->post_after(seconds(1), [&] { ++living_ran; });
  first->kill();
  CHECK_FALSE(first->alive());
  CHECK(token.use_count() == 1);
  auto late = first->make_executor("late");
  late->post([&] { ++dead_ran; });
  auto second = sim.make_node_scheduler("node");  // The next incarnation reuses the timer slots of the old one.
  auto reborn = second->make_executor("a");
  int reborn_ran = 0;
  reborn->post_after(seconds(2), [&] { ++reborn_ran; });
  sim.run_for(milliseconds(1500));
  CHECK(reborn_ran == 0);
  sim.run_for(seconds(1));
  CHECK(dead_ran == 0);
  CHECK(living_ran == 2);
  CHECK(reborn_ran == 1);
}

TEST_CASE("sim scheduler: a task may kill its own process") {
  SimScheduler sim(1);
  auto node = sim.make_node_scheduler("node");
  auto executor = node->make_executor("a");
  int after = 0;
  bool finished = false;
  executor->post([&] {
    executor->post([&] { ++after; });
    node->kill();
    finished = true;
  });
  executor->post([&] { ++after; });
  sim.run_for(seconds(1));
  CHECK(finished);
  CHECK(after == 0);
}

/// An object whose destructor destroys an executor, posts and kills, as an operation that ends with its callbacks.
struct Destructive {
  std::unique_ptr<Executor> executor;
  Executor* poster = nullptr;
  SimNodeScheduler* victim = nullptr;
  ~Destructive() {
    if (poster != nullptr) poster->post([] {});
    if (victim != nullptr) victim->kill();
  }
};

TEST_CASE("sim scheduler: the captures of dropped tasks may post, kill and destroy executors") {
  SimScheduler sim(1);
  auto node = sim.make_node_scheduler("node");
  auto other = sim.make_node_scheduler("other");
  auto a = node->make_executor("a");
  auto on_other = other->make_executor("x");
  for (int i = 0; i < 10; ++i) {
    auto destructive = std::make_unique<Destructive>();
    destructive->executor = node->make_executor("inner");
    destructive->executor->post([] {});
    destructive->poster = a.get();
    destructive->victim = i % 2 == 0 ? other.get() : node.get();
    Executor& where = i % 3 == 0 ? *on_other : *a;
    if (i % 4 == 0) {
      where.post_after(seconds(1), [held = std::move(destructive)] { FAIL("ran"); });
    } else {
      where.post([held = std::move(destructive)] { FAIL("ran"); });
    }
  }
  node->kill();
  CHECK_FALSE(other->alive());
  sim.run_for(seconds(2));
  CHECK(sim.events_run() == 0);
}

TEST_CASE("sim clocks: a node's wall clock is skewed and jumps while its monotonic time passes evenly") {
  SimScheduler sim(1);
  SimNodeClock clock(sim.clock(), {.wall_skew = seconds(-3), .monotonic_offset = seconds(100)});
  const MonotonicTime start = clock.now();
  CHECK(start == MonotonicTime{100'000'000});
  CHECK(clock.wall_now().us == SimClock::kDefaultWallStart.us - 3'000'000);
  sim.run_for(seconds(1));
  clock.jump_wall(seconds(-10));
  CHECK(clock.now() - start == seconds(1));
  CHECK(clock.wall_now().us == SimClock::kDefaultWallStart.us - 12'000'000);
  clock.set_wall_skew(Duration(5));
  CHECK(clock.wall_now().us == sim.clock().wall_now().us + 5);
}

TEST_CASE("sim scheduler: a process that is paused runs nothing, and afterwards everything that was due, in order") {
  SimScheduler sim(1);
  auto node = sim.make_node_scheduler("node");
  auto executor = node->make_executor("e");
  std::vector<int> ran;
  executor->post_after(seconds(3), [&] { ran.push_back(3); });
  executor->post_after(seconds(1), [&] { ran.push_back(1); });
  executor->post_after(seconds(20), [&] { ran.push_back(20); });
  node->pause();
  executor->post([&] { ran.push_back(0); });
  sim.run_for(seconds(10));
  CHECK(ran.empty());
  node->resume();
  sim.run_for(milliseconds(1));
  CHECK(ran == std::vector<int>{0, 1, 3});
  sim.run_for(seconds(20));
  CHECK(ran == std::vector<int>{0, 1, 3, 20});

  executor->post([&] { FAIL("ran after the process was killed"); });
  node->pause();
  sim.run_for(seconds(1));
  node->kill();
  node->resume();
  sim.run_for(seconds(1));
}

TEST_CASE("sim scheduler: a task that takes its time holds up its executor and no other") {
  SimScheduler sim(1);
  auto node = sim.make_node_scheduler("node");
  auto slow = node->make_executor("slow");
  auto other = node->make_executor("other");
  std::vector<std::pair<int, std::int64_t>> ran;
  const auto note = [&](int what) { ran.emplace_back(what, sim.clock().now().us / 1'000'000); };
  slow->post([&] { sim.stall_running(seconds(5)); });
  slow->post_after(seconds(2), [&] { note(2); });
  slow->post_after(seconds(1), [&] { note(1); });
  slow->post_after(seconds(7), [&] { note(7); });
  other->post_after(seconds(3), [&] { note(3); });
  sim.run_for(seconds(10));
  CHECK(ran == std::vector<std::pair<int, std::int64_t>>{{3, 3}, {1, 5}, {2, 5}, {7, 7}});
}

TEST_CASE("sim scheduler: how many events a second", "[.benchmark]") {
  SimScheduler sim(1);
  auto node = sim.make_node_scheduler("node");
  std::vector<std::unique_ptr<Executor>> executors;
  for (int i = 0; i < 100; ++i) executors.push_back(node->make_executor("e"));
  std::uint64_t left = 3'000'000;
  std::function<void(std::size_t)> hop = [&](std::size_t i) {
    if (left == 0) return;
    --left;
    const std::size_t next = (i * 7 + 3) % executors.size();
    if (left % 4 == 0) {
      executors[next]->post_after(milliseconds(1), [&hop, next] { hop(next); });
    } else {
      executors[next]->post([&hop, next] { hop(next); });
    }
  };
  for (std::size_t i = 0; i < 2000; ++i) executors[i % 100]->post([&hop, i] { hop(i); });
  const auto start = std::chrono::steady_clock::now();
  while (sim.run_one()) {
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  WARN(static_cast<double>(sim.events_run()) / took.count() << " events/s");
  CHECK(left == 0);
}

}  // namespace
}  // namespace fjord::sim
