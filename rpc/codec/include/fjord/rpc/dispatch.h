#pragma once

#include <span>

#include "fjord/common/unique_function.h"
#include "fjord/rpc/codec.h"
#include "fjord/rpc/transport.h"

namespace fjord::rpc {

/// Takes the one answer to a call. An error (instead of a reply) means NotImplemented.
using AnswerFunction = UniqueFunction<void(const CallHeader& call, Result<Reply> reply)>;

/// Hands a decoded request to the first service that takes it. `answer` is called exactly once: with what the service
/// responds; with a NotReady reply if it drops the responder; with NotImplemented if no service takes the request.
///
/// Threading: `answer` runs on whatever thread answers or drops.
void dispatch(DecodedRequest decoded, std::span<Service* const> services, AnswerFunction answer);

}  // namespace fjord::rpc
