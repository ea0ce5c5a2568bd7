// The contract of every Scheduler and its executors; an implementation joins by a fixture.

#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <memory>
#include <vector>

#include "fjord/common/scheduler.h"
#include "fjord/common/turn_pool.h"
#include "fjord/sim/sim_scheduler.h"

namespace fjord {
namespace {

/// A gate that a task opens once. A fixture's wait_for() returns afterwards and sees the effects of the task.
class Gate {
 public:
  void open() {
    open_ = true;
    promise_.set_value();
  }
  bool is_open() const { return open_; }
  void wait() { promise_.get_future().wait(); }

 private:
  std::atomic<bool> open_{false};
  std::promise<void> promise_;
};

class ThreadFixture {
 public:
  Scheduler& scheduler() { return scheduler_; }
  Clock& clock() { return clock_; }
  void wait_for(Gate& gate) { gate.wait(); }

 private:
  ThreadScheduler scheduler_;
  SystemClock clock_;
};

class SimulatedFixture {
 public:
  Scheduler& scheduler() { return *node_; }
  Clock& clock() { return sim_.clock(); }
  void wait_for(Gate& gate) {
    REQUIRE(sim_.run_until([&] { return gate.is_open(); }, seconds(3600)));
  }

 private:
  sim::SimScheduler sim_{7};
  std::unique_ptr<sim::SimNodeScheduler> node_ = sim_.make_node_scheduler("node");
};

/// Executors that share two threads in turns, each in a group of its own.
class TurnFixture {
 public:
  Scheduler& scheduler() { return scheduler_; }
  Clock& clock() { return clock_; }
  void wait_for(Gate& gate) { gate.wait(); }

 private:
  class Turns final : public Scheduler {
   public:
    explicit Turns(const Clock& clock)
        : pool_(
              "turns", clock, threads_, [this](const auto& name) { return threads_.make_executor(name); }, 2) {}
    std::unique_ptr<Executor> make_executor(const std::string&) override { return pool_.make_executor({++groups_, 1}); }

   private:
    ThreadScheduler threads_;
    TurnPool pool_;
    std::uint64_t groups_ = 0;
  };

  SystemClock clock_;
  Turns scheduler_{clock_};
};

/// Executors that share one simulated thread in turns, each in a group of its own.
class SimulatedTurnFixture {
 public:
  Scheduler& scheduler() { return scheduler_; }
  Clock& clock() { return sim_.clock(); }
  void wait_for(Gate& gate) {
    REQUIRE(sim_.run_until([&] { return gate.is_open(); }, seconds(3600)));
  }

 private:
  class Turns final : public Scheduler {
   public:
    Turns(const Clock& clock, Scheduler& threads)
        : pool_(
              "turns", clock, threads, [&threads](const auto& name) { return threads.make_executor(name); }, 1) {}
    std::unique_ptr<Executor> make_executor(const std::string&) override { return pool_.make_executor({++groups_, 1}); }

   private:
    TurnPool pool_;
    std::uint64_t groups_ = 0;
  };

  sim::SimScheduler sim_{7};
  std::unique_ptr<sim::SimNodeScheduler> node_ = sim_.make_node_scheduler("node");
  Turns scheduler_{sim_.clock(), *node_};
};

/// Posts to an executor in its destructor.
class PostsWhenDestroyed {
 public:
  PostsWhenDestroyed(Executor& executor, std::atomic<int>& destroyed) : executor_(executor), destroyed_(destroyed) {}
  ~PostsWhenDestroyed() {
    executor_.post([] {});
    executor_.post_after(milliseconds(1), [] {});
    ++destroyed_;
  }

