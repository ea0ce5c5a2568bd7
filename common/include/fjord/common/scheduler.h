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
  /// Creates an executor for work without a user waiting within milliseconds: threads of other executors come first
  /// when runnable threads outnumber processors.
  virtual std::unique_ptr<Executor> make_background_executor(const std::string& name) { return make_executor(name); }
  /// Creates an executor for long work with a user waiting: behind ordinary executors, before background ones.
  virtual std::unique_ptr<Executor> make_interactive_executor(const std::string& name) {
    return make_background_executor(name);
  }
  /// Keeps background and interactive executors off this percentage of the processors, rounded up; at least one
  /// processor remains for them. 0: they run on all. Returns the number of processors kept free; 0 if there is no
  /// choice. Threading: every thread.
  virtual unsigned keep_processors_free(int /*percent*/) { return 0; }
};

/// Creates one thread for each executor.
class ThreadScheduler final : public Scheduler {
 public:
  ThreadScheduler();
  ~ThreadScheduler() override;
  std::unique_ptr<Executor> make_executor(const std::string& name) override;
  /// The thread has little weight (nice 15) and a time slice in which any thread that wakes can interrupt it. That
  /// holds among the threads of one process; if the system groups processes (by sessions, control groups), the groups
  /// are equal.
  std::unique_ptr<Executor> make_background_executor(const std::string& name) override;
  /// The thread has nice 8, which is five times the weight of a background executor; otherwise the same.
  std::unique_ptr<Executor> make_interactive_executor(const std::string& name) override;
  /// Keeps free the first of the process' processors, so that processes on one machine keep the same ones free. Applies
  /// also to child processes that background executors started.
  unsigned keep_processors_free(int percent) override;

 private:
  class BackgroundThreads;
  std::unique_ptr<Executor> make_behind_others(const std::string& name, int nice);

  std::shared_ptr<BackgroundThreads> background_;
};

}  // namespace fjord
