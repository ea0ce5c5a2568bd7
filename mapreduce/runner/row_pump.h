#pragma once

#include <functional>
#include <memory>

#include "phase.h"
#include "task/sink_pump.h"

namespace fjord::mapreduce {

/// Puts or removes documents from the runner's process: pages of rows, and documents without a row. After a transient
/// error or a timeout it starts again.
///
/// Threading: confined to the runner's executor. Lifetime: destroying it stops it without a callback; the arguments of
/// the constructor outlive it.
class RowPump {
 public:
  /// Fills in the next operation; returns false if there are no more.
  using Next = std::function<Result<bool>(SinkOperation&)>;

  RowPump(const RunnerEnvironment& environment, const RunnerCallbacks& callbacks, PhaseHost& host)
      : environment_(environment), callbacks_(callbacks), host_(host) {}

  /// Puts what `next` returns, and then calls `then`. Each attempt takes a fresh copy of `next`. If the job does not
  /// continue, calls PhaseHost::pump_stopped() when no operation is in flight.
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
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace fjord::mapreduce
