#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "fjord/common/executor.h"
#include "fjord/common/status.h"

namespace fjord::slotfile {

/// A blocking piece of work, such as a sync, that runs once: on another executor, or on a thread that waits for it.
/// Threading: from any thread.
class BackgroundJob {
 public:
  /// Starts `work` on `executor`; runs it at once on this thread if `executor` is null.
  static std::shared_ptr<BackgroundJob> start(Executor* executor, std::function<Status()> work) {
    auto job = std::make_shared<BackgroundJob>(std::move(work));
    if (executor == nullptr) {
      job->run();
    } else {
      executor->post([job] { job->run(); });
    }
    return job;
  }

  explicit BackgroundJob(std::function<Status()> work) : work_(std::move(work)) {}

  bool is_done() const {
    const std::lock_guard lock(mutex_);
    return state_ == State::Done;
  }
  /// Runs the work on this thread if it has not begun; otherwise waits until it is done.
  void join() {
    run();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return state_ == State::Done; });
  }
  /// Waits like join(), and returns the result of the work.
  Status wait() {
    join();
    return status_;
  }
  /// Prevents the work from beginning. If it has begun, waits until it is done.
  void cancel() {
    std::unique_lock lock(mutex_);
    if (state_ == State::Waiting) state_ = State::Done;
    done_.wait(lock, [&] { return state_ == State::Done; });
  }

 private:
  enum class State { Waiting, Running, Done };

  void run() {
    {
      const std::lock_guard lock(mutex_);
      if (state_ != State::Waiting) return;
      state_ = State::Running;
    }
    Status status = work_();
    {
      const std::lock_guard lock(mutex_);
      status_ = std::move(status);
      state_ = State::Done;
      work_ = nullptr;
    }
    done_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable done_;
  State state_ = State::Waiting;
  Status status_;
  std::function<Status()> work_;
};

}  // namespace fjord::slotfile
