#include "fjord/common/turn_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "fjord/common/check.h"
#include "fjord/common/thread_annotations.h"

namespace fjord {

/// The tasks of one executor, used by the executor and by the thread that runs its turns. The pool's mutex protects
/// them.
class TurnPool::Strand {
 public:
  enum class State { Idle, Waiting, Running };

  std::uint64_t member = 0;
  TurnGroup group;
  std::deque<Task> tasks;
  std::map<std::uint64_t, Task> delayed;  ///< Tasks that are not due yet.
  State state = State::Idle;
  bool is_in_task = false;
  bool is_closed = false;
};

namespace {

/// The turn of the calling thread.
struct CurrentTurn {
  const void* strand = nullptr;
  const std::atomic<bool>* others_wait = nullptr;
  const Clock* clock = nullptr;
  MonotonicTime end;
};
thread_local CurrentTurn current_turn;

}  // namespace

/// The state of a pool. Threading: every thread. Lifetime: as long as the pool, an executor or a turn.
class TurnPool::Shared : public std::enable_shared_from_this<TurnPool::Shared> {
 public:
  Shared(std::string name, const Clock& clock, Scheduler& scheduler, MakeExecutor make_thread, std::size_t threads)
      : name_(std::move(name)),
        clock_(clock),
        scheduler_(scheduler),
        make_thread_(std::move(make_thread)),
        queue_(threads, kTurn, kPatience) {}

  void set_threads(std::size_t threads) {
    const std::lock_guard lock(mutex_);
    queue_.set_slots(threads);
    begin_turns();
  }

  std::shared_ptr<Strand> add(TurnGroup group) {
    const std::lock_guard lock(mutex_);
    auto strand = std::make_shared<Strand>();
    strand->member = next_member_++;
    strand->group = group;
    strands_.emplace(strand->member, strand);
    return strand;
  }

  void post(const std::shared_ptr<Strand>& strand, Task task) {
    const std::lock_guard lock(mutex_);
    if (strand->is_closed || is_closed_) return;
    strand->tasks.push_back(std::move(task));
    if (strand->state != Strand::State::Idle) return;
    strand->state = Strand::State::Waiting;
    queue_.wait(strand->member, strand->group, clock_.now());
    begin_turns();
  }

  void post_after(const std::shared_ptr<Strand>& strand, Duration delay, Task task) {
    const std::lock_guard lock(mutex_);
    if (strand->is_closed || is_closed_) return;
    const std::uint64_t number = next_delayed_++;
    strand->delayed.emplace(number, std::move(task));
    timers().post_after(delay, [weak = weak_from_this(), strand, number] {
      if (const auto self = weak.lock()) self->post_delayed(strand, number);
    });
  }

  /// Closes an executor; waits for its running task.
  void close(Strand& strand) {
    FJORD_CHECK_MSG(current_turn.strand != &strand, "an executor was destroyed by one of its own tasks");
    std::deque<Task> dropped;  // destroyed without the lock: captures can post
    std::map<std::uint64_t, Task> delayed;
    std::unique_lock lock(mutex_);
    strand.is_closed = true;
    dropped.swap(strand.tasks);
    delayed.swap(strand.delayed);
    strands_.erase(strand.member);
    if (strand.state == Strand::State::Waiting) {
      strand.state = Strand::State::Idle;
      queue_.remove(strand.member, clock_.now());
    }
    task_ended_.wait(lock, [&] { return !strand.is_in_task; });
  }

  /// Closes the pool; waits for the running tasks.
  void close_all() {
    std::unique_ptr<Executor> timers;
    std::vector<std::unique_ptr<Executor>> threads;
    {
      const std::lock_guard lock(mutex_);
      is_closed_ = true;
      timers = std::move(timers_);
      for (Thread& thread : threads_) threads.push_back(std::move(thread.executor));
    }
  }

 private:
  struct Thread {
    std::unique_ptr<Executor> executor;
    bool is_busy = false;
  };

  void post_delayed(const std::shared_ptr<Strand>& strand, std::uint64_t number) {
    Task task;
    {
      const std::lock_guard lock(mutex_);
      auto due = strand->delayed.extract(number);
      if (due.empty()) return;
      task = std::move(due.mapped());
    }
    post(strand, std::move(task));
  }

  void begin_turns() FJORD_REQUIRES(mutex_) {
    const MonotonicTime now = clock_.now();
    while (!is_closed_) {
      const auto member = queue_.next(now);
      if (!member) break;
      const auto& strand = strands_.at(*member);
      strand->state = Strand::State::Running;
      const std::size_t thread = free_thread();
      threads_[thread].is_busy = true;
      threads_[thread].executor->post([this, strand, thread] { run_turn(strand, thread); });
    }
    others_wait_.store(queue_.has_waiting(), std::memory_order_relaxed);
    look_later(now);
  }

