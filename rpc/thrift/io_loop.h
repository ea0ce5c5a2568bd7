#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fjord/common/thread_annotations.h"
#include "fjord/common/unique_function.h"

namespace fjord::rpc {

/// Queue of tasks from other threads to an I/O loop. Tasks that arrive while the loop is busy wait in one batch. So the
/// loop wakes up once for all of them, and their output leaves in one system call.
/// Threading: any thread. Lifetime: may outlive its loop; then it drops tasks.
class LoopInbox {
 public:
  explicit LoopInbox(boost::asio::io_context& context) : context_(&context) {}

  void submit(Task task);
  /// Runs the task at once if called on the loop's own thread, and submits it otherwise.
  void run_or_submit(Task task);
  /// Returns true on the loop's own thread.
  bool is_current() const { return std::this_thread::get_id() == thread_.load(std::memory_order_relaxed); }
  void close();

 private:
  friend class IoLoop;
  void drain();

  std::mutex mutex_;
  boost::asio::io_context* context_ FJORD_GUARDED_BY(mutex_);  // Null after close().
  std::vector<Task> tasks_ FJORD_GUARDED_BY(mutex_);
  std::vector<Task> batch_;              // The running tasks; used by the loop's thread only.
  std::atomic<std::thread::id> thread_;  // The loop's thread; none after it has stopped.
};

/// A thread that runs an Asio context.
class IoLoop {
 public:
  /// The thread looks for work for `poll_time` before it sleeps, as IdlePolling says.
  IoLoop(const std::string& name, std::chrono::microseconds poll_time);
  /// Ends the thread if stop() was not called, then destroys the handlers that are still queued.
  ~IoLoop();

  boost::asio::io_context& context() { return context_; }
  const std::shared_ptr<LoopInbox>& inbox() { return inbox_; }
  /// Runs the task on the loop. Returns after the handlers have run that were queued before it or that it cancelled.
  /// Must not be called on the loop's own thread.
  void run_and_settle(Task task);
  /// Ends the thread. No handler runs after this returns. Must not be called on the loop's own thread.
  void stop();

 private:
  void run(std::chrono::microseconds poll_time);

  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::shared_ptr<LoopInbox> inbox_;
  std::thread thread_;
};

}  // namespace fjord::rpc
