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
};

/// One thread an executor.
class ThreadScheduler final : public Scheduler {
 public:
  std::unique_ptr<Executor> make_executor(const std::string& name) override;
};

}  // namespace fjord
