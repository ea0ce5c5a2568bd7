#include "transport_gate.h"

#include <utility>

namespace fjord {

void TransportGate::call(const rpc::Address& to, rpc::Request request, Duration timeout, rpc::ReplyFunction done) {
  // A transport only accepts the call and never answers inside it, so the mutex is held briefly and cannot deadlock.
  std::lock_guard lock(mutex_);
  if (!closed_) transport_.call(to, std::move(request), timeout, executor_, std::move(done));
}

void TransportGate::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
}

}  // namespace fjord
