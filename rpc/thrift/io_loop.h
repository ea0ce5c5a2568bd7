#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fjord/common/thread_annotations.h"
#include "fjord/common/unique_function.h"

namespace fjord::rpc {

/// How other threads reach an I/O loop. Tasks that arrive while the loop is busy wait in one batch, so that it is woken
/// once and what they write leaves in one system call.
/// Threading: every thread. Lifetime: may outlive its loop; tasks are dropped then.
class LoopInbox {
 public:
  explicit LoopInbox(boost::asio::io_context& context) : context_(&context) {}

  void submit(Task task);
  /// The loop's own thread runs the task at once.
  void run_or_submit(Task task);
  void close();

 private:
  friend class IoLoop;
  void drain();

  std::mutex mutex_;
  boost::asio::io_context* context_ FJORD_GUARDED_BY(mutex_);  // null once closed
  std::vector<Task> tasks_ FJORD_GUARDED_BY(mutex_);
  std::vector<Task> batch_;              // of the loop's thread
  std::atomic<std::thread::id> thread_;  // none once stopped
};

/// A thread that runs an Asio context.
class IoLoop {
 public:
  explicit IoLoop(const std::string& name);
  /// Ends the thread if stop() did not; then destroys the handlers that still wait.
  ~IoLoop();

  boost::asio::io_context& context() { return context_; }
  const std::shared_ptr<LoopInbox>& inbox() { return inbox_; }
  /// Nothing of the loop runs after this returns. Not from the loop's own thread.
  void stop();

 private:
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::shared_ptr<LoopInbox> inbox_;
  std::thread thread_;
};

}  // namespace fjord::rpc
