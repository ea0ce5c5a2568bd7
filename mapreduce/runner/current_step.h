#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fjord/common/callback_guard.h"
#include "job_steps.h"
#include "phase.h"

namespace fjord::mapreduce {

/// The step that a job is in, and the phase that does it.
///
/// Threading: confined to the runner's executor.
class CurrentStep {
 public:
  Step step() const { return step_; }
  bool is_running() const { return activity_ == Activity::Running; }
  bool is_paused() const { return activity_ == Activity::Paused; }
  /// Returns the visit cursor of a map phase; nullopt in other phases.
  std::optional<std::string> cursor() const {
    if (phase_ == nullptr || step_ != Step::Map) return std::nullopt;
    return phase_->cursor();
  }

  /// Enters a step, which has no phase yet.
  void enter(Step step) {
    interrupt();
    phase_.reset();
    step_ = step;
  }
  void set_phase(std::unique_ptr<Phase> phase) { phase_ = std::move(phase); }
  void drop_phase() { phase_.reset(); }
  /// Starts the phase, or its next part. If the job is paused, that is done when it is resumed.
  void run(bool is_job_paused) {
    activity_ = is_job_paused ? Activity::Paused : Activity::Running;
    if (is_running()) phase_->start();
  }
  /// The phase has ended, or waits for its next part.
  void rest() { activity_ = Activity::Between; }
  /// Stops a phase that runs and can be paused. Returns false if there is none.
  bool pause() {
    if (!is_running() || !phase_->is_pausable()) return false;
    activity_ = Activity::Paused;
    phase_->stop();
    return true;
  }
  /// Stops the phase for good. Functions that if_current() returned before do nothing any more.
  void stop() {
    const bool runs = is_running();
    interrupt();
    if (phase_ != nullptr && runs) phase_->stop();
  }
  /// Called when the executor is gone: ends the phase's work on other threads.
  void abandon() {
    if (phase_ != nullptr && step_ == Step::DirectReduce) phase_->stop();
  }
  void interrupt() {
    activity_ = Activity::Between;
    current_.begin_again();
  }

  /// Returns a function that calls `then` unless another step has been entered, or this one stopped, by then.
  template <typename F>
  auto if_current(F then) const {
    return while_alive(
        current_.of(*this),
        [then = std::move(then)](const CurrentStep&, const auto&... arguments) mutable { then(arguments...); });
  }

 private:
  enum class Activity {
    Between,  ///< No phase runs: one has ended or is being stopped, and the next has not begun.
    Paused,   ///< The phase starts when the job is resumed.
    Running,
  };

  std::unique_ptr<Phase> phase_;
  Step step_ = Step::Map;
  Activity activity_ = Activity::Between;
  /// Renewed when a step is entered or stopped: callbacks that if_current() returned before then do nothing.
  CallbackGuard current_;
};

}  // namespace fjord::mapreduce
