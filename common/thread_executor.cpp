#include "thread_executor.h"

#include <algorithm>
#include <pthread.h>
#include <typeinfo>
#include <utility>

#include "fjord/common/check.h"
#include "fjord/common/fatal_signals.h"
#include "fjord/common/run_inline.h"

namespace fjord {
namespace {

using SteadyTime = ThreadExecutor::SteadyTime;

thread_local const ThreadExecutor* current_executor = nullptr;
thread_local std::int64_t inline_until =
    0;  ///< End of the permission to run tasks on this thread, on the steady clock.

/// A task that holds the turn longer than this on another thread was too long for that thread.
constexpr std::chrono::microseconds kLongTask{500};
/// After such a task, the own thread runs all tasks for this many times as long. So long tasks take at most a tenth of
/// another thread's time.
constexpr int kOwnThreadTimes = 10;
/// Minimum time between two wake-ups of the own thread by timers alone. Timers of many short operations then share one.
constexpr std::chrono::microseconds kTimerPause{500};

std::int64_t to_count(SteadyTime time) { return time.time_since_epoch().count(); }

}  // namespace

ThreadExecutor::ThreadExecutor(Options options)
    : runs_elsewhere_(options.runs_elsewhere),
      thread_([this, prepare = std::move(options.prepare), finish = std::move(options.finish)]() mutable {
        if (prepare) prepare();
        run();
        if (finish) finish();
      }) {
  ::pthread_setname_np(thread_.native_handle(), options.name.substr(0, 15).c_str());
}

ThreadExecutor::~ThreadExecutor() {
  FJORD_CHECK_MSG(!is_current(), "an executor was destroyed by one of its own tasks");
  {
    std::lock_guard lock(mutex_);
    stopping_.store(true, std::memory_order_relaxed);
    wake_.notify_all();
  }
  thread_.join();
  // The destructor of a capture can post again; the post sees `stopping_` and is dropped too. The queue is moved out
  // of the object under the lock and destroyed without the lock.
  std::vector<Task> tasks;
  std::vector<Timer> timers;
  {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return turn_ == Turn::Free; });
    tasks.swap(tasks_);
    timers.swap(new_timers_);
  }
}

void ThreadExecutor::post(Task task) {
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    // the caller destroys `task` after the lock is released
    if (stopping_.load(std::memory_order_relaxed)) return;
    tasks_.push_back(std::move(task));
    // A thread that runs tasks elsewhere looks at the queue when its task has ended.
    if (turn_ != Turn::Elsewhere) wake = std::exchange(asleep_, false);
  }
  if (wake) wake_.notify_one();
}

void ThreadExecutor::post_after(Duration delay, Task task) {
  // Longer than any process runs, and far from an overflow of the clock's nanoseconds.
  constexpr Duration kForever = std::chrono::hours(24 * 365 * 50);
  const SteadyTime due = std::chrono::steady_clock::now() + std::clamp(delay, Duration::zero(), kForever);
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    if (stopping_.load(std::memory_order_relaxed)) return;
    new_timers_.push_back({due, next_sequence_++, std::move(task)});
    first_new_timer_ = std::min(first_new_timer_, due);
    if (turn_ != Turn::Elsewhere && due < wakes_at_) wake = std::exchange(asleep_, false);
  }
  if (wake) wake_.notify_one();
}

bool ThreadExecutor::is_current() const { return current_executor == this; }

// --- The own thread --------------------------------------------------------------------------------------------------

