#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "fjord/common/clock.h"
#include "fjord/common/executor.h"
#include "fjord/common/scheduler.h"
#include "fjord/common/turn_queue.h"

namespace fjord {

/// Executors for work that may take long, many of which share a few threads: each gets turns of 10 ms, as TurnQueue
/// says. A task that takes longer asks turn_is_over() between its steps, posts what is left of itself, and returns.
///
/// Threading: every thread. Lifetime: what it is given outlives it; it outlives its executors.
class TurnPool {
 public:
  static constexpr Duration kTurn = milliseconds(10);
  /// A group that has no thread although it waited for so long gets one in addition.
  static constexpr Duration kPatience = milliseconds(20);

  using MakeExecutor = std::function<std::unique_ptr<Executor>(const std::string& name)>;

  /// `make_thread`: one of a few executors that tasks run on.
  TurnPool(std::string name, const Clock& clock, Scheduler& scheduler, MakeExecutor make_thread, std::size_t threads);
  ~TurnPool();
  TurnPool(const TurnPool&) = delete;
  TurnPool& operator=(const TurnPool&) = delete;

  void set_threads(std::size_t threads);
  /// An executor that takes turns.
  std::unique_ptr<Executor> make_executor(TurnGroup group);
  /// For a task: others wait for the thread, and the turn has lasted long enough. False outside of the pools' tasks.
  static bool turn_is_over();

 private:
  class Strand;
  class Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace fjord
