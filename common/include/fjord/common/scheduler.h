#pragma once

#include <memory>
#include <string>

#include "fjord/common/executor.h"

namespace fjord {

/// Makes executors. In production each is a thread; in the simulation all of them share one loop.
/// Lifetime: outlives every executor it made. Destroying an executor waits for its running task.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  /// `name` shows in thread lists and traces (at most 15 characters are kept by the system).
  virtual std::unique_ptr<Executor> make_executor(const std::string& name) = 0;
  /// The same for work that nobody waits for within milliseconds: where there are more threads that could run than
  /// processors, those of other executors come first.
  virtual std::unique_ptr<Executor> make_background_executor(const std::string& name) { return make_executor(name); }
  /// The same for long work that somebody waits for: behind other executors, and before background ones.
  virtual std::unique_ptr<Executor> make_interactive_executor(const std::string& name) {
    return make_background_executor(name);
  }
  /// From now on background and interactive executors keep off so many percent of the processors, rounded up, and have
  /// at least one. 0: they run on all. Returns how many they keep off; 0 where there is nothing to choose from. From
  /// every thread.
  virtual unsigned keep_processors_free(int /*percent*/) { return 0; }
};

/// One thread an executor.
class ThreadScheduler final : public Scheduler {
 public:
  ThreadScheduler();
  ~ThreadScheduler() override;
  std::unique_ptr<Executor> make_executor(const std::string& name) override;
  /// By its weight (nice 15) and a time slice in which any other thread that wakes may interrupt it. That holds among
  /// the threads of a process; where the system groups processes (by sessions, control groups), groups are equal.
  std::unique_ptr<Executor> make_background_executor(const std::string& name) override;
  /// By its weight (nice 8), which is five times that of a background executor; the same otherwise.
  std::unique_ptr<Executor> make_interactive_executor(const std::string& name) override;
  /// The first of those that the process may use, so that processes on one machine keep the same ones free. Child
  /// processes that background executors started follow.
  unsigned keep_processors_free(int percent) override;

 private:
  class BackgroundThreads;
  std::unique_ptr<Executor> make_behind_others(const std::string& name, int nice);

  std::shared_ptr<BackgroundThreads> background_;
};

}  // namespace fjord
