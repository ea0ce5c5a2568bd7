#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include "fjord/client/client_options.h"
#include "fjord/common/clock.h"
#include "fjord/common/thread_annotations.h"
#include "pending_operation.h"

namespace fjord {

/// Passes new operations from callers' threads to the dispatcher's executor, and limits how many may be pending.
/// Threading: any thread.
class OperationInbox {
 public:
  /// Lifetime: the arguments outlive the inbox.
  OperationInbox(const ClientOptions& options, const Clock& clock) : options_(options), clock_(clock) {}

  /// Adds a new operation. Returns true if it is the first since take(): the caller then has to schedule take(). Parses
  /// and hashes the id on the caller's thread, to spare the executor that all callers share.
  bool add(rpc::Operation operation, Duration timeout, AsyncClient::OperationDone done);
  /// Removes and returns the added operations, oldest first.
  std::vector<PendingPtr> take();
  /// Must be called when an operation has ended; `bytes` is its size.
  void ended(std::size_t bytes);
  /// Returns the number of operations that have not ended.
  std::size_t pending() const { return pending_.load(std::memory_order_relaxed); }

 private:
  /// Counts the operation. Makes it invalid if too many operations or bytes are pending.
  void count(PendingOperation& pending);

  const ClientOptions& options_;
  const Clock& clock_;
  std::atomic<std::size_t> pending_{0};
  std::atomic<std::size_t> pending_bytes_{0};
  std::mutex mutex_;
  std::vector<PendingPtr> incoming_ FJORD_GUARDED_BY(mutex_);
  bool is_awaited_ FJORD_GUARDED_BY(mutex_) = false;  ///< A call of take() is scheduled.
};

}  // namespace fjord
