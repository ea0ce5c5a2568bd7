#pragma once

#include "context.h"
#include "fjord/rpc/transport.h"

namespace fjord::distributor {

/// Answers rpc::ShowBucket: asks every storage node that is up for its replica of the bucket and, if there is a
/// document id, each replica for that document. Changes nothing. Confined to the executor; `context` outlives the
/// answer.
void show_bucket(Context& context, const rpc::ShowBucket& request, rpc::Responder respond);

}  // namespace fjord::distributor
