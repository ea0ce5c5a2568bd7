#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "fjord/common/thread_annotations.h"
#include "fjord/rpc/transport.h"

namespace fjord {

/// A transport that can be closed before the node that uses it is destroyed. A node needs its transport while its
/// executors run, and a transport needs the executors of its pending calls: closing first breaks that cycle. close()
/// drops all pending calls; later calls are dropped, too.
///
/// Threading: any thread.
class GatedTransport final : public rpc::Transport {
 public:
  explicit GatedTransport(std::unique_ptr<rpc::Transport> inner) : inner_(std::move(inner)) {}

  void call(const rpc::Address& to, rpc::Request request, Duration timeout, Executor& executor,
            rpc::ReplyFunction done) override {
    const std::shared_lock lock(mutex_);
    if (inner_ != nullptr) inner_->call(to, std::move(request), timeout, executor, std::move(done));
  }

  void close() {
    std::unique_ptr<rpc::Transport> closed;
    const std::unique_lock lock(mutex_);
    closed = std::move(inner_);
  }

 private:
  std::shared_mutex mutex_;
  std::unique_ptr<rpc::Transport> inner_ FJORD_GUARDED_BY(mutex_);
};

}  // namespace fjord
