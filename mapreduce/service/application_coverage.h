#pragma once

#include "fjord/common/unique_function.h"
#include "fjord/mapreduce/application.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"

namespace fjord::mapreduce {

/// Asks every storage node in service whether it has the application of a plugin in this version, and calls `done` on
/// `executor`. Errors: InvalidArgument that names the nodes without it, and why. A node that does not answer in time is
/// skipped: each task compares versions, too.
void ask_for_application(rpc::Transport& transport, const rpc::ClusterSnapshot& snapshot, Executor& executor,
                         const ApplicationInfo& application, UniqueFunction<void(Status)> done);

}  // namespace fjord::mapreduce
