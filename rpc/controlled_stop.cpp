#include "fjord/rpc/controlled_stop.h"

namespace fjord::rpc {

void ControlledStop::announce(MonotonicTime now) {
  const std::lock_guard lock(mutex_);
  if (is_announced_) return;
  is_announced_ = true;
  announced_at_ = now;
}

bool ControlledStop::is_announced() const {
  const std::lock_guard lock(mutex_);
  return is_announced_;
}

void ControlledStop::note_poll(const Poll& poll, std::uint64_t incarnation, bool is_counted_on, MonotonicTime now) {
  {
    const std::lock_guard lock(mutex_);
    polled_at_ = now;
    is_counted_on_ = is_counted_on;
    // Answers with a later time than the announcement were made after it.
    is_known_ =
        is_known_ || (is_announced_ && poll.heard_incarnation == incarnation && poll.heard_us > announced_at_.us);
  }
  changed_.notify_all();
}

void ControlledStop::stamp(PollReply& reply, MonotonicTime now) const {
  const std::lock_guard lock(mutex_);
  reply.node_state = is_announced_ ? "s:s" : "s:u";
  reply.clock_us = now.us;
}

bool ControlledStop::is_over() const {
  const std::lock_guard lock(mutex_);
  return is_known_ && !is_counted_on_;
}

bool ControlledStop::wait(Duration max, MonotonicTime polled_since) const {
  std::unique_lock lock(mutex_);
  if (polled_at_ < polled_since) return is_known_ && !is_counted_on_;
  return changed_.wait_for(lock, max, [this] { return is_known_ && !is_counted_on_; });
}

}  // namespace fjord::rpc
