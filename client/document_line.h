#pragma once

#include <cstddef>
#include <utility>

#include "pending_operation.h"

namespace fjord {

/// The operations of one client on one id, in the order in which they were started. Reads go together. A write goes
/// alone: after everything that was started before it, and before everything that was started after it.
/// Confined to the client's executor.
class DocumentLine {
 public:
  /// True if the operation may go now. Otherwise it waits in this line.
  bool enter(const PendingPtr& operation) {
    if (first_ == nullptr && may_join(*operation)) {
      take(*operation);
      return true;
    }
    if (first_ == nullptr) {
      first_ = operation;
    } else {
      last_->next = operation;
    }
    last_ = operation;
    return false;
  }

  /// An operation that could go has ended. Calls `release` for each one that may go now because of that. Operations
  /// that ended while they waited are passed over.
  template <typename Release>
  void leave(Release release) {
    --going_;
    while (first_ != nullptr && (first_->settled || may_join(*first_))) {
      PendingPtr next = std::exchange(first_, nullptr);
      first_ = std::move(next->next);
      if (next->settled) continue;
      take(*next);
      release(std::move(next));
    }
    if (first_ == nullptr) last_ = nullptr;
  }

  bool is_empty() const { return going_ == 0 && first_ == nullptr; }

 private:
  bool may_join(const PendingOperation& operation) const {
    return going_ == 0 || (are_reads_ && !operation.is_write());
  }
  void take(const PendingOperation& operation) {
    ++going_;
    are_reads_ = !operation.is_write();
  }

  std::size_t going_ = 0;   // Operations that may go and have not ended.
  bool are_reads_ = false;  // What they are.
  PendingPtr first_;        // The first one that waits.
  PendingPtr last_;
};

}  // namespace fjord
