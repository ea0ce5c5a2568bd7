#pragma once

#include <mutex>
#include <utility>

#include "fjord/common/executor.h"
#include "fjord/common/thread_annotations.h"

namespace fjord::gateway {

/// Posts to an executor that may end before the last callback that posts. Threading: any thread.
class Inbox {
 public:
  explicit Inbox(Executor& executor) : executor_(&executor) {}

  void post(Task task) {
    const std::lock_guard lock(mutex_);
    if (executor_ != nullptr) executor_->post(std::move(task));
  }
  void post_after(Duration delay, Task task) {
    const std::lock_guard lock(mutex_);
    if (executor_ != nullptr) executor_->post_after(delay, std::move(task));
  }
  /// Drops all later tasks.
  void close() {
    const std::lock_guard lock(mutex_);
    executor_ = nullptr;
  }

 private:
  std::mutex mutex_;
  Executor* executor_ FJORD_GUARDED_BY(mutex_);
};

}  // namespace fjord::gateway
