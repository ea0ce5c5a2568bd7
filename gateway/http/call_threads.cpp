#include "http/call_threads.h"

#include <pthread.h>
#include <utility>

#include "fjord/common/fatal_signals.h"

namespace fjord::gateway {
namespace {

constexpr std::size_t kThreadsMax = 8;
constexpr std::size_t kWaitingMax = 256;

}  // namespace

bool CallThreads::run(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (is_over_ || is_ending_ || waiting_.size() >= kWaitingMax) return false;
  waiting_.push_back(std::move(task));
  if (idle_ < waiting_.size() && threads_.size() < kThreadsMax) {
    threads_.emplace_back([this] { work(); });
    ::pthread_setname_np(threads_.back().native_handle(), "http-call");
  }
  changed_.notify_one();
  return true;
}

void CallThreads::end() {
  begin_end();
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    waiting_.clear();
    threads = std::exchange(threads_, {});
  }
  changed_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

void CallThreads::work() {
  const SignalStack signal_stack;
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [this] { return is_over_ || !waiting_.empty(); });
    --idle_;
    if (is_over_) return;
    const std::function<void()> task = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace fjord::gateway
