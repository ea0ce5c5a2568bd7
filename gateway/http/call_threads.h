#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "fjord/common/thread_annotations.h"

namespace fjord::gateway {

/// Threads for calls that wait for the cluster, apart from those of visits. They start with the first call.
/// Threading: any thread.
class CallThreads {
 public:
  ~CallThreads() { end(); }

  /// Runs the task on a thread; returns false if too many tasks wait.
  bool run(std::function<void()> task);
  void begin_end() { is_ending_ = true; }
  /// Waits for the running tasks, and drops the others.
  void end();

 private:
  void work();

  std::atomic<bool> is_ending_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_ FJORD_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ FJORD_GUARDED_BY(mutex_);
  std::size_t idle_ FJORD_GUARDED_BY(mutex_) = 0;
  bool is_over_ FJORD_GUARDED_BY(mutex_) = false;
};

}  // namespace fjord::gateway
