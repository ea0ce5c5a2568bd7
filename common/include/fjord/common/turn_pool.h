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

/// Executors for long work. Many of them share a few threads, each in turns of 10 ms; TurnQueue chooses the next one. A
/// task that takes longer calls turn_is_over() between its steps, posts the rest of its work, and returns.
///
/// Threading: every thread. Lifetime: the constructor's arguments outlive the pool; the pool outlives its executors.
class TurnPool {
 public:
  static constexpr Duration kTurn = milliseconds(10);
  /// A group whose tasks have waited this long without a thread gets an additional thread.
  static constexpr Duration kPatience = milliseconds(20);

  using MakeExecutor = std::function<std::unique_ptr<Executor>(const std::string& name)>;

  /// `make_thread` makes one of the few thread executors on which tasks run.
  TurnPool(std::string name, const Clock& clock, Scheduler& scheduler, MakeExecutor make_thread, std::size_t threads);
  ~TurnPool();
  TurnPool(const TurnPool&) = delete;
  TurnPool& operator=(const TurnPool&) = delete;

  void set_threads(std::size_t threads);
  /// Returns an executor that takes turns.
  std::unique_ptr<Executor> make_executor(TurnGroup group);
  /// Returns whether the calling task should return: its turn has lasted long enough and other executors wait for the
  /// thread. False outside the pools' tasks.
  static bool turn_is_over();

 private:
  class Strand;
  class Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace fjord
