#pragma once

#include "context.h"
#include "fjord/rpc/messages.h"

namespace fjord::distributor {

/// Answers rpc::CheckWithout: which buckets could be served without some storage nodes. The database alone does not
/// prove that, so each remaining node is asked whether it holds the bucket undamaged and has it recorded that it is a
/// member of the replica set. Changes nothing. Confined to the executor of `context`, which outlives the answer.
void check_without(Context& context, const rpc::CheckWithout& request, rpc::Responder respond);

}  // namespace fjord::distributor
