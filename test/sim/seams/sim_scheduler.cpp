#include "fjord/sim/sim_scheduler.h"

#include <algorithm>
#include <fmt/core.h>
#include <iterator>
#include <limits>
#include <utility>

#include "fjord/common/hash.h"

namespace fjord::sim {

namespace {

constexpr std::uint32_t kNoExecutor = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kNoTimer = std::numeric_limits<std::uint32_t>::max();
/// Range of a post's delay; a power of two.
constexpr std::uint64_t kPostSpreadUs = 4;
/// Longer than any scenario, but without overflow.
constexpr Duration kForever = std::chrono::hours(24 * 365 * 1000);

}  // namespace

class SimScheduler::SimExecutor final : public Executor {
 public:
  SimExecutor(SimScheduler& scheduler, std::uint32_t id) : scheduler_(scheduler), id_(id) {}
  ~SimExecutor() override {
    FJORD_CHECK_MSG(!is_current(), "an executor was destroyed by one of its own tasks");
    scheduler_.drop_executors({id_});
  }
  void post(Task task) override { scheduler_.post(id_, std::move(task)); }
  void post_after(Duration delay, Task task) override { scheduler_.post_after(id_, delay, std::move(task)); }
  bool is_current() const override { return scheduler_.running_ == id_; }

