#pragma once

#include <mutex>

#include "fjord/common/executor.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/rpc/transport.h"

namespace fjord {

/// The way to a transport that may be destroyed earlier than tasks of the client run for the last time.
/// Threading: every thread. Answers come on the executor given to the constructor.
class TransportGate {
 public:
  TransportGate(rpc::Transport& transport, Executor& executor) : transport_(transport), executor_(executor) {}

  /// rpc::Transport::call. Once closed, `done` is dropped without being called.
  void call(const rpc::Address& to, rpc::Request request, Duration timeout, rpc::ReplyFunction done);
  /// The transport is not used any more after the return of this.
  void close();
  rpc::Transport& transport() const { return transport_; }

 private:
  rpc::Transport& transport_;
  Executor& executor_;
  std::mutex mutex_;
  bool closed_ FJORD_GUARDED_BY(mutex_) = false;
};

}  // namespace fjord
