#pragma once

#include <memory>
#include <vector>

#include "service_context.h"

namespace fjord::mapreduce {

/// Runs long tasks, each on a thread that runs nothing else meanwhile.
///
/// Threading: confined to the service's executor; the tasks are not. Lifetime: `context` outlives it.
class LongTasks {
 public:
  explicit LongTasks(ServiceContext& context) : context_(context) {}

  void run(Task task) {
    if (idle_.empty()) {
      executors_.push_back(context_.scheduler.make_interactive_executor("reduce"));
      idle_.push_back(executors_.back().get());
    }
    Executor* const executor = idle_.back();
    idle_.pop_back();
    executor->post([this, executor, task = std::move(task), mailbox = context_.mailbox]() mutable {
      task();
      mailbox.post([this, executor] { idle_.push_back(executor); });
    });
  }
  /// Waits for the tasks that run. Called when the service's mailbox is closed.
  void end() { executors_.clear(); }

 private:
  ServiceContext& context_;
  std::vector<std::unique_ptr<Executor>> executors_;  ///< When all executors are busy, one more is made.
  std::vector<Executor*> idle_;                       ///< Members of `executors_` without a task.
};

}  // namespace fjord::mapreduce
