#include "io_loop.h"

#include <boost/asio/post.hpp>
#include <future>
#include <pthread.h>

#include "fjord/common/check.h"
#include "fjord/common/fatal_signals.h"
#include "fjord/common/idle_polling.h"
#include "fjord/rpc/thrift_transport.h"

namespace fjord::rpc {

void LoopInbox::submit(Task task) {
  std::lock_guard lock(mutex_);
  // The loop is closed: `task` is dropped. The caller destroys it after the lock is released.
  if (context_ == nullptr) return;
  tasks_.push_back(std::move(task));
  if (tasks_.size() == 1) boost::asio::post(*context_, [this] { drain(); });
}

void LoopInbox::run_or_submit(Task task) {
  if (is_current()) {
    task();
  } else {
    submit(std::move(task));
  }
}

void LoopInbox::drain() {
  {
    std::lock_guard lock(mutex_);
    batch_.swap(tasks_);
  }
  for (Task& task : batch_) task();
  batch_.clear();
}

void LoopInbox::close() {
  std::vector<Task> tasks;  // Declared before the lock: destroying a task may call submit().
  std::lock_guard lock(mutex_);
  context_ = nullptr;
  tasks.swap(tasks_);
}

IoLoop::IoLoop(const std::string& name, std::chrono::microseconds poll_time)
    : work_(boost::asio::make_work_guard(context_)), inbox_(std::make_shared<LoopInbox>(context_)) {
  std::promise<void> started;
  thread_ = std::thread([this, &started, poll_time] {
    const SignalStack signal_stack;
    inbox_->thread_ = std::this_thread::get_id();
    started.set_value();
    run(poll_time);
  });
  started.get_future().wait();
  ::pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

IoLoop::~IoLoop() { stop(); }

void IoLoop::run(std::chrono::microseconds poll_time) {
  IdlePolling idle(poll_time);
  while (!context_.stopped()) {
    idle.wait([this] { return context_.poll() > 0 || context_.stopped(); }, [this] { context_.run_one(); });
  }
}

void IoLoop::run_and_settle(Task task) {
  FJORD_CHECK_MSG(std::this_thread::get_id() != thread_.get_id(), "an I/O loop cannot wait for itself");
  const auto settled = std::make_shared<std::promise<void>>();
  inbox_->submit([this, settled, task = std::move(task)] {
    task();
    // Asio has queued the handlers of cancelled operations already.
    boost::asio::post(context_, [settled] { settled->set_value(); });
  });
  settled->get_future().wait();
}

void IoLoop::stop() {
  if (!thread_.joinable()) return;
  FJORD_CHECK_MSG(std::this_thread::get_id() != thread_.get_id(), "an I/O loop cannot end itself");
  context_.stop();
  thread_.join();
  inbox_->thread_ = std::thread::id();
  inbox_->close();
}

IoThreads::IoThreads(const std::string& name, int threads, std::chrono::microseconds poll_time) {
  FJORD_CHECK(threads > 0);
  for (int i = 0; i < threads; ++i) {
    loops_.push_back(std::make_unique<IoLoop>(name + "-" + std::to_string(i), poll_time));
  }
}

IoThreads::~IoThreads() {
  for (const auto& loop : loops_) loop->stop();
}

}  // namespace fjord::rpc
