#pragma once

#include <memory>
#include <string>

#include "fjord/common/executor.h"

namespace fjord {

/// Creates executors. In production each is a thread; in the simulation all share one loop.
/// Lifetime: outlives every executor that it created. The destructor of an executor waits for its running task.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  /// Creates an executor. `name` shows in thread lists and traces (the system keeps at most 15 characters).
  virtual std::unique_ptr<Executor> make_executor(const std::string& name) = 0;
  /// Creates an executor for work that no user waits for within milliseconds. Threads of other executors run first when
  /// there are more runnable threads than processors.
  virtual std::unique_ptr<Executor> make_background_executor(const std::string& name) { return make_executor(name); }
  /// Creates an executor for long work that a user waits for. Ordinary executors come before it, background ones after.
  virtual std::unique_ptr<Executor> make_interactive_executor(const std::string& name) {
    return make_background_executor(name);
  }
  /// Keeps background and interactive executors off `percent` of the processors, rounded up; at least one processor
  /// remains for them. 0: they run on all processors. Returns the number of processors kept free; 0 if the scheduler
  /// cannot choose processors. Threading: every thread.
  virtual unsigned keep_processors_free(int /*percent*/) { return 0; }
};

/// Creates one thread for each executor.
class ThreadScheduler final : public Scheduler {
 public:
  ThreadScheduler();
  ~ThreadScheduler() override;
  std::unique_ptr<Executor> make_executor(const std::string& name) override;
  /// Gives the thread little weight (its nice value is 15 more than that of the process) and a longer time slice than
  /// others have, so that any thread that wakes up can interrupt it. This applies among the threads of one process. If
  /// the system groups processes (by sessions, control groups), all groups have equal weight.
  std::unique_ptr<Executor> make_background_executor(const std::string& name) override;
  /// Gives the thread a nice value of 8 more than that of the process (five times the weight of a background executor)
  /// and the time slice described above.
  std::unique_ptr<Executor> make_interactive_executor(const std::string& name) override;
  /// Keeps free the first of the process' processors, so that all processes on one machine keep the same processors
  /// free. Applies also to child processes that background executors started.
  unsigned keep_processors_free(int percent) override;

 private:
  class BackgroundThreads;
  std::unique_ptr<Executor> make_behind_others(const std::string& name, int below);

  std::shared_ptr<BackgroundThreads> background_;
};

}  // namespace fjord
