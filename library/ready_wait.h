#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "fjord/library/detail/client_core.h"
#include "fjord/library/pending.h"

namespace fjord {

/// The wait of ready() for something to take, for a class that owns a queue. One wait at a time.
///
/// Threading: under the mutex of the owner, except for end().
class ReadyWait {
 public:
  /// Begins a wait; ends it at once if `is_ready`.
  Pending<Status> begin(ClientCore& core, bool is_ready) {
    State state = core.settings_error() ? core.new_pending<Status>() : std::make_shared<State::element_type>(nullptr);
    if (is_ready) {
      state->set(Status::ok());
    } else {
      waiting_ = state;
    }
    return Pending<Status>(std::move(state));
  }
  /// Returns true if the owner has to post a task that calls end().
  bool has_to_wake() { return waiting_ != nullptr && !std::exchange(is_waking_, true); }
  /// Ends the wait, if there is one. An error says that the owner goes: it also reaches a callback that waits for its
  /// turn in the executor of the program, so that it does not look at the owner, and is told before this returns.
  void end(std::mutex& mutex, const Status& status) {
    State state;
    {
      const std::lock_guard lock(mutex);
      is_waking_ = false;
      if (waiting_ != nullptr) ended_ = state = std::exchange(waiting_, nullptr);
      if (!status) state = std::exchange(ended_, nullptr);
    }
    if (state == nullptr) return;
    if (status) {
      state->set(status);
    } else {
      state->end(status);
    }
  }

 private:
  using State = std::shared_ptr<detail::PendingState<Status>>;

  State waiting_;
  State ended_;             ///< The wait that ended last.
  bool is_waking_ = false;  ///< The owner has posted a task that ends the wait.
};

}  // namespace fjord
