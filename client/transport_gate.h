#pragma once

#include <mutex>

#include "fjord/common/executor.h"
#include "fjord/common/status.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/rpc/transport.h"

namespace fjord {

/// The error of everything that was still under way when its client was closed.
inline Status client_closed() { return {StatusCode::Cancelled, "the client was closed"}; }

/// Access to a transport that can be destroyed before the client's last task has run.
/// Threading: every thread. Answers come on the executor given to the constructor.
class TransportGate {
 public:
  TransportGate(rpc::Transport& transport, Executor& executor) : transport_(transport), executor_(executor) {}

  /// Calls rpc::Transport::call(). After close(), `done` is dropped without being called.
  void call(const rpc::Address& to, rpc::Request request, Duration timeout, rpc::ReplyFunction done);
  /// Closes the gate: the transport is not used after the return.
  void close();
  rpc::Transport& transport() const { return transport_; }

 private:
  rpc::Transport& transport_;
  Executor& executor_;
  std::mutex mutex_;
  bool closed_ FJORD_GUARDED_BY(mutex_) = false;
};

}  // namespace fjord
