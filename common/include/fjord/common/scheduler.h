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
};

/// One thread an executor.
class ThreadScheduler final : public Scheduler {
 public:
  std::unique_ptr<Executor> make_executor(const std::string& name) override;
  /// By its weight (nice 15) and a time slice in which any other thread that wakes may interrupt it. That holds among
  /// the threads of a process; where the system groups processes (by sessions, control groups), groups are equal.
  std::unique_ptr<Executor> make_background_executor(const std::string& name) override;
};

}  // namespace fjord
