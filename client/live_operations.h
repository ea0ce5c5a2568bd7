#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "pending_operation.h"

namespace fjord {

/// The operations that have not ended, and the time of the one timer for all their deadlines. The owner sets the
/// timer.
class LiveOperations {
 public:
  void add(const PendingPtr& operation) {
    operation->live_index = operations_.size();
    operations_.push_back(operation);
  }
  void remove(const PendingOperation& operation) {
    operations_.back()->live_index = operation.live_index;
    std::swap(operations_[operation.live_index], operations_.back());
    operations_.pop_back();
  }
  const std::vector<PendingPtr>& all() const { return operations_; }

  /// Returns true if a timer has to be set for this time, since none is set for it or an earlier one.
  bool needs_timer(MonotonicTime deadline) {
    if (timer_at_ && *timer_at_ <= deadline) return false;
    timer_at_ = deadline;
    return true;
  }
  /// To be called when a timer fires. Returns false if a timer for an earlier time was set later and so replaced this
  /// one.
  bool timer_fired(MonotonicTime set_for) {
    if (timer_at_ != set_for) return false;
    timer_at_.reset();
    return true;
  }
  /// Returns the operations whose deadlines have passed, and sets `next` to the first deadline of the others.
  std::vector<PendingPtr> expired(MonotonicTime now, std::optional<MonotonicTime>& next) const {
    std::vector<PendingPtr> found;
    next.reset();
    for (const PendingPtr& operation : operations_) {
      if (operation->deadline <= now) {
        found.push_back(operation);
      } else if (!next || operation->deadline < *next) {
        next = operation->deadline;
      }
    }
    return found;
  }

 private:
  std::vector<PendingPtr> operations_;
  std::optional<MonotonicTime> timer_at_;
};

}  // namespace fjord
