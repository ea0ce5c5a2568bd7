#pragma once

#include <chrono>
#include <sched.h>
#include <thread>

namespace fjord {

/// Lets a thread that waits look for work for a short while before it sleeps. To wake a sleeping thread takes tens of
/// microseconds, which is longer than it takes to answer a read. Between two looks the thread yields, so that it takes
/// only processor time that no other thread wants.
///
/// It learns from earlier waits: a thread polls only while most of its waits are short. A thread whose work is rare
/// sleeps at once.
///
/// Threading: one thread.
class IdlePolling {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;

  static constexpr std::chrono::microseconds kPollTime{60};

  /// A thread polls for at most `poll_time`; with 0 it never polls.
  explicit IdlePolling(std::chrono::microseconds poll_time = kPollTime)
      : poll_time_(has_many_processors() ? poll_time : std::chrono::microseconds(0)) {}

  /// Waits for work. Calls `look` until it returns true, and `sleep` if that takes too long. `sleep` returns when there
  /// was work. Both may do the work.
  template <typename Look, typename Sleep>
  void wait(Look look, Sleep sleep) {
    const SteadyTime begin = std::chrono::steady_clock::now();
    if (credit_ > 0) {
      do {
        if (look()) return gain();
        ::sched_yield();
      } while (std::chrono::steady_clock::now() - begin < poll_time_);
      --credit_;
    }
    sleep();
    // The time includes that of waking up, and of the work if `sleep` did it.
    if (std::chrono::steady_clock::now() - begin < 2 * poll_time_) gain();
  }

 private:
  static constexpr int kCreditMax = 4;

  void gain() {
    if (credit_ < kCreditMax) ++credit_;
  }
  /// With one processor, the work that a thread waits for is done only while it sleeps.
  static bool has_many_processors() {
    static const bool many = std::thread::hardware_concurrency() > 1;
    return many;
  }

  std::chrono::microseconds poll_time_;
  int credit_ = 0;  ///< Number of waits that may be polled in vain before the thread stops polling.
};

}  // namespace fjord
