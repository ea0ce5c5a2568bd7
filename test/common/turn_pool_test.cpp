#include "fjord/common/turn_pool.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <thread>
#include <vector>

namespace fjord {
namespace {

/// Uses real threads, so the tests check only the order of events.
class Pool {
 public:
  explicit Pool(std::size_t threads)
      : pool(
            "turns", clock, scheduler, [this](const std::string& name) { return scheduler.make_executor(name); },
            threads) {}

  SystemClock clock;
  ThreadScheduler scheduler;
  TurnPool pool;
};

/// Runs turn after turn on `executor` until `stop` is set, and counts the turns.
void burn(Executor& executor, const std::atomic<bool>& stop, std::atomic<int>& turns) {
  while (!stop) {
    if (!TurnPool::turn_is_over()) continue;
    ++turns;
    executor.post([&] { burn(executor, stop, turns); });
    return;
  }
}

TEST_CASE("turn pool: tasks of an executor run one after the other and in order, on whatever thread") {
  Pool pool(3);
  std::vector<std::unique_ptr<Executor>> executors;
  std::vector<std::vector<int>> seen(8);
  for (std::size_t i = 0; i < seen.size(); ++i) executors.push_back(pool.pool.make_executor({i % 3, 1}));
  std::vector<std::promise<bool>> ended(seen.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    for (int n = 0; n < 1000; ++n) {
      executors[i]->post([&, i, n] { seen[i].push_back(n); });
    }
    executors[i]->post(
        [&, i] { ended[i].set_value(executors[i]->is_current() && !executors[(i + 1) % seen.size()]->is_current()); });
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {
    CHECK(ended[i].get_future().get());
    REQUIRE(seen[i].size() == 1000);
    CHECK(std::is_sorted(seen[i].begin(), seen[i].end()));
    CHECK_FALSE(executors[i]->is_current());
  }
}

TEST_CASE("turn pool: an executor of another group has its turn although those that run have no end") {
  Pool pool(2);
  std::atomic<bool> stop{false};
  std::atomic<int> turns{0};
  std::vector<std::unique_ptr<Executor>> busy;
  for (int i = 0; i < 6; ++i) {
    busy.push_back(pool.pool.make_executor({1, 1}));
    busy.back()->post([&, executor = busy.back().get()] { burn(*executor, stop, turns); });
  }
  const auto other = pool.pool.make_executor({2, 1});
  for (int i = 0; i < 3; ++i) {
    std::promise<void> ran;
    other->post([&] { ran.set_value(); });
    CHECK(ran.get_future().wait_for(std::chrono::seconds(30)) == std::future_status::ready);
  }
  while (turns < 10) std::this_thread::yield();
  stop = true;
}

TEST_CASE("turn pool: an executor of another group gets a thread although tasks do not give theirs up") {
  Pool pool(1);
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  const auto stuck = pool.pool.make_executor({1, 1});
  const auto also = pool.pool.make_executor({1, 1});
  stuck->post([ended] { ended.wait(); });
  std::atomic<bool> also_ran{false};
  also->post([&] { also_ran = true; });
  const auto other = pool.pool.make_executor({2, 1});
  std::promise<void> ran;
  other->post([&] { ran.set_value(); });
  CHECK(ran.get_future().wait_for(std::chrono::seconds(30)) == std::future_status::ready);
  CHECK_FALSE(also_ran);  // The group of this task has a thread already.
  end.set_value();
}

TEST_CASE("turn pool: nobody is asked to give up a thread that no other wants") {
  Pool pool(2);
  const auto alone = pool.pool.make_executor({1, 1});
  std::promise<bool> asked;
  alone->post([&] {
    const auto end = std::chrono::steady_clock::now() + 2 * TurnPool::kTurn;
    bool any = false;
    while (std::chrono::steady_clock::now() < end) any = any || TurnPool::turn_is_over();
    asked.set_value(any);
  });
  CHECK_FALSE(asked.get_future().get());
  CHECK_FALSE(TurnPool::turn_is_over());
}

TEST_CASE("turn pool: tasks of an executor that is gone are dropped, also delayed ones") {
  Pool pool(1);
  auto executor = pool.pool.make_executor({1, 1});
  std::promise<void> late;
  executor->post_after(milliseconds(1), [&] { late.set_value(); });
  late.get_future().get();

  std::promise<void> begun, go_on;
  bool ran = false;
  executor->post([&] {
    begun.set_value();
    go_on.get_future().wait();
  });
  executor->post([&] { ran = true; });
  begun.get_future().wait();
  std::thread destroyer([&] { executor.reset(); });  // The destructor waits for the running task.
  go_on.set_value();
  destroyer.join();
  const auto next = pool.pool.make_executor({1, 1});
  std::promise<void> done;
  next->post([&] { done.set_value(); });
  CHECK(done.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready);
}

}  // namespace
}  // namespace fjord
