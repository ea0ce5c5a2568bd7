#pragma once

#include "fjord/common/clock.h"
#include "fjord/common/executor.h"

namespace fjord {

/// Permits run_or_post() to run tasks of executors on the calling thread, which has to be ready to do other work: a
/// thread that has just received messages, or one that is about to wait for an answer. It must not hold a lock that a
/// task could want.
///
/// The permission ends with the scope, or after `budget`, so that long work cannot keep the thread from its own. Tasks
/// are posted from then on. Scopes of one thread nest; the innermost counts.
class InlineScope {
 public:
  explicit InlineScope(Duration budget);
  ~InlineScope();
  InlineScope(const InlineScope&) = delete;
  InlineScope& operator=(const InlineScope&) = delete;

 private:
  std::int64_t outer_;  ///< End of the permission of the scope around this one.
};

/// Runs `task` on the calling thread if its InlineScope permits that and the executor is idle; else posts it. The task
/// keeps every promise of Executor: tasks run one at a time and in order, is_current() is true inside, and what the
/// task posts to the executor runs after it. Saves the time until the executor's thread runs, which is longer than most
/// tasks take.
///
/// The task is posted if
/// - the executor runs a task or has tasks waiting, or the calling thread is inside a task that was run this way;
/// - the executor is a background or interactive one, whose thread has another priority than the calling thread;
/// - a task of the executor took long on another thread a short while ago: the executor's own thread is for such tasks;
/// - the executor is not one of ThreadScheduler. So tasks of the simulation run in the order that its seed decides.
///
/// Ends the process if the task throws, like the thread of an executor. Threading: as Executor::post.
void run_or_post(Executor& executor, Task task);

}  // namespace fjord
