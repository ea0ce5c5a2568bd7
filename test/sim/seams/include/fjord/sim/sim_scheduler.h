#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/random.h"
#include "fjord/common/scheduler.h"
#include "fjord/sim/sim_clock.h"

namespace fjord::sim {

class SimScheduler;

/// Makes the executors of one incarnation of a simulated process.
/// Lifetime: the SimScheduler outlives it; it outlives its executors (its destructor kills first).
class SimNodeScheduler final : public Scheduler {
 public:
  ~SimNodeScheduler() override;
  std::unique_ptr<Executor> make_executor(const std::string& name) override;
  /// Always succeeds, as on a machine of a hundred equal processors. Has no other effect.
  unsigned keep_processors_free(int percent) override { return static_cast<unsigned>(percent); }

  /// Ends the process at once, as by SIGKILL. Tasks queued on its executors are dropped, and so are later posts: no
  /// task of this incarnation runs again. A task of the process itself that calls kill() still returns normally. The
  /// objects of the process may be destroyed at any time afterwards.
  void kill();
  bool alive() const { return alive_; }
  /// Suspends the process, as by SIGSTOP: none of its tasks runs until resume(). Its timers go on, and expired ones run
  /// after resume(). The order of the tasks stays.
  void pause();
  void resume();
  const std::string& name() const { return name_; }

 private:
  friend class SimScheduler;  // SimScheduler makes and drives this class
  SimNodeScheduler(SimScheduler& scheduler, std::string name) : scheduler_(scheduler), name_(std::move(name)) {}

  SimScheduler& scheduler_;
  std::string name_;
  bool alive_ = true;
  std::vector<std::uint32_t> executors_;
};

/// One loop on virtual time that runs all executors of a simulated world on the calling thread.
///
/// Events run in the order of (virtual time, a tie-break that depends on the seed, order of posting). A post is due 0
/// to 3 microseconds after it was made, so the seed decides how executors interleave; one executor's posts stay in
/// order, and so do its timers that are due at the same instant. Time passes only between events.
///
/// Threading: one thread. Lifetime: outlives everything that it made.
class SimScheduler {
 public:
  explicit SimScheduler(std::uint64_t seed);
  ~SimScheduler();
  SimScheduler(const SimScheduler&) = delete;
  SimScheduler& operator=(const SimScheduler&) = delete;

  SimClock& clock() { return clock_; }
  const SimClock& clock() const { return clock_; }

  /// A new incarnation of a process; `node_name` shows in traces.
  std::unique_ptr<SimNodeScheduler> make_node_scheduler(std::string node_name);
  /// Executor for events of the world itself (deliveries, faults). It is never killed. Its tasks may destroy and
  /// restart processes.
  Executor& outside() { return *outside_; }

  /// Runs the next event. Returns false if there is none.
  bool run_one();
  /// Runs everything due within `duration` and moves the clock to its end.
  void run_for(Duration duration);
  /// Runs events until `done()` returns true; calls it before the first event and after each. Returns false if `limit`
  /// passes or no event is left before that.
  bool run_until(const std::function<bool()>& done, Duration limit);

  /// Hash of every event (time, executor) and every trace() line. Equal for equal seeds and programs.
  std::uint64_t trace_hash() const { return trace_hash_; }
  /// Mixes a line into the hash, and keeps it for printing if keep_trace() asked for that.
  void trace(std::string_view event);
  /// Keeps the last `lines` trace lines; 0 (the default): none.
  void keep_trace(std::size_t lines);
  /// Kept lines, oldest first: "<virtual us> <process>/<executor>: <event>".
  const std::deque<std::string>& kept_trace() const { return kept_trace_; }

  std::uint64_t events_run() const { return events_run_; }
  /// Makes the running task take `duration`: its executor runs no other task before that time. No effect outside of a
  /// process.
  void stall_running(Duration duration);
  /// The source of all draws of the world itself, in the order of events.
  Random& random() { return random_; }

 private:
  class SimExecutor;
  friend class SimNodeScheduler;

  struct Event {
    std::int64_t time_us;
    std::uint64_t sequence;
    std::uint32_t tie;
    std::uint32_t executor;
    std::uint32_t timer;  ///< Index into timers_; kNoTimer: the event is the oldest post of `executor`.
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      if (a.time_us != b.time_us) return a.time_us > b.time_us;
      if (a.tie != b.tie) return a.tie > b.tie;
      return a.sequence > b.sequence;
    }
  };
  struct ExecutorState {
    std::string name;
    bool alive = true;
    std::deque<Task> posts;
    bool paused = false;
    MonotonicTime busy_until{0};
    std::vector<Event> held;  ///< Events that became due while paused.
  };
  struct Timer {
    Task task;
    std::uint64_t sequence = 0;  ///< Sequence number of the timer's event; earlier users of this place had others.
    std::uint32_t executor = 0;
  };

  std::uint32_t add_executor(std::string name, bool alive);
  /// Removes these executors, so that none of their tasks runs any more. Destroys the tasks only when the state of this
  /// class is consistent, because the destructor of a capture may post, or end other executors.
  void drop_executors(const std::vector<std::uint32_t>& ids);
  void post(std::uint32_t executor, Task task);
  void post_after(std::uint32_t executor, Duration delay, Task task);
  std::uint64_t push_event(std::uint32_t executor, MonotonicTime due, std::uint32_t timer);
  /// Removes events of dead, paused and busy executors from the front of the heap. Returns false if no event is left.
  bool skip_idle();
  /// Schedules the event at `due` instead, behind earlier events of that time.
  void push_again(const Event& event, MonotonicTime due);
  void pause(std::uint32_t executor, bool paused);
  bool is_live(const Event& event) const;
  Task take_task(const Event& event);

  std::uint64_t tie_seed_;
  Random random_;
  SimClock clock_;
  std::vector<Event> heap_;
  std::deque<ExecutorState> executors_;  ///< By id of the executor; ids are never reused.
  std::vector<Timer> timers_;
  std::vector<std::uint32_t> free_timers_;
  std::uint64_t next_sequence_ = 1;
  std::uint64_t events_run_ = 0;
  std::uint32_t running_;  ///< Executor of the running task.
  std::uint64_t trace_hash_ = 0;
  std::size_t trace_lines_ = 0;
  std::deque<std::string> kept_trace_;
  std::unique_ptr<Executor> outside_;
};

}  // namespace fjord::sim
