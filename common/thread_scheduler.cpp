#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "fjord/common/check.h"
#include "fjord/common/fatal_signals.h"
#include "fjord/common/scheduler.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/common/unique_function.h"

namespace fjord {

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr int kBackgroundNice = 15;
constexpr int kInteractiveNice = 8;

/// The argument of sched_setattr, which the C library does not declare.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};

/// Time slice of background threads. It is longer than that of other threads, so that a thread that wakes up can
/// interrupt a background thread (Linux from 6.12 on; older ones ignore it). Low weight alone is not enough: from 6.6
/// on a thread runs to the end of its slice whatever its weight. It is not much longer: if the system groups processes,
/// other groups wait for the slice of the running thread.
constexpr std::uint64_t kBackgroundSliceNs = 4'000'000;

/// Lowers the priority of the calling thread.
void run_behind_others(int nice) {
  SchedulingAttributes wanted;
  wanted.nice = nice;
  wanted.runtime_ns = kBackgroundSliceNs;
  if (::syscall(SYS_sched_setattr, 0, &wanted, 0) == 0) return;
  // A sandbox can refuse the call. Only the latency of other threads depends on it.
  static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice));
}

/// Returns the processors that the process can use; empty if the system does not report them (more processors than
/// fit).
cpu_set_t usable_processors() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  // Asks for the main thread's affinity, because the affinity of background threads may have been changed.
  if (::sched_getaffinity(::getpid(), sizeof usable, &usable) != 0) CPU_ZERO(&usable);
  return usable;
}

/// Returns `from` without its first `count` processors.
cpu_set_t without_first(cpu_set_t from, unsigned count) {
  for (int cpu = 0; cpu < CPU_SETSIZE && count > 0; ++cpu) {
    if (!CPU_ISSET(cpu, &from)) continue;
    CPU_CLR(cpu, &from);
    --count;
  }
  return from;
}

/// Returns the live child processes that `thread` of this process started; empty on a system that does not list them.
std::vector<pid_t> children_of(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/children");
  return {std::istream_iterator<pid_t>(file), {}};
}

std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> threads;
  std::error_code ended;
  for (std::filesystem::directory_iterator it("/proc/" + std::to_string(process) + "/task", ended), end;
       !ended && it != end; it.increment(ended)) {
    threads.push_back(static_cast<pid_t>(std::stol(it->path().filename().string())));
  }
  return threads;
}

}  // namespace

/// Places the threads of background executors on processors.
/// Threading: every thread. Lifetime: as long as the scheduler or one of the threads.
class ThreadScheduler::BackgroundThreads {
 public:
  /// Registers the calling thread.
  void enter() {
    std::lock_guard lock(mutex_);
    threads_.push_back(::gettid());
    if (kept_free_ > 0) place(::gettid());
  }
  void leave() {
    std::lock_guard lock(mutex_);
    std::erase(threads_, ::gettid());
  }

  unsigned keep_free(int percent) {
    const cpu_set_t usable = usable_processors();
    const auto count = static_cast<unsigned>(CPU_COUNT(&usable));
    const unsigned wanted =
        percent <= 0 || count < 2 ? 0 : std::min((count * static_cast<unsigned>(percent) + 99) / 100, count - 1);
    std::lock_guard lock(mutex_);
    if (wanted == kept_free_) return kept_free_;
    kept_free_ = wanted;
    processors_ = without_first(usable, wanted);
    for (const pid_t thread : threads_) {
      place(thread);
      for (const pid_t child : children_of(thread)) {
        for (const pid_t other : threads_of(child)) place(other);
      }
    }
    return kept_free_;
  }

 private:
  /// Sets the processors that a thread may use. Ignores errors: the thread can have ended, or the system can restrict
  /// it to other processors.
  void place(pid_t thread) const FJORD_REQUIRES(mutex_) {
    static_cast<void>(::sched_setaffinity(thread, sizeof processors_, &processors_));
  }

  std::mutex mutex_;
  std::vector<pid_t> threads_ FJORD_GUARDED_BY(mutex_);
  unsigned kept_free_ FJORD_GUARDED_BY(mutex_) = 0;
  cpu_set_t processors_ FJORD_GUARDED_BY(mutex_){};
};

namespace {

class ThreadExecutor;
thread_local const ThreadExecutor* current_executor = nullptr;

/// One thread that runs the tasks of a queue. Only the queue is shared; the heap of timers belongs to the thread.
class ThreadExecutor final : public Executor {
 public:
  /// The thread runs `prepare` before all tasks and `finish` after them.
  ThreadExecutor(const std::string& name, UniqueFunction<void()> prepare, UniqueFunction<void()> finish)
      : thread_([this, prepare = std::move(prepare), finish = std::move(finish)]() mutable {
          if (prepare) prepare();
          run();
          if (finish) finish();
        }) {
    ::pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
  }

  ~ThreadExecutor() override {
    FJORD_CHECK_MSG(!is_current(), "an executor was destroyed by one of its own tasks");
    {
      std::lock_guard lock(mutex_);
      stopping_.store(true, std::memory_order_relaxed);
    }
    wake_.notify_one();
    thread_.join();
    // The destructor of a capture can post again; the post sees `stopping_` and is dropped too. The queue is moved out
    // of the object under the lock and destroyed without the lock.
    std::vector<Task> tasks;
    std::vector<Timer> timers;
    {
      std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
      timers.swap(new_timers_);
    }
  }