 private:
  SimScheduler& scheduler_;
  std::uint32_t id_;
};

SimNodeScheduler::~SimNodeScheduler() { kill(); }

std::unique_ptr<Executor> SimNodeScheduler::make_executor(const std::string& name) {
  const std::uint32_t id = scheduler_.add_executor(name_ + "/" + name, alive_);
  executors_.push_back(id);
  return std::make_unique<SimScheduler::SimExecutor>(scheduler_, id);
}

void SimNodeScheduler::kill() {
  if (!alive_) return;
  alive_ = false;
  // A copy, because the destructor of a dropped capture may add another (dead) executor to `executors_`.
  const std::vector<std::uint32_t> ids = executors_;
  scheduler_.drop_executors(ids);
}

void SimNodeScheduler::pause() {
  for (const std::uint32_t id : executors_) scheduler_.pause(id, true);
}

void SimNodeScheduler::resume() {
  for (const std::uint32_t id : executors_) scheduler_.pause(id, false);
}

SimScheduler::SimScheduler(std::uint64_t seed)
    : tie_seed_(mix64(seed, 1)), random_(mix64(seed, 2)), running_(kNoExecutor) {
  outside_ = std::make_unique<SimExecutor>(*this, add_executor("world/outside", true));
}

SimScheduler::~SimScheduler() {
  FJORD_CHECK_MSG(running_ == kNoExecutor, "the scheduler was destroyed by one of its tasks");
  std::vector<std::uint32_t> all(executors_.size());
  for (std::uint32_t id = 0; id < all.size(); ++id) all[id] = id;
  drop_executors(all);
}

std::unique_ptr<SimNodeScheduler> SimScheduler::make_node_scheduler(std::string node_name) {
  return std::unique_ptr<SimNodeScheduler>(new SimNodeScheduler(*this, std::move(node_name)));
}

std::uint32_t SimScheduler::add_executor(std::string name, bool alive) {
  executors_.push_back({.name = std::move(name), .alive = alive, .posts = {}, .held = {}});
  return static_cast<std::uint32_t>(executors_.size() - 1);
}

void SimScheduler::drop_executors(const std::vector<std::uint32_t>& ids) {
  std::deque<Task> dropped;
  bool any = false;
  for (std::uint32_t id : ids) {
    ExecutorState& state = executors_[id];
    any = any || state.alive;
    state.alive = false;
    std::move(state.posts.begin(), state.posts.end(), std::back_inserter(dropped));
    state.posts.clear();
    state.held.clear();
  }
  if (!any) return;
  for (std::uint32_t i = 0; i < timers_.size(); ++i) {
    Timer& timer = timers_[i];
    if (timer.sequence == 0 || executors_[timer.executor].alive) continue;
    dropped.push_back(std::move(timer.task));
    timer.sequence = 0;
    free_timers_.push_back(i);
  }
  dropped.clear();  // Destroyed last, for the reason given at drop_executors().
}

void SimScheduler::post(std::uint32_t executor, Task task) {
  ExecutorState& state = executors_[executor];
  if (!state.alive) return;
  state.posts.push_back(std::move(task));
  const Duration delay(static_cast<std::int64_t>(random_.next() & (kPostSpreadUs - 1)));
  push_event(executor, clock_.now() + delay, kNoTimer);
}

void SimScheduler::post_after(std::uint32_t executor, Duration delay, Task task) {
  if (!executors_[executor].alive) return;
  if (delay <= Duration::zero()) return post(executor, std::move(task));
  std::uint32_t index = 0;
  if (free_timers_.empty()) {
    index = static_cast<std::uint32_t>(timers_.size());
    timers_.emplace_back();
  } else {
    index = free_timers_.back();
    free_timers_.pop_back();
  }
  Timer& timer = timers_[index];
  timer.task = std::move(task);
  timer.executor = executor;
  timer.sequence = push_event(executor, clock_.now() + std::min(delay, kForever), index);
}

std::uint64_t SimScheduler::push_event(std::uint32_t executor, MonotonicTime due, std::uint32_t timer) {
  // The tie-break depends on executor and time, not on the event, so events of one executor at one time keep their
  // order.
  const auto tie = static_cast<std::uint32_t>(mix64(tie_seed_ + executor, static_cast<std::uint64_t>(due.us)));
  const std::uint64_t sequence = next_sequence_++;
  heap_.push_back({.time_us = due.us, .sequence = sequence, .tie = tie, .executor = executor, .timer = timer});
  std::push_heap(heap_.begin(), heap_.end(), Later{});
  return sequence;
}

bool SimScheduler::is_live(const Event& event) const {
  return event.timer == kNoTimer ? executors_[event.executor].alive : timers_[event.timer].sequence == event.sequence;
}

bool SimScheduler::skip_idle() {
  while (!heap_.empty()) {
    const Event event = heap_.front();
    ExecutorState& state = executors_[event.executor];
    const bool live = is_live(event);
    if (live && !state.paused && state.busy_until.us <= event.time_us) return true;
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    heap_.pop_back();
    if (!live) continue;
    if (state.paused) {
      state.held.push_back(event);
    } else {
      push_again(event, state.busy_until);
    }
  }
  return false;
}

void SimScheduler::push_again(const Event& event, MonotonicTime due) {
  const std::uint64_t sequence = push_event(event.executor, due, event.timer);
  if (event.timer != kNoTimer) timers_[event.timer].sequence = sequence;
}

void SimScheduler::pause(std::uint32_t executor, bool paused) {
  ExecutorState& state = executors_[executor];
  state.paused = paused;
  if (paused) return;
  for (const Event& event : std::exchange(state.held, {})) {
    if (is_live(event)) push_again(event, std::max(clock_.now(), MonotonicTime{event.time_us}));
  }
}

void SimScheduler::stall_running(Duration duration) {
  static constexpr std::uint32_t kOutside = 0;
  if (running_ == kNoExecutor || running_ == kOutside) return;
  MonotonicTime& busy = executors_[running_].busy_until;
  busy = std::max(busy, clock_.now()) + duration;
}

Task SimScheduler::take_task(const Event& event) {
  if (event.timer == kNoTimer) {
    std::deque<Task>& posts = executors_[event.executor].posts;
    FJORD_CHECK(!posts.empty());  // Each post has pushed one event.
    Task task = std::move(posts.front());
    posts.pop_front();
    return task;
  }
  Timer& timer = timers_[event.timer];
  Task task = std::move(timer.task);
  timer.sequence = 0;
  free_timers_.push_back(event.timer);
  return task;
}

bool SimScheduler::run_one() {
  FJORD_CHECK_MSG(running_ == kNoExecutor, "a task tried to run the scheduler");
  if (!skip_idle()) return false;
  const Event event = heap_.front();
  std::pop_heap(heap_.begin(), heap_.end(), Later{});
  heap_.pop_back();
  clock_.advance_to({event.time_us});
  trace_hash_ = mix64(trace_hash_ ^ event.executor, static_cast<std::uint64_t>(event.time_us) ^ (event.sequence << 20));
  ++events_run_;
  {
    Task task = take_task(event);
    running_ = event.executor;
    task();
    task = nullptr;  // Captures are destroyed inside the task, as on a thread; a capture must not own this executor.
    running_ = kNoExecutor;
  }
  return true;
}

void SimScheduler::run_for(Duration duration) {
  const MonotonicTime end = clock_.now() + duration;
  while (skip_idle() && heap_.front().time_us <= end.us) run_one();
  clock_.advance_to(end);
}

bool SimScheduler::run_until(const std::function<bool()>& done, Duration limit) {
  const MonotonicTime end = clock_.now() + limit;
  while (!done()) {
    if (!skip_idle()) return false;
    if (heap_.front().time_us > end.us) {
      clock_.advance_to(end);
      return false;
    }
    run_one();
  }
  return true;
}

void SimScheduler::trace(std::string_view event) {
  trace_hash_ = mix64(trace_hash_, hash64(event));
  if (trace_lines_ == 0) return;
  const std::string_view where = running_ == kNoExecutor ? "world" : std::string_view(executors_[running_].name);
  kept_trace_.push_back(fmt::format("{} {}: {}", clock_.now().us, where, event));
  if (kept_trace_.size() > trace_lines_) kept_trace_.pop_front();
}

void SimScheduler::keep_trace(std::size_t lines) {
  trace_lines_ = lines;
  while (kept_trace_.size() > lines) kept_trace_.pop_front();
}

}  // namespace fjord::sim
