#pragma once

#include <cstddef>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/rpc/messages.h"
#include "pending_operation.h"

namespace fjord {

/// Makes the request for a batch. A strict batch names the features that its receiver must obey.
rpc::Request request_for(rpc::Execute batch, bool is_strict);

/// Returns the result of each of `operations` operations from the answer to their batch; if there are no results,
/// `status` is an error. `is_rest`: the receiver has accepted the operations before, so they are in doubt after any
/// error.
rpc::ExecuteReply results_of(Result<rpc::Reply> answer, std::size_t operations, bool is_rest);

/// Moves the operations that have not ended out of `operations`, and their entries out of the results of a partial
/// answer. Keeps the order of both.
std::vector<PendingPtr> take_unfinished(std::vector<PendingPtr>& operations, rpc::ExecuteReply& reply);

}  // namespace fjord
