#pragma once

#include <memory>

#include "fjord/common/clock.h"
#include "fjord/common/unique_function.h"

namespace fjord {

/// Runs posted tasks one at a time, in the order in which they were posted.
///
/// Threading: post and post_after can be called from any thread. State that belongs to an executor is touched only by
/// its tasks.
/// Lifetime: tasks that have not run when the executor is destroyed are dropped (their captures are destroyed).
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void post(Task task) = 0;
  /// Runs `task` once, not before `delay` has passed. Tasks cannot be cancelled; they check whether they are still
  /// needed.
  virtual void post_after(Duration delay, Task task) = 0;
  /// Returns true inside one of this executor's tasks.
  virtual bool is_current() const = 0;
};

/// Destroys `executor`, then makes it null.
///
/// A task that still runs meanwhile may post through `executor`. The reset() of a unique_ptr is wrong for that: it
/// makes the pointer null before it waits for the task.
inline void end_executor(std::unique_ptr<Executor>& executor) {
  delete executor.get();
  static_cast<void>(executor.release());
}

}  // namespace fjord
