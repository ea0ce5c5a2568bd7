#include "fjord/common/idle_polling.h"

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

using namespace fjord;

namespace {

/// Counts what a wait did.
struct Wait {
  int looks = 0;
  int sleeps = 0;
};

/// Waits until the look with number `ready`, or for `sleep` if the thread goes to sleep.
Wait wait(IdlePolling& idle, int ready, std::chrono::microseconds sleep) {
  Wait done;
  idle.wait([&] { return ++done.looks >= ready; },
            [&] {
              ++done.sleeps;
              const auto end = std::chrono::steady_clock::now() + sleep;
              while (std::chrono::steady_clock::now() < end) {
              }
            });
  return done;
}

constexpr int kNever = 1 << 30;
constexpr auto kLong = 10 * IdlePolling::kPollTime;

}  // namespace

TEST_CASE("idle polling: a thread sleeps at once until its waits are short", "[common]") {
  if (std::thread::hardware_concurrency() < 2) return;  // With one processor a thread never polls.
  IdlePolling idle;
  const Wait first = wait(idle, 1, kLong);
  CHECK(first.looks == 0);
  CHECK(first.sleeps == 1);
  // A busy machine can make a short wait long, so that it is repeated.
  Wait polled;
  for (int i = 0; i < 1000 && polled.looks == 0; ++i) polled = wait(idle, 1, std::chrono::microseconds(0));
  CHECK(polled.looks == 1);
  CHECK(polled.sleeps == 0);
}

TEST_CASE("idle polling: a thread whose waits are long stops polling", "[common]") {
  if (std::thread::hardware_concurrency() < 2) return;  // With one processor a thread never polls.
  IdlePolling idle;
  for (int i = 0; i < 1000; ++i) wait(idle, 1, std::chrono::microseconds(0));
  int polled = 0;
  for (int i = 0; i < 100; ++i) polled += wait(idle, kNever, kLong).looks > 0 ? 1 : 0;
  CHECK(polled > 0);
  CHECK(polled <= 8);
  CHECK(wait(idle, kNever, kLong).looks == 0);
}

TEST_CASE("idle polling: no more threads poll at a time than there are processors", "[common]") {
  const unsigned processors = std::thread::hardware_concurrency();
  if (processors < 2) return;  // With one processor a thread never polls.
  std::vector<std::unique_ptr<IdlePolling>> idle;
  for (unsigned i = 0; i <= processors; ++i) {
    idle.push_back(std::make_unique<IdlePolling>());
    while (wait(*idle.back(), 1, std::chrono::microseconds(0)).looks == 0) {
    }
  }
  // Each polls inside of the look of the one before. The last one may not.
  unsigned polled = 0;
  unsigned slept = 0;
  std::function<void(unsigned)> nest = [&](unsigned i) {
    if (i > processors) return;
    idle[i]->wait(
        [&] {
          ++polled;
          nest(i + 1);
          return true;
        },
        [&] { ++slept; });
  };
  nest(0);
  CHECK(polled == processors);
  CHECK(slept == 1);
  CHECK(wait(*idle[0], 1, kLong).looks == 1);
}

TEST_CASE("idle polling: with no time to poll a thread never polls", "[common]") {
  IdlePolling idle(std::chrono::microseconds(0));
  int looks = 0;
  for (int i = 0; i < 100; ++i) looks += wait(idle, 1, std::chrono::microseconds(0)).looks;
  CHECK(looks == 0);
}

TEST_CASE("idle polling: a thread whose processor is wanted for long sleeps at once, each time for longer",
          "[common]") {
  if (std::thread::hardware_concurrency() < 2) return;  // With one processor a thread never polls.
  IdlePolling idle;
  const auto yield_for_long = [] {
    const auto end = std::chrono::steady_clock::now() + kLong;
    while (std::chrono::steady_clock::now() < end) {
    }
  };
  // Waits until the thread polls, and returns how many waits did not.
  const auto waits_before_polling = [&] {
    int waits = 0;
    for (;; ++waits) {
      int looks = 0;
      idle.wait([&] { return ++looks > 2; }, [] {}, yield_for_long);
      if (looks > 0) return waits;
    }
  };
  waits_before_polling();
  CHECK(waits_before_polling() >= 16);
  CHECK(waits_before_polling() >= 32);
  CHECK(waits_before_polling() >= 64);
}
