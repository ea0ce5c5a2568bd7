// The processors of background executors. conformance/executor tests the contract of all executors.

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <future>
#include <sched.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fjord/common/scheduler.h"

namespace fjord {
namespace {

/// Returns the processors of a thread or process.
std::vector<int> processors_of(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  REQUIRE(::sched_getaffinity(thread, sizeof set, &set) == 0);
  std::vector<int> found;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) found.push_back(cpu);
  }
  return found;
}

/// Starts a process that sleeps until it is killed.
pid_t start_child() {
  char program[] = "sleep";
  char argument[] = "1000";
  char* arguments[] = {program, argument, nullptr};
  char* environment[] = {nullptr};
  pid_t child = -1;
  if (::posix_spawn(&child, "/bin/sleep", nullptr, nullptr, arguments, environment) != 0) return -1;
  return child;
}

/// Returns the result of `task` on `executor`.
template <typename Task>
auto on(Executor& executor, Task task) {
  std::promise<decltype(task())> promise;
  executor.post([&] { promise.set_value(task()); });
  return promise.get_future().get();
}

pid_t thread_of(Executor& executor) {
  return on(executor, [] { return ::gettid(); });
}

std::vector<int> without_first(std::vector<int> all, unsigned count) {
  all.erase(all.begin(), all.begin() + count);
  return all;
}

/// True if there is only one processor, so that background threads cannot keep off any.
bool is_too_small(const std::vector<int>& all) {
  if (all.size() < 2) WARN("not run: there is one processor");
  return all.size() < 2;
}

}  // namespace

TEST_CASE("thread scheduler: background executors keep off some processors as long as they are told to") {
  const std::vector<int> all = processors_of(0);
  if (is_too_small(all)) return;
  ThreadScheduler scheduler;
  const auto foreground = scheduler.make_executor("foreground");
  const auto before = scheduler.make_background_executor("before");
  CHECK(processors_of(thread_of(*before)) == all);

  CHECK(scheduler.keep_processors_free(1) == 1);  // 1 % of the processors, rounded up.
  CHECK(processors_of(thread_of(*before)) == without_first(all, 1));
  CHECK(processors_of(thread_of(*foreground)) == all);
  const auto after = scheduler.make_background_executor("after");
  CHECK(processors_of(thread_of(*after)) == without_first(all, 1));

  const auto half = static_cast<unsigned>((all.size() + 1) / 2);
  CHECK(scheduler.keep_processors_free(50) == half);
  CHECK(processors_of(thread_of(*before)) == without_first(all, half));
  CHECK(scheduler.keep_processors_free(100) == all.size() - 1);  // One processor is left for background threads.
  CHECK(processors_of(thread_of(*after)) == std::vector<int>{all.back()});

  CHECK(scheduler.keep_processors_free(0) == 0);
  CHECK(processors_of(thread_of(*before)) == all);
  CHECK(processors_of(thread_of(*after)) == all);
}

TEST_CASE("thread scheduler: the child processes of background executors follow, and no others") {
  const std::vector<int> all = processors_of(0);
  if (is_too_small(all)) return;
  ThreadScheduler scheduler;
  const auto foreground = scheduler.make_executor("foreground");
  const auto background = scheduler.make_background_executor("background");
  const pid_t child = on(*background, start_child);
  const pid_t other = on(*foreground, start_child);
  REQUIRE(child > 0);
  REQUIRE(other > 0);

  scheduler.keep_processors_free(50);
  const std::vector<int> kept_off = without_first(all, static_cast<unsigned>((all.size() + 1) / 2));
  CHECK(processors_of(child) == kept_off);
  CHECK(processors_of(other) == all);
  const pid_t late = on(*background, start_child);
  REQUIRE(late > 0);
  CHECK(processors_of(late) == kept_off);
  scheduler.keep_processors_free(0);
  CHECK(processors_of(child) == all);
  CHECK(processors_of(late) == all);
  for (const pid_t process : {child, other, late}) {
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
  }
}

TEST_CASE("thread scheduler: interactive executors come before background ones, and behind all others") {
  ThreadScheduler scheduler;
  const auto nice_of = [](Executor& executor) {
    return on(executor, [] { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); });
  };
  const int ordinary = nice_of(*scheduler.make_executor("ordinary"));
  const int interactive = nice_of(*scheduler.make_interactive_executor("interactive"));
  const int background = nice_of(*scheduler.make_background_executor("background"));
  // Above all when the process itself has a low priority, they must not come before its other threads.
  CHECK(interactive == std::min(19, ordinary + 8));
  CHECK(background == std::min(19, ordinary + 15));
}

TEST_CASE("thread scheduler: a background executor that is gone is not looked for") {
  ThreadScheduler scheduler;
  scheduler.make_background_executor("gone").reset();
  scheduler.keep_processors_free(50);
  const auto executor = scheduler.make_background_executor("here");
  scheduler.keep_processors_free(0);
  CHECK(processors_of(thread_of(*executor)) == processors_of(0));
}

}  // namespace fjord
