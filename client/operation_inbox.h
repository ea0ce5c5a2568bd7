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

/// New operations on their way from callers' threads to the dispatcher's executor, and the limits of how many may be
/// pending. Threading: any thread.
class OperationInbox {
 public:
  /// The arguments outlive this.
  OperationInbox(const ClientOptions& options, const Clock& clock) : options_(options), clock_(clock) {}

  /// Takes a new operation. Returns true if it is the first since take(), so that the caller has to have it taken.
  /// Parses and hashes the id on the caller's thread, to spare the executor that all callers share.
  bool add(rpc::Operation operation, Duration timeout, AsyncClient::OperationDone done);
  /// Returns what has come, oldest first.
  std::vector<PendingPtr> take();
  /// An operation of this size has ended.
  void ended(std::size_t bytes);
  /// Operations that have not ended.
  std::size_t pending() const { return pending_.load(std::memory_order_relaxed); }

 private:
  /// Counts the operation, and makes it invalid if too much is pending.
  void count(PendingOperation& pending);

  const ClientOptions& options_;
  const Clock& clock_;
  std::atomic<std::size_t> pending_{0};
  std::atomic<std::size_t> pending_bytes_{0};
  std::mutex mutex_;
  std::vector<PendingPtr> incoming_ FJORD_GUARDED_BY(mutex_);
  bool is_awaited_ FJORD_GUARDED_BY(mutex_) = false;  ///< take() will be called.
};

}  // namespace fjord
