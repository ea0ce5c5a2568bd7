#pragma once

#include <memory>
#include <mutex>

#include "fjord/common/executor.h"
#include "fjord/common/thread_annotations.h"

namespace fjord::visitors {

/// Posts tasks to an executor that may be destroyed first; for replies from stripes, clients and other services. Copies
/// share one state. After close() tasks are dropped.
///
/// `while_alive` (common/callback_guard.h) guards a callback against the end of the object that it is for, and still
/// needs an executor to run on. Here the executor itself may be gone when another thread answers, hence the lock.
///
/// Threading: any thread. The lock is held only while a task is posted.
/// Lifetime: the owner of the executor closes the mailbox before it destroys the executor.
class Mailbox {
 public:
  /// Has no executor: every task is dropped.
  Mailbox() = default;
  explicit Mailbox(Executor& executor) : state_(std::make_shared<State>(executor)) {}

  void post(Task task) const {
    if (state_ == nullptr) return;
    const std::lock_guard lock(state_->mutex);
    if (state_->executor != nullptr) state_->executor->post(std::move(task));
  }
  void close() const {
    if (state_ == nullptr) return;
    const std::lock_guard lock(state_->mutex);
    state_->executor = nullptr;
  }

 private:
  struct State {
    explicit State(Executor& e) : executor(&e) {}
    std::mutex mutex;
    Executor* executor FJORD_GUARDED_BY(mutex);
  };
  std::shared_ptr<State> state_;
};

}  // namespace fjord::visitors
