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
/// A node needs its transport while its executors run, and a transport needs the executors of its pending calls: to
/// close first breaks that cycle. A client closes the gate to a transport of its caller, which may destroy it while
/// tasks of the client still wait. This is not a matter of `while_alive` (common/callback_guard.h), which guards a
/// callback against the end of the object that it is for: here the callee ends before the caller.
///
/// Threading: any thread.
class GatedTransport final : public Transport {
 public:
  /// close() destroys the transport, and so drops all pending calls.
  explicit GatedTransport(std::unique_ptr<Transport> owned) : owned_(std::move(owned)), inner_(owned_.get()) {}
  /// After close() the transport is not used. Calls that are pending then are answered.
  explicit GatedTransport(Transport& inner) : inner_(&inner) {}

  /// A transport only accepts a call and never answers inside of it, so the lock is held briefly and cannot deadlock.
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
