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
/// Gives the answer to a request; called once, from any executor. Dropping it unanswered answers NotReady.
using Responder = UniqueFunction<void(Reply)>;

/// What a node offers to others.
/// Threading: `handle` is called on the transport's own executor or thread and must only hand the request on.
class Service {
 public:
  virtual ~Service() = default;
  /// Takes the request, or leaves it untouched and returns false if it is not of this service.
  virtual bool handle(Request& request, Responder& respond) = 0;
};

/// Asynchronous calls. Each ends in exactly one answer on the executor named by the caller:
/// NotReady - never sent (no connection); Timeout - sent and not answered before the deadline or before the connection
/// broke, so it may have been done; NotImplemented - the other side does not know the call; else the reply.
///
/// Threading: call from anywhere.
/// Lifetime: callbacks that did not run when their executor is destroyed are dropped.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual void call(const Address& to, Request request, Duration timeout, Executor& executor, ReplyFunction done) = 0;
};

/// `call` with the types of one request: `done(Result<R::Reply>)`. A reply whose own status is not OK comes as a value.
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
