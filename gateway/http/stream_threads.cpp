#include "http/stream_threads.h"

#include <condition_variable>
#include <mutex>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <utility>

#include "fjord/common/fatal_signals.h"
#include "fjord/common/log.h"
#include "fjord/common/thread_annotations.h"

namespace fjord::gateway {

struct StreamThreads::Shared {
  void leave() {
    const std::lock_guard lock(mutex);
    --threads;
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::size_t threads FJORD_GUARDED_BY(mutex) = 0;
  bool is_over FJORD_GUARDED_BY(mutex) = false;
};

StreamThreads::StreamThreads(std::size_t threads_max)
    : threads_max_(threads_max), shared_(std::make_shared<Shared>()) {}

bool StreamThreads::run(std::function<void()> task) {
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->is_over || shared_->threads >= threads_max_) return false;
    ++shared_->threads;
  }
  try {
    std::thread thread([shared = shared_, task = std::move(task)]() mutable {
      const SignalStack signal_stack;
      task();
      task = {};  // Destroys what the task holds before the next task can be counted.
      shared->leave();
    });
    ::pthread_setname_np(thread.native_handle(), "http-stream");
    thread.detach();
  } catch (const std::system_error& error) {
    log::warning("http", "no thread for a long answer: {}", error.what());
    shared_->leave();
    return false;
  }
  return true;
}

void StreamThreads::end() {
  std::unique_lock lock(shared_->mutex);
  shared_->is_over = true;
  shared_->changed.wait(lock, [this] { return shared_->threads == 0; });
}

}  // namespace fjord::gateway
