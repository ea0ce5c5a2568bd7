#pragma once

#include <cstddef>
#include <utility>

#include "pending_operation.h"

namespace fjord {

/// The operations of one client on one document id, in the order of their start. Reads run together. A write runs
/// alone: after all operations that were started before it, and before all that were started after it.
/// Confined to the client's executor.
class DocumentLine {
 public:
  /// Returns true if the operation can be sent now. Otherwise it waits in this line.
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

  /// Removes an operation that has ended after it was released. Calls `release` for each waiting operation that can be
  /// sent now because of this. Operations that ended while they waited are skipped.
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

  std::size_t going_ = 0;   // operations that were released and have not ended
  bool are_reads_ = false;  // true if the released operations are reads
  PendingPtr first_;        // the first waiting operation
  PendingPtr last_;
};

}  // namespace fjord