  void post(Task task) override {
    bool wake = false;
    {
      std::lock_guard lock(mutex_);
      // the caller destroys `task` after the lock is released
      if (stopping_.load(std::memory_order_relaxed)) return;
      tasks_.push_back(std::move(task));
      wake = std::exchange(asleep_, false);
    }
    if (wake) wake_.notify_one();
  }

  void post_after(Duration delay, Task task) override {
    // Longer than any process runs, and far from an overflow of the clock's nanoseconds.
    constexpr Duration kForever = std::chrono::hours(24 * 365 * 50);
    const SteadyTime due = std::chrono::steady_clock::now() + std::clamp(delay, Duration::zero(), kForever);
    bool wake = false;
    {
      std::lock_guard lock(mutex_);
      if (stopping_.load(std::memory_order_relaxed)) return;
      new_timers_.push_back({due, next_sequence_++, std::move(task)});
      wake = std::exchange(asleep_, false);
    }
    if (wake) wake_.notify_one();
  }

  bool is_current() const override { return current_executor == this; }

 private:
  struct Timer {
    SteadyTime due;
    std::uint64_t sequence = 0;
    Task task;
  };
  struct LaterFirst {
    bool operator()(const Timer& a, const Timer& b) const {
      return a.due != b.due ? a.due > b.due : a.sequence > b.sequence;
    }
  };

  void run() {
    const SignalStack signal_stack;
    current_executor = this;
    std::vector<Task> batch;
    std::vector<Timer> arrived;
    std::vector<Timer> heap;
    while (take_work(batch, arrived, heap)) {
      for (Timer& timer : arrived) {
        heap.push_back(std::move(timer));
        std::push_heap(heap.begin(), heap.end(), LaterFirst{});
      }
      arrived.clear();
      for (Task& task : batch) {
        if (stopping_.load(std::memory_order_relaxed)) break;
        task();
        task = nullptr;  // destroys the captures before the next task runs
      }
      batch.clear();
      run_due(heap);
    }
  }

  void run_due(std::vector<Timer>& heap) {
    if (heap.empty()) return;
    const SteadyTime now = std::chrono::steady_clock::now();
    while (!heap.empty() && heap.front().due <= now && !stopping_.load(std::memory_order_relaxed)) {
      std::pop_heap(heap.begin(), heap.end(), LaterFirst{});
      Task task = std::move(heap.back().task);
      heap.pop_back();
      task();
    }
  }

  /// Waits for posts or the first timer and takes all posts at once. Returns false when the thread should stop.
  bool take_work(std::vector<Task>& batch, std::vector<Timer>& arrived, const std::vector<Timer>& heap) {
    std::unique_lock lock(mutex_);
    while (true) {
      if (stopping_.load(std::memory_order_relaxed)) return false;
      if (!tasks_.empty() || !new_timers_.empty()) {
        batch.swap(tasks_);
        arrived.swap(new_timers_);
        return true;
      }
      asleep_ = true;
      if (heap.empty()) {
        wake_.wait(lock);
      } else if (wake_.wait_until(lock, heap.front().due) == std::cv_status::timeout) {
        asleep_ = false;
        return !stopping_.load(std::memory_order_relaxed);
      }
      asleep_ = false;
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Task> tasks_ FJORD_GUARDED_BY(mutex_);
  std::vector<Timer> new_timers_ FJORD_GUARDED_BY(mutex_);
  std::uint64_t next_sequence_ FJORD_GUARDED_BY(mutex_) = 0;
  bool asleep_ FJORD_GUARDED_BY(mutex_) = false;  // The thread waits. Only then a post has to wake it up.
  std::atomic<bool> stopping_{false};             // written under the mutex, read between tasks without it
  std::thread thread_;                            // the last member, because the thread uses all others
};

}  // namespace

ThreadScheduler::ThreadScheduler() : background_(std::make_shared<BackgroundThreads>()) {}

ThreadScheduler::~ThreadScheduler() = default;

std::unique_ptr<Executor> ThreadScheduler::make_executor(const std::string& name) {
  return std::make_unique<ThreadExecutor>(name, nullptr, nullptr);
}

std::unique_ptr<Executor> ThreadScheduler::make_background_executor(const std::string& name) {
  return make_behind_others(name, kBackgroundNice);
}

std::unique_ptr<Executor> ThreadScheduler::make_interactive_executor(const std::string& name) {
  return make_behind_others(name, kInteractiveNice);
}

std::unique_ptr<Executor> ThreadScheduler::make_behind_others(const std::string& name, int nice) {
  return std::make_unique<ThreadExecutor>(
      name,
      [threads = background_, nice] {
        run_behind_others(nice);
        threads->enter();
      },
      [threads = background_] { threads->leave(); });
}

unsigned ThreadScheduler::keep_processors_free(int percent) { return background_->keep_free(percent); }

}  // namespace fjord
