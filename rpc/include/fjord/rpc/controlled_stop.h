#pragma once

#include <condition_variable>
#include <mutex>

#include "fjord/common/clock.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/rpc/controller_messages.h"

namespace fjord::rpc {

/// How a node ends so that the fleet controller does not take it for a crash: it says in its answers to polls that it
/// stops ("s:s"), and goes on serving until the controller has heard it and the cluster state in use counts on this
/// node no more.
///
/// Threading: any thread. Times are those of the node's monotonic clock.
class ControlledStop {
 public:
  /// Makes all later answers say that the node stops.
  void announce(MonotonicTime now);
  bool is_announced() const;
  /// Notes what a poll says about the answers that the controller has received, and whether the cluster state that is
  /// in use after this poll counts on this node.
  void note_poll(const Poll& poll, std::uint64_t incarnation, bool is_counted_on, MonotonicTime now);
  /// Writes into an answer its time, and the state of a node that is not starting any more.
  void stamp(PollReply& reply, MonotonicTime now) const;

  /// Returns true if the node may end: the controller knows of the stop, and the state counts on it no more.
  bool is_over() const;
  /// Waits in real time until is_over(), at most for `max`. Does not wait if the last poll came before
  /// `polled_since`: then there is no controller to be told. Returns is_over().
  bool wait(Duration max, MonotonicTime polled_since) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool is_announced_ FJORD_GUARDED_BY(mutex_) = false;
  MonotonicTime announced_at_ FJORD_GUARDED_BY(mutex_);
  MonotonicTime polled_at_ FJORD_GUARDED_BY(mutex_);
  bool is_known_ FJORD_GUARDED_BY(mutex_) = false;  ///< The controller has received an answer that says it.
  bool is_counted_on_ FJORD_GUARDED_BY(mutex_) = true;
};

}  // namespace fjord::rpc
