#pragma once

#include <span>

#include "fjord/common/unique_function.h"
#include "fjord/rpc/codec.h"
#include "fjord/rpc/transport.h"

namespace fjord::rpc {

/// Receives the only answer to a call. An error in place of a reply means NotImplemented.
using AnswerFunction = UniqueFunction<void(const CallHeader& call, Result<Reply> reply)>;

/// Passes a decoded request to the first service that takes it. `answer` is called exactly once: with the service's
/// reply; with a NotReady reply if the service drops the responder; with NotImplemented if no service takes it.
///
/// Threading: `answer` runs on the thread that calls or drops the responder.
void dispatch(DecodedRequest decoded, std::span<Service* const> services, AnswerFunction answer);

}  // namespace fjord::rpc