  std::size_t free_thread() FJORD_REQUIRES(mutex_) {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      if (!threads_[i].is_busy) return i;
    }
    threads_.push_back({make_thread_(name_ + "-" + std::to_string(threads_.size()))});
    return threads_.size() - 1;
  }

  /// Arms a timer for the additional turn of a group that has waited too long.
  void look_later(MonotonicTime now) FJORD_REQUIRES(mutex_) {
    const auto due = queue_.next_extra();
    if (!due || is_closed_ || (looks_at_ && *looks_at_ <= *due)) return;
    looks_at_ = *due;
    timers().post_after(std::max(Duration(0), *due - now), [weak = weak_from_this(), at = *due] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      const std::lock_guard lock(self->mutex_);
      if (self->looks_at_ != at) return;
      self->looks_at_.reset();
      self->begin_turns();
    });
  }

  /// Returns the executor whose timers delay tasks; the tasks themselves run elsewhere. Created on first use.
  Executor& timers() FJORD_REQUIRES(mutex_) {
    if (timers_ == nullptr) timers_ = scheduler_.make_executor(name_ + "-turns");
    return *timers_;
  }

  void run_turn(const std::shared_ptr<Strand>& strand, std::size_t thread) {
    const CurrentTurn before =
        std::exchange(current_turn, {strand.get(), &others_wait_, &clock_, clock_.now() + queue_.turn()});
    while (Task task = next_task(*strand)) {
      task();
      task = nullptr;  // destroys the captures before the task counts as ended
      end_task(*strand);
    }
    current_turn = before;
    const std::lock_guard lock(mutex_);
    const MonotonicTime now = clock_.now();
    queue_.end(strand->member, now);
    threads_[thread].is_busy = false;
    strand->state = Strand::State::Idle;
    if (!strand->is_closed && !strand->tasks.empty()) {
      strand->state = Strand::State::Waiting;
      queue_.wait(strand->member, strand->group, now);
    }
    begin_turns();
  }

  /// Returns the next task; null at the end of the turn.
  Task next_task(Strand& strand) {
    if (turn_is_over()) return nullptr;
    const std::lock_guard lock(mutex_);
    if (strand.tasks.empty() || is_closed_) return nullptr;
    Task task = std::move(strand.tasks.front());
    strand.tasks.pop_front();
    strand.is_in_task = true;
    return task;
  }

  void end_task(Strand& strand) {
    const std::lock_guard lock(mutex_);
    strand.is_in_task = false;
    if (strand.is_closed) task_ended_.notify_all();
  }

  const std::string name_;
  const Clock& clock_;
  Scheduler& scheduler_;
  const MakeExecutor make_thread_;
  std::atomic<bool> others_wait_{false};

  std::mutex mutex_;
  std::condition_variable task_ended_;  ///< Signals the end of a task to an executor's destructor.
  TurnQueue queue_ FJORD_GUARDED_BY(mutex_);
  std::map<TurnQueue::Member, std::shared_ptr<Strand>> strands_ FJORD_GUARDED_BY(mutex_);
  std::unique_ptr<Executor> timers_ FJORD_GUARDED_BY(mutex_);
  std::vector<Thread> threads_ FJORD_GUARDED_BY(mutex_);
  std::optional<MonotonicTime> looks_at_ FJORD_GUARDED_BY(mutex_);
  std::uint64_t next_delayed_ FJORD_GUARDED_BY(mutex_) = 1;
  TurnQueue::Member next_member_ FJORD_GUARDED_BY(mutex_) = 1;
  bool is_closed_ FJORD_GUARDED_BY(mutex_) = false;
};

TurnPool::TurnPool(std::string name, const Clock& clock, Scheduler& scheduler, MakeExecutor make_thread,
                   std::size_t threads)
    : shared_(std::make_shared<Shared>(std::move(name), clock, scheduler, std::move(make_thread), threads)) {}

TurnPool::~TurnPool() { shared_->close_all(); }

void TurnPool::set_threads(std::size_t threads) { shared_->set_threads(threads); }

std::unique_ptr<Executor> TurnPool::make_executor(TurnGroup group) {
  class TurnExecutor final : public Executor {
   public:
    TurnExecutor(std::shared_ptr<Shared> shared, TurnGroup group)
        : shared_(std::move(shared)), strand_(shared_->add(group)) {}
    ~TurnExecutor() override { shared_->close(*strand_); }

    void post(Task task) override { shared_->post(strand_, std::move(task)); }
    void post_after(Duration delay, Task task) override { shared_->post_after(strand_, delay, std::move(task)); }
    bool is_current() const override { return current_turn.strand == strand_.get(); }

   private:
    std::shared_ptr<Shared> shared_;
    std::shared_ptr<Strand> strand_;
  };
  return std::make_unique<TurnExecutor>(shared_, group);
}

bool TurnPool::turn_is_over() {
  const CurrentTurn& turn = current_turn;
  return turn.strand != nullptr && turn.others_wait->load(std::memory_order_relaxed) && turn.clock->now() >= turn.end;
}

}  // namespace fjord