void ThreadExecutor::run() {
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

void ThreadExecutor::run_due(std::vector<Timer>& heap) {
  if (heap.empty()) return;
  const SteadyTime now = std::chrono::steady_clock::now();
  while (!heap.empty() && heap.front().due <= now && !stopping_.load(std::memory_order_relaxed)) {
    std::pop_heap(heap.begin(), heap.end(), LaterFirst{});
    Task task = std::move(heap.back().task);
    heap.pop_back();
    task();
  }
}

bool ThreadExecutor::has_work(const std::vector<Timer>& heap) const {
  if (!tasks_.empty()) return true;
  const SteadyTime first = heap.empty() ? first_new_timer_ : std::min(first_new_timer_, heap.front().due);
  return first != SteadyTime::max() && first <= std::chrono::steady_clock::now();
}

/// Gives back the turn, waits for posts or the first timer, and takes the turn and all posts at once. Returns false
/// when the thread should stop.
bool ThreadExecutor::take_work(std::vector<Task>& batch, std::vector<Timer>& arrived, const std::vector<Timer>& heap) {
  std::unique_lock lock(mutex_);
  if (turn_ == Turn::Own) turn_ = Turn::Free;
  const SteadyTime began = tasks_.empty() ? std::chrono::steady_clock::now() : SteadyTime{};
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (turn_ == Turn::Free && has_work(heap)) {
      turn_ = Turn::Own;
      batch.swap(tasks_);
      arrived.swap(new_timers_);
      first_new_timer_ = SteadyTime::max();
      return true;
    }
    asleep_ = true;
    const SteadyTime first = heap.empty() ? first_new_timer_ : std::min(first_new_timer_, heap.front().due);
    if (turn_ == Turn::Elsewhere || first == SteadyTime::max()) {
      // The thread that holds the turn wakes this one up if anything is to be done, now or later.
      wakes_at_ = SteadyTime::max();
      first_old_timer_ = heap.empty() ? SteadyTime::max() : heap.front().due;
      wake_.wait(lock);
      first_old_timer_ = SteadyTime::max();
    } else {
      wakes_at_ = std::max(first, began + kTimerPause);
      wake_.wait_until(lock, wakes_at_);
    }
    asleep_ = false;
  }
  return false;
}

// --- Other threads ---------------------------------------------------------------------------------------------------

bool ThreadExecutor::try_run(Task& task, SteadyTime end) {
  const SteadyTime begin = std::chrono::steady_clock::now();
  if (!runs_elsewhere_ || begin >= end) return false;
  {
    std::lock_guard lock(mutex_);
    if (stopping_.load(std::memory_order_relaxed) || turn_ != Turn::Free || !tasks_.empty()) return false;
    if (begin < own_thread_until_) return false;
    turn_ = Turn::Elsewhere;
  }
  run_elsewhere(std::move(task), begin, end);
  return true;
}

void ThreadExecutor::run_elsewhere(Task task, SteadyTime begin, SteadyTime end) noexcept {
  const ThreadExecutor* const outer = std::exchange(current_executor, this);
  std::vector<Task> batch;
  task();
  task = nullptr;
  std::size_t done = 0;
  while (take_more(batch, done, begin, end)) {
    for (done = 0; done < batch.size() && std::chrono::steady_clock::now() < end; ++done) {
      batch[done]();
      batch[done] = nullptr;
    }
  }
  current_executor = outer;
}

/// Takes what was posted while a thread ran tasks elsewhere, of which it has done the first `done` of `batch`. Returns
/// false when nothing is left or the time is over: then it has given back the turn, with the rest of the batch, and
/// the executor may have been destroyed.
bool ThreadExecutor::take_more(std::vector<Task>& batch, std::size_t done, SteadyTime begin, SteadyTime end) {
  std::lock_guard lock(mutex_);
  tasks_.insert(tasks_.begin(), std::make_move_iterator(batch.begin() + static_cast<std::ptrdiff_t>(done)),
                std::make_move_iterator(batch.end()));
  batch.clear();
  const bool is_stopping = stopping_.load(std::memory_order_relaxed);
  const SteadyTime now = std::chrono::steady_clock::now();
  if (!tasks_.empty() && !is_stopping && now < end) {
    batch.swap(tasks_);
    return true;
  }
  if (now - begin > kLongTask) own_thread_until_ = now + kOwnThreadTimes * (now - begin);
  turn_ = Turn::Free;
  if (is_stopping) {
    wake_.notify_all();
  } else if (asleep_ && (!tasks_.empty() || std::min(first_new_timer_, first_old_timer_) < wakes_at_)) {
    asleep_ = false;
    wake_.notify_one();
  }
  return false;
}

// --- run_inline.h ----------------------------------------------------------------------------------------------------

InlineScope::InlineScope(Duration budget) : outer_(inline_until) {
  inline_until = to_count(std::chrono::steady_clock::now() + budget);
}

InlineScope::~InlineScope() { inline_until = outer_; }

void run_or_post(Executor& executor, Task task) {
  if (inline_until != 0 && current_executor == nullptr && typeid(executor) == typeid(ThreadExecutor)) {
    const SteadyTime end{SteadyTime::duration(inline_until)};
    if (static_cast<ThreadExecutor&>(executor).try_run(task, end)) return;
  }
  executor.post(std::move(task));
}

}  // namespace fjord
