#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <sched.h>
#include <thread>
#include <utility>

namespace fjord {

/// Lets a thread that waits look for work for a short while before it sleeps. To wake a sleeping thread takes tens of
/// microseconds, which is longer than it takes to answer a read. Between two looks the thread yields, so that it takes
/// only processor time that no other thread wants.
///
/// It learns from earlier waits: a thread polls only while most of its waits are short. A thread whose work is rare
/// sleeps at once. So does one whose processor another thread wants for long: the kernel lets a thread that has yielded
/// wait for its next turn, but runs one that wakes up soon. And no more threads of a process poll at a time than there
/// are processors: the others sleep at once.
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
  /// was work. Both may do the work. `yield` lets other threads run.
  template <typename Look, typename Sleep, typename Yield = decltype(&::sched_yield)>
  void wait(Look look, Sleep sleep, Yield yield = &::sched_yield) {
    const SteadyTime begin = std::chrono::steady_clock::now();
    switch (poll(begin, look, yield)) {
      case Found::Work:
        return;
      case Found::BusyProcessor:
        return look() ? void() : sleep();
      case Found::Nothing:
        break;
    }
    sleep();
    // The time includes that of waking up, and of the work if `sleep` did it.
    if (std::chrono::steady_clock::now() - begin < 2 * poll_time_) gain();
  }

 private:
  /// The right of one thread to poll, while there are not too many that do.
  class Turn {
   public:
    explicit Turn(bool is_wanted)
        : is_counted_(is_wanted),
          is_given_(is_wanted && polling_.fetch_add(1, std::memory_order_relaxed) < processors()) {}
    ~Turn() {
      if (is_counted_) polling_.fetch_sub(1, std::memory_order_relaxed);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    bool is_given() const { return is_given_; }

   private:
    inline static std::atomic<unsigned> polling_{0};
    const bool is_counted_;
    const bool is_given_;
  };

  static constexpr int kCreditMax = 4;
  /// A yield that takes as many poll times was to a thread that needs its processor for long.
  static constexpr int kBusyTurns = 4;
  /// Bounds of the number of short waits after such a yield before the thread polls again.
  static constexpr int kBackOffMin = 16;
  static constexpr int kBackOffMax = 4096;

  enum class Found { Work, Nothing, BusyProcessor };

  template <typename Look, typename Yield>
  Found poll(SteadyTime begin, Look& look, Yield& yield) {
    const Turn turn(credit_ > 0);
    if (!turn.is_given()) return Found::Nothing;
    SteadyTime now = begin;
    do {
      if (look()) {
        found();
        return Found::Work;
      }
      yield();
      const SteadyTime before = std::exchange(now, std::chrono::steady_clock::now());
      if (now - before > kBusyTurns * poll_time_) {
        back_off();
        return Found::BusyProcessor;
      }
    } while (now - begin < poll_time_);
    --credit_;
    return Found::Nothing;
  }

  void gain() {
    if (credit_ < kCreditMax) ++credit_;
  }
  void found() {
    gain();
    if (++found_ < back_off_) return;
    back_off_ = kBackOffMin;
    found_ = 0;
  }
  void back_off() {
    credit_ = -back_off_;
    back_off_ = std::min(2 * back_off_, kBackOffMax);
    found_ = 0;
  }
  /// With one processor, the work that a thread waits for is done only while it sleeps.
  static bool has_many_processors() { return processors() > 1; }
  static unsigned processors() {
    static const unsigned count = std::max(1U, std::thread::hardware_concurrency());
    return count;
  }

  std::chrono::microseconds poll_time_;
  /// Number of waits that may be polled in vain before the thread stops polling. Below 0: short waits that are left
  /// before it polls again.
  int credit_ = 0;
  int back_off_ = kBackOffMin;  ///< The number of short waits after the next long yield. It doubles with each.
  int found_ = 0;  ///< Polls that found work since the last long yield. As many as `back_off_` set that back.
};

}  // namespace fjord