 private:
  Executor& executor_;
  std::atomic<int>& destroyed_;
};

#define FJORD_EXECUTOR_CASE(name)                                                                   \
  TEMPLATE_TEST_CASE("executor: " name, "[executor]", ThreadFixture, SimulatedFixture, TurnFixture, \
                     SimulatedTurnFixture)

FJORD_EXECUTOR_CASE("posts run in the order of posting") {
  TestType fixture;
  auto executor = fixture.scheduler().make_executor("one");
  std::vector<int> ran;
  Gate done;
  for (int i = 0; i < 1000; ++i) executor->post([&ran, i] { ran.push_back(i); });
  executor->post([&] { done.open(); });
  fixture.wait_for(done);
  REQUIRE(ran.size() == 1000);
  CHECK(std::is_sorted(ran.begin(), ran.end()));
}

FJORD_EXECUTOR_CASE("a task's own posts run after it, and after what was posted before") {
  TestType fixture;
  auto executor = fixture.scheduler().make_executor("one");
  std::vector<int> ran;
  Gate done;
  executor->post([&] {
    executor->post([&] {
      executor->post([&] { done.open(); });
      ran.push_back(2);
    });
    executor->post([&] { ran.push_back(3); });
    ran.push_back(1);
  });
  fixture.wait_for(done);
  CHECK(ran == std::vector<int>{1, 2, 3});
}

FJORD_EXECUTOR_CASE("tasks between two executors keep each sender's order") {
  TestType fixture;
  auto a = fixture.scheduler().make_executor("a");
  auto b = fixture.scheduler().make_executor("b");
  std::vector<int> received;
  Gate done;
  a->post([&] {
    for (int i = 0; i < 100; ++i) b->post([&received, i] { received.push_back(i); });
    b->post([&] { a->post([&] { done.open(); }); });
  });
  fixture.wait_for(done);
  REQUIRE(received.size() == 100);
  CHECK(std::is_sorted(received.begin(), received.end()));
}

FJORD_EXECUTOR_CASE("timers run in the order in which they are due and never early") {
  TestType fixture;
  auto executor = fixture.scheduler().make_executor("timers");
  std::vector<int> ran;
  std::vector<Duration> waited;
  Gate done;
  executor->post([&] {
    const MonotonicTime start = fixture.clock().now();
    for (const int ms : {12, 3, 7, 0, 3}) {
      executor->post_after(milliseconds(ms), [&, ms, start] {
        ran.push_back(ms);
        waited.push_back(fixture.clock().now() - start);
        if (ran.size() == 5) done.open();
      });
    }
  });
  fixture.wait_for(done);
  CHECK(ran == std::vector<int>{0, 3, 3, 7, 12});
  for (std::size_t i = 0; i < ran.size(); ++i) CHECK(waited[i] >= milliseconds(ran[i]));
}

FJORD_EXECUTOR_CASE("timers that are due together run in the order of posting") {
  TestType fixture;
  auto executor = fixture.scheduler().make_executor("timers");
  std::vector<int> ran;
  Gate done;
  executor->post([&] {
    for (int i = 0; i < 50; ++i) executor->post_after(milliseconds(2), [&ran, i] { ran.push_back(i); });
    executor->post_after(milliseconds(2), [&] { done.open(); });
  });
  fixture.wait_for(done);
  REQUIRE(ran.size() == 50);
  CHECK(std::is_sorted(ran.begin(), ran.end()));
}

FJORD_EXECUTOR_CASE("a negative or endless delay does no harm") {
  TestType fixture;
  auto executor = fixture.scheduler().make_executor("timers");
  Gate done;
  executor->post_after(Duration::max(), [] { FAIL("ran"); });
  executor->post_after(Duration::min(), [&] { done.open(); });
  fixture.wait_for(done);
}

FJORD_EXECUTOR_CASE("is_current is true inside one's own tasks and nowhere else") {
  TestType fixture;
  auto a = fixture.scheduler().make_executor("a");
  auto b = fixture.scheduler().make_executor("b");
  bool own = false;
  bool other = true;
  bool in_timer = false;
  Gate done;
  a->post([&] {
    own = a->is_current();
    other = b->is_current();
    a->post_after(milliseconds(1), [&] {
      in_timer = a->is_current();
      done.open();
    });
  });
  CHECK_FALSE(a->is_current());
  fixture.wait_for(done);
  CHECK(own);
  CHECK_FALSE(other);
  CHECK(in_timer);
}

FJORD_EXECUTOR_CASE("a task's captures are destroyed before the next task runs") {
  TestType fixture;
  auto executor = fixture.scheduler().make_executor("one");
  auto token = std::make_shared<int>(1);
  std::weak_ptr<int> watch = token;
  bool gone = false;
  Gate done;
  executor->post([held = std::move(token)] { static_cast<void>(held); });
  executor->post([&] {
    gone = watch.expired();
    done.open();
  });
  fixture.wait_for(done);
  CHECK(gone);
}

FJORD_EXECUTOR_CASE("destroying an executor drops what did not run, once, even if the captures post again") {
  TestType fixture;
  std::atomic<int> destroyed = 0;
  std::atomic<int> ran = 0;
  auto executor = fixture.scheduler().make_executor("one");
  Gate started;
  for (int i = 0; i < 3; ++i) {
    executor->post_after(seconds(3000),
                         [&ran, held = std::make_unique<PostsWhenDestroyed>(*executor, destroyed)] { ++ran; });
  }
  executor->post([&] { started.open(); });
  fixture.wait_for(started);
  for (int i = 0; i < 100; ++i) {
    executor->post([&ran, held = std::make_unique<PostsWhenDestroyed>(*executor, destroyed)] { ++ran; });
  }
  executor.reset();
  CHECK(destroyed == 103);
  CHECK(ran <= 100);
}

/// Opens its gate when it is destroyed.
class OpensWhenDestroyed {
 public:
  explicit OpensWhenDestroyed(std::atomic<bool>& destroyed) : destroyed_(destroyed) {}
  ~OpensWhenDestroyed() { destroyed_ = true; }

 private:
  std::atomic<bool>& destroyed_;
};

TEST_CASE("a task can post through the owner's pointer while end_executor() waits for it") {
  ThreadFixture fixture;
  std::unique_ptr<Executor> executor = fixture.scheduler().make_executor("one");
  Gate started;
  std::atomic<bool> refused = false;
  executor->post([&] {
    started.open();
    // The executor drops what is posted to it while it is being destroyed.
    while (!refused) executor->post([held = std::make_unique<OpensWhenDestroyed>(refused)] {});
  });
  fixture.wait_for(started);
  end_executor(executor);
  CHECK(refused);
  CHECK(executor == nullptr);
}

}  // namespace
}  // namespace fjord
