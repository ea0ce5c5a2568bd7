#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "fjord/common/thread_annotations.h"
#include "fjord/rpc/transport.h"

namespace fjord::rpc {

/// A transport that can be closed before its last user is destroyed; later calls are dropped.
///
/// A node needs its transport while its executors run, and a transport needs the executors of its pending calls. The
/// node closes the transport first to break that cycle. A client closes its gate to the caller's transport, because the
/// caller may destroy the transport while tasks of the client still wait. `while_alive` (common/callback_guard.h)
/// solves another problem: it guards callbacks against the end of their object; here the callee ends before the caller.
///
/// Threading: any thread.
class GatedTransport final : public Transport {
 public:
  /// Owns the transport: close() destroys it and so drops all pending calls.
  explicit GatedTransport(std::unique_ptr<Transport> owned) : owned_(std::move(owned)), inner_(owned_.get()) {}
  /// Uses a transport that the caller owns, but not after close(). Calls that are pending at close() are answered.
  explicit GatedTransport(Transport& inner) : inner_(&inner) {}

  /// The lock cannot cause a deadlock: a transport only accepts the call here and never answers within it.
  void call(const Address& to, Request request, Duration timeout, Executor& executor, ReplyFunction done) override {
    const std::shared_lock lock(mutex_);
    if (inner_ != nullptr) inner_->call(to, std::move(request), timeout, executor, std::move(done));
  }

  void close() {
    std::unique_ptr<Transport> closed;
    const std::unique_lock lock(mutex_);
    closed = std::move(owned_);
    inner_ = nullptr;
  }

 private:
  std::shared_mutex mutex_;
  std::unique_ptr<Transport> owned_ FJORD_GUARDED_BY(mutex_);
  Transport* inner_ FJORD_GUARDED_BY(mutex_);
};

}  // namespace fjord::rpc
