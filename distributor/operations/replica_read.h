#pragma once

#include "context.h"
#include "fjord/common/unique_function.h"
#include "fjord/document/document_id.h"

namespace fjord::distributor {

/// One document on one replica.
struct ReplicaQuestion {
  std::uint16_t node = 0;
  BucketId bucket;  ///< As the node has it.
  GlobalId gid;
  std::string id;
  bool header_only = false;
  Duration timeout{0};
};

/// Asks the replica on that node for the document and gives on what it answers, whatever the replica set says: a
/// replica that is being filled, is obsolete or damaged answers too. What does not verify is never given out.
/// NotFound has the time of the remove, if there was one. A node that does not answer is Unavailable.
/// Confined to the executor, on which `done` is called.
void read_replica(Context& context, const ReplicaQuestion& question, UniqueFunction<void(rpc::OperationResult)> done);

}  // namespace fjord::distributor
