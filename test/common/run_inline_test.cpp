// run_or_post() with executors of ThreadScheduler. conformance/executor tests the contract of all executors.

#include "fjord/common/run_inline.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "fjord/common/scheduler.h"

namespace fjord {
namespace {

constexpr Duration kLongBudget = seconds(100);  // Longer than a test takes on any machine.

/// Works for at least so long, as a task that computes.
void work_for(std::chrono::milliseconds duration) {
  const auto end = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

/// Waits until the executor has run all tasks posted so far.
void finish(Executor& executor) {
  std::promise<void> done;
  executor.post([&] { done.set_value(); });
  done.get_future().wait();
}

/// Keeps the executor's thread inside a task.
class Busy {
 public:
  explicit Busy(Executor& executor) {
    std::promise<void> begun;
    executor.post([&begun, end = end_.get_future().share()] {
      begun.set_value();
      end.wait();
    });
    begun.get_future().wait();
  }
  ~Busy() { end(); }
  void end() {
    if (!std::exchange(ended_, true)) end_.set_value();
  }

 private:
  std::promise<void> end_;
  bool ended_ = false;
};

/// Offers tasks to the executor until one runs on this thread. The own thread may need a moment to become idle.
void run_here(Executor& executor, const std::function<void()>& task) {
  const auto here = std::this_thread::get_id();
  bool ran_here = false;
  while (!ran_here) {
    const InlineScope scope(kLongBudget);
    auto done = std::make_shared<std::promise<void>>();
    run_or_post(executor, [&, done] {
      ran_here = std::this_thread::get_id() == here;
      if (ran_here) task();
      done->set_value();
    });
    done->get_future().wait();
  }
}

}  // namespace

TEST_CASE("run inline: an idle executor's task runs on the calling thread, and counts as its task") {
  ThreadScheduler scheduler;
  const auto executor = scheduler.make_executor("one");
  bool is_current = false;
  run_here(*executor, [&] { is_current = executor->is_current(); });
  CHECK(is_current);
  CHECK_FALSE(executor->is_current());
}

TEST_CASE("run inline: without a scope, after it, and when its time is over, the task is posted") {
  ThreadScheduler scheduler;
  const auto executor = scheduler.make_executor("one");
  const auto here = std::this_thread::get_id();
  std::atomic<int> ran_here{0};
  const auto task = [&] { ran_here += std::this_thread::get_id() == here ? 1 : 0; };
  run_here(*executor, [] {});
  run_or_post(*executor, task);
  finish(*executor);
  {
    const InlineScope over(Duration(0));
    for (int i = 0; i < 100; ++i) {
      run_or_post(*executor, task);
      finish(*executor);
    }
  }
  {
    const InlineScope outer(kLongBudget);
    const InlineScope inner(Duration(0));
    run_or_post(*executor, task);
    finish(*executor);
  }
  CHECK(ran_here == 0);
}

TEST_CASE("run inline: tasks of a busy executor wait, in order") {
  ThreadScheduler scheduler;
  const auto executor = scheduler.make_executor("one");
  std::vector<int> ran;
  Busy busy(*executor);
  const InlineScope scope(kLongBudget);
  for (int i = 0; i < 10; ++i) run_or_post(*executor, [&ran, i] { ran.push_back(i); });
  CHECK(ran.empty());
  busy.end();
  finish(*executor);
  CHECK(ran == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("run inline: what a task posts runs after it on the same thread, a nested offer too") {
  ThreadScheduler scheduler;
  const auto executor = scheduler.make_executor("one");
  const auto other = scheduler.make_executor("other");
  const auto here = std::this_thread::get_id();
  std::vector<std::string> ran;
  std::promise<bool> other_ran_here;
  run_here(*executor, [&] {
    executor->post([&] { ran.push_back("posted"); });
    run_or_post(*executor, [&] { ran.push_back(std::this_thread::get_id() == here ? "offered" : "elsewhere"); });
    // Another executor's task inside of a task would make the stack as deep as a chain of messages is long.
    run_or_post(*other, [&] { other_ran_here.set_value(std::this_thread::get_id() == here); });
    ran.push_back("first");
  });
  finish(*executor);
  CHECK(ran == std::vector<std::string>{"first", "posted", "offered"});
  CHECK_FALSE(other_ran_here.get_future().get());
}

TEST_CASE("run inline: what is left when the time is over goes to the own thread, in order") {
  ThreadScheduler scheduler;
  const auto executor = scheduler.make_executor("one");
  const auto here = std::this_thread::get_id();
  for (bool began_here = false; !began_here;) {
    std::vector<int> ran;
    std::atomic<bool> ended_elsewhere{false};
    {
      const InlineScope scope(milliseconds(20));
      run_or_post(*executor, [&] {
        began_here = std::this_thread::get_id() == here;
        for (int i = 0; i < 100; ++i) {
          executor->post([&, i] {
            ran.push_back(i);
            work_for(std::chrono::milliseconds(1));
            ended_elsewhere = std::this_thread::get_id() != here;
          });
        }
      });
    }
    finish(*executor);
    REQUIRE(ran.size() == 100);
    CHECK(std::is_sorted(ran.begin(), ran.end()));
    CHECK(ended_elsewhere);
  }
}

TEST_CASE("run inline: many threads offer and post, and tasks run one at a time, each thread's in order") {
  ThreadScheduler scheduler;
  const auto executor = scheduler.make_executor("one");
  constexpr int kThreads = 4;
  constexpr int kTasks = 5000;
  std::vector<std::vector<int>> ran(kThreads);  // Not protected: the executor has to do that.
  long total = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const InlineScope scope(kLongBudget);
      for (int i = 0; i < kTasks; ++i) {
        Task task = [&, t, i] {
          ran[static_cast<std::size_t>(t)].push_back(i);
          ++total;
          if (i % 7 == 0) executor->post_after(Duration(0), [&] { ++total; });
        };
        if (i % 3 == 0) {
          executor->post(std::move(task));
        } else {
          run_or_post(*executor, std::move(task));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  long expected = 0;
  for (int i = 0; i < kTasks; ++i) expected += kThreads * (i % 7 == 0 ? 2 : 1);
  long seen = 0;
  while (seen != expected) {
    std::promise<long> now;
    executor->post([&] { now.set_value(total); });
    seen = now.get_future().get();
  }
  for (const std::vector<int>& one : ran) {
    CHECK(one.size() == kTasks);
    CHECK(std::is_sorted(one.begin(), one.end()));
  }
}

TEST_CASE("run inline: timers that a task sets on another thread fire") {
  ThreadScheduler scheduler;
  const auto executor = scheduler.make_executor("one");
  std::promise<void> soon;
  std::promise<void> later;
  run_here(*executor, [&] {
    executor->post_after(milliseconds(20), [&] { later.set_value(); });
    executor->post_after(milliseconds(1), [&] { soon.set_value(); });
  });
  CHECK(soon.get_future().wait_for(std::chrono::seconds(100)) == std::future_status::ready);
  CHECK(later.get_future().wait_for(std::chrono::seconds(100)) == std::future_status::ready);
}

TEST_CASE("run inline: a timer that is due while a task runs on another thread fires after it") {
  ThreadScheduler scheduler;
  const auto executor = scheduler.make_executor("one");
  for (int round = 0; round < 3; ++round) {
    std::promise<void> fired;
    executor->post_after(milliseconds(20), [&] { fired.set_value(); });
    finish(
        *executor);  // The own thread has taken the timer. It wakes up during the task, and has to wait for its turn.
    run_here(*executor, [] { work_for(std::chrono::milliseconds(50)); });
    REQUIRE(fired.get_future().wait_for(std::chrono::seconds(100)) == std::future_status::ready);
  }
}

TEST_CASE("run inline: after a long task the executor's own thread runs tasks for a while") {
  ThreadScheduler scheduler;
  const auto executor = scheduler.make_executor("one");
  const auto here = std::this_thread::get_id();
  run_here(*executor, [] { work_for(std::chrono::seconds(1)); });
  std::atomic<bool> ran_here{false};
  {
    const InlineScope scope(kLongBudget);
    run_or_post(*executor, [&] { ran_here = std::this_thread::get_id() == here; });
  }
  finish(*executor);
  CHECK_FALSE(ran_here);
}

TEST_CASE("run inline: background executors run their tasks on their own threads") {
  ThreadScheduler scheduler;
  const auto background = scheduler.make_background_executor("back");
  const auto interactive = scheduler.make_interactive_executor("inter");
  const auto here = std::this_thread::get_id();
  std::atomic<int> ran_here{0};
  const InlineScope scope(kLongBudget);
  for (int i = 0; i < 100; ++i) {
    for (Executor* executor : {background.get(), interactive.get()}) {
      run_or_post(*executor, [&] { ran_here += std::this_thread::get_id() == here ? 1 : 0; });
      finish(*executor);
    }
  }
  CHECK(ran_here == 0);
}

TEST_CASE("run inline: an executor's end waits for a task on another thread, and drops what that posts") {
  ThreadScheduler scheduler;
  auto executor = scheduler.make_executor("one");
  std::promise<void> begun;
  std::promise<void> is_ending;
  std::atomic<bool> ended{false};
  std::atomic<bool> ran_later{false};
  Executor& one = *executor;
  std::thread other([&] {
    run_here(one, [&] {
      begun.set_value();
      is_ending.get_future().wait();
      work_for(std::chrono::milliseconds(50));
      one.post([&] { ran_later = true; });
      ended = true;
    });
  });
  begun.get_future().wait();
  is_ending.set_value();
  end_executor(executor);
  CHECK(ended);
  other.join();
  CHECK_FALSE(ran_later);
}

TEST_CASE("run inline: an exception ends the process, as on the executor's thread") {
  const pid_t child = ::fork();
  if (child == 0) {
    std::set_terminate([] { ::_exit(42); });
    ThreadScheduler scheduler;
    const auto executor = scheduler.make_executor("one");
    try {
      run_here(*executor, [] { throw 1; });
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(2);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 42);
}

}  // namespace fjord
