#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "fjord/common/scheduler.h"
#include "inbox.h"

namespace fjord::gateway {

/// A few threads for tasks that wait for the cluster or take long. A task never waits for a client.
/// Threading: run() on the executor of `inbox` only; tasks run on any of the threads.
class Workers {
 public:
  Workers(Scheduler& scheduler, std::shared_ptr<Inbox> inbox) : scheduler_(scheduler), inbox_(std::move(inbox)) {}
  /// Waits for running tasks, and destroys the others.
  ~Workers();

  void run(Task task);

 private:
  void start(std::size_t worker, Task task);
  void on_done(std::size_t worker);

  Scheduler& scheduler_;
  const std::shared_ptr<Inbox> inbox_;
  std::vector<std::unique_ptr<Executor>> threads_;
  std::vector<std::size_t> free_;
  std::deque<Task> waiting_;
};

}  // namespace fjord::gateway
