#pragma once

#include <functional>
#include <memory>

#include "fjord/common/callback_guard.h"
#include "phase.h"
#include "task/sink_pump.h"

namespace fjord::mapreduce {

/// Puts and removes documents in the runner's process, without tasks: it puts pages of rows, and removes documents that
/// have no row any more. After a transient error or a timeout it starts again from the first one.
///
/// Threading: confined to the runner's executor. Lifetime: destroying it stops it without a callback; the arguments of
/// the constructor outlive it.
class RowPump {
 public:
  /// Fills in the next operation; returns false if there are no more.
  using Next = std::function<Result<bool>(SinkOperation&)>;

  RowPump(const RunnerEnvironment& environment, const RunnerCallbacks& callbacks, PhaseHost& host)
      : environment_(environment), callbacks_(callbacks), host_(host) {}

  /// Does all operations that `next` gives, and then calls `then`. Each attempt uses a new copy of `next`, and so
  /// begins with the first operation. If the job does not go on, calls PhaseHost::pump_stopped() instead; after an
  /// error, PhaseHost::failed(). No operation is in flight when it calls one of the three.
  void run(Next next, std::function<void()> then) { attempt(std::move(next), 0, std::move(then)); }
  bool is_running() const { return is_running_; }

 private:
  void attempt(Next next, unsigned tries, std::function<void()> then);
  void on_ended(const Next& next, unsigned tries, const std::function<void()>& then, const Status& status);
  std::function<void()> if_alive(std::function<void()> then) const;

  const RunnerEnvironment& environment_;
  const RunnerCallbacks& callbacks_;
  PhaseHost& host_;
  std::shared_ptr<SinkPump> pump_;
  bool is_running_ = false;
  CallbackGuard guard_;
};

}  // namespace fjord::mapreduce
