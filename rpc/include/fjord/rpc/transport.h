#pragma once

#include <memory>
#include <string>

#include "fjord/common/clock.h"
#include "fjord/common/executor.h"
#include "fjord/common/result.h"
#include "fjord/rpc/messages.h"

namespace fjord::rpc {

/// "host:port".
using Address = std::string;

using ReplyFunction = UniqueFunction<void(Result<Reply>)>;
/// Sends the answer to a request. It is called once, from any executor. A responder that is destroyed without a call
/// answers NotReady.
using Responder = UniqueFunction<void(Reply)>;

/// The calls that a node answers.
/// Threading: the transport calls `handle` on its own executor or thread; `handle` must only pass the request on.
class Service {
 public:
  virtual ~Service() = default;
  /// Takes the request and returns true. If it belongs to another service, returns false and leaves it untouched.
  virtual bool handle(Request& request, Responder& respond) = 0;
};

/// Makes calls asynchronously. Each call ends on the caller's executor with exactly one of these results:
/// - NotReady: the request was never sent (no connection), or the receiver certainly did not begin it.
/// - Timeout: the request was sent, and no answer came before the deadline or before the connection broke. The receiver
///   possibly applied it.
/// - NotImplemented: the receiver does not know the call.
/// - otherwise the reply.
///
/// Threading: any thread may call.
/// Lifetime: when an executor is destroyed, its callbacks that have not run are dropped.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual void call(const Address& to, Request request, Duration timeout, Executor& executor, ReplyFunction done) = 0;
};

/// Typed form of Transport::call: calls `done(Result<R::Reply>)`. A reply whose own status is an error comes as a
/// value. Errors: those of the transport; Corruption if the reply belongs to another call.
template <typename R, typename F>
void call(Transport& transport, const Address& to, R request, Duration timeout, Executor& executor, F done) {
  transport.call(to, Request(std::move(request)), timeout, executor,
                 [done = std::move(done)](Result<Reply> reply) mutable {
                   if (!reply) {
                     done(Result<typename R::Reply>(reply.error()));
                   } else if (auto* typed = std::get_if<typename R::Reply>(&*reply)) {
                     done(Result<typename R::Reply>(std::move(*typed)));
                   } else {
                     done(Result<typename R::Reply>(Status(StatusCode::Corruption, "the answer is of another call")));
                   }
                 });
}

}  // namespace fjord::rpc
