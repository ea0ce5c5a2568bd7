#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fjord/common/executor.h"
#include "fjord/common/thread_annotations.h"

namespace fjord {

/// The executor of ThreadScheduler: a queue of tasks and a thread that runs them. run_or_post() can run a task on
/// another thread while the executor's own thread has nothing to do.
///
/// The thread that runs tasks holds the turn (`turn_`): the own thread while it works through a batch, or another
/// thread in try_run(). Only the queue is shared; the heap of timers belongs to the own thread.
class ThreadExecutor final : public Executor {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;

  struct Options {
    std::string name;
    bool runs_elsewhere = true;      ///< Other threads may run tasks.
    UniqueFunction<void()> prepare;  ///< Runs on the own thread before all tasks.
    UniqueFunction<void()> finish;   ///< Runs on the own thread after all tasks.
  };
  explicit ThreadExecutor(Options options);
  ~ThreadExecutor() override;

  void post(Task task) override;
  void post_after(Duration delay, Task task) override;
  bool is_current() const override;

  /// Runs the task, and what is posted to this executor meanwhile, on the calling thread. Hands the rest to the own
  /// thread at `end`. Returns false, and leaves the task untouched, if another thread holds the turn or tasks wait.
  bool try_run(Task& task, SteadyTime end);

 private:
  enum class Turn : std::uint8_t { Free, Own, Elsewhere };
  struct Timer {
    SteadyTime due;
    std::uint64_t sequence = 0;
    Task task;
  };
  struct LaterFirst {
    bool operator()(const Timer& a, const Timer& b) const {
      return a.due != b.due ? a.due > b.due : a.sequence > b.sequence;
    }
  };

  void run();
  void run_due(std::vector<Timer>& heap);
  bool take_work(std::vector<Task>& batch, std::vector<Timer>& arrived, const std::vector<Timer>& heap);
  bool has_work(const std::vector<Timer>& heap) const FJORD_REQUIRES(mutex_);
  void run_elsewhere(Task task, SteadyTime begin, SteadyTime end) noexcept;
  bool take_more(std::vector<Task>& batch, std::size_t done, SteadyTime begin, SteadyTime end);

  const bool runs_elsewhere_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Task> tasks_ FJORD_GUARDED_BY(mutex_);
  std::vector<Timer> new_timers_ FJORD_GUARDED_BY(mutex_);
  std::uint64_t next_sequence_ FJORD_GUARDED_BY(mutex_) = 0;
  Turn turn_ FJORD_GUARDED_BY(mutex_) = Turn::Free;
  bool asleep_ FJORD_GUARDED_BY(mutex_) = false;  // The own thread waits. Only then a post has to wake it up.
  SteadyTime wakes_at_ FJORD_GUARDED_BY(mutex_);  // When the own thread wakes up by itself; a later timer can wait.
  SteadyTime first_new_timer_ FJORD_GUARDED_BY(mutex_) = SteadyTime::max();
  // The first timer that the own thread has taken, while it waits for its turn; else the end of time.
  SteadyTime first_old_timer_ FJORD_GUARDED_BY(mutex_) = SteadyTime::max();
  SteadyTime own_thread_until_ FJORD_GUARDED_BY(mutex_){};  // Until then no other thread runs tasks.
  std::atomic<bool> stopping_{false};                       // written under the mutex, read between tasks without it
  std::thread thread_;                                      // the last member, because the thread uses all others
};

}  // namespace fjord
