#include "fjord/library/pending.h"

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "support/detached.h"

namespace fjord {
namespace {

using State = detail::PendingState<int>;

std::shared_ptr<State> state() { return std::make_shared<State>(nullptr); }

Detached store(Pending<int> pending, int& into) { into = co_await std::move(pending); }

}  // namespace

TEST_CASE("pending: a value that is there is taken at once, in each of the three ways") {
  const auto waited = state();
  waited->set(1);
  CHECK(Pending<int>(waited).wait() == 1);
  const auto called = state();
  called->set(2);
  int seen = 0;
  Pending<int>(called).then([&](int value) { seen = value; });
  CHECK(seen == 2);
  const auto awaited = state();
  awaited->set(3);
  int stored = 0;
  store(Pending<int>(awaited), stored);
  CHECK(stored == 3);
}

TEST_CASE("pending: a value that comes later ends a wait, calls back and resumes a coroutine") {
  const auto waited = state();
  std::thread later([&] { waited->set(1); });
  const int value = Pending<int>(waited);
  later.join();
  CHECK(value == 1);

  const auto called = state();
  int seen = 0;
  Pending<int> pending(called);
  CHECK_FALSE(pending.is_ready());
  std::move(pending).then([&](int result) { seen = result; });
  CHECK(seen == 0);
  called->set(2);
  CHECK(seen == 2);

  const auto awaited = state();
  int stored = 0;
  store(Pending<int>(awaited), stored);
  CHECK(stored == 0);
  awaited->set(3);
  CHECK(stored == 3);
}

TEST_CASE("pending: callbacks run in the executor of the program") {
  std::vector<std::function<void()>> tasks;
  const auto in_program = [&] {
    return std::make_shared<State>(nullptr, [&](std::function<void()> task) { tasks.push_back(std::move(task)); });
  };
  const auto called = in_program();
  int seen = 0;
  Pending<int>(called).then([&](int value) { seen = value; });
  called->set(1);
  CHECK(seen == 0);
  REQUIRE(tasks.size() == 1);
  tasks[0]();
  CHECK(seen == 1);

  const auto awaited = in_program();
  int stored = 0;
  store(Pending<int>(awaited), stored);
  awaited->set(2);
  CHECK(stored == 0);
  REQUIRE(tasks.size() == 2);
  tasks[1]();
  CHECK(stored == 2);

  // A thread that waits needs no task.
  const auto waited = in_program();
  waited->set(3);
  CHECK(Pending<int>(waited).wait() == 3);
  CHECK(tasks.size() == 2);
}

TEST_CASE("pending: a callback that waits for its turn gets the value of end() at once, and nothing later") {
  std::vector<std::function<void()>> tasks;
  const auto called =
      std::make_shared<State>(nullptr, [&](std::function<void()> task) { tasks.push_back(std::move(task)); });
  std::vector<int> seen;
  Pending<int>(called).then([&](int value) { seen.push_back(value); });
  called->set(1);
  called->end(2);
  CHECK(seen == std::vector<int>{2});
  REQUIRE(tasks.size() == 1);
  tasks[0]();
  CHECK(seen == std::vector<int>{2});
}

}  // namespace fjord
