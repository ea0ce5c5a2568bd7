#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "fjord/common/scheduler.h"
#include "fjord/common/thread_annotations.h"
#include "thread_executor.h"

namespace fjord {

namespace {

constexpr int kBackgroundBelow = 15;
constexpr int kInteractiveBelow = 8;

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

/// Lowers the priority of the calling thread: its nice value is `below` more than that of the process.
void run_behind_others(int below) {
  constexpr int kNiceMax = 19;
  const int nice = std::min(kNiceMax, ::getpriority(PRIO_PROCESS, static_cast<id_t>(::getpid())) + below);
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

ThreadScheduler::ThreadScheduler() : background_(std::make_shared<BackgroundThreads>()) {}

ThreadScheduler::~ThreadScheduler() = default;

std::unique_ptr<Executor> ThreadScheduler::make_executor(const std::string& name) {
  return std::make_unique<ThreadExecutor>(ThreadExecutor::Options{.name = name, .prepare = {}, .finish = {}});
}

std::unique_ptr<Executor> ThreadScheduler::make_background_executor(const std::string& name) {
  return make_behind_others(name, kBackgroundBelow);
}

std::unique_ptr<Executor> ThreadScheduler::make_interactive_executor(const std::string& name) {
  return make_behind_others(name, kInteractiveBelow);
}

std::unique_ptr<Executor> ThreadScheduler::make_behind_others(const std::string& name, int below) {
  ThreadExecutor::Options options;
  options.name = name;
  options.runs_elsewhere = false;  // Other threads have another priority.
  options.prepare = [threads = background_, below] {
    run_behind_others(below);
    threads->enter();
  };
  options.finish = [threads = background_] { threads->leave(); };
  return std::make_unique<ThreadExecutor>(std::move(options));
}

unsigned ThreadScheduler::keep_processors_free(int percent) { return background_->keep_free(percent); }

}  // namespace fjord
