#pragma once

#include "context.h"
#include "fjord/common/unique_function.h"
#include "fjord/document/document_id.h"

namespace fjord::distributor {

/// A read of one document from one replica.
struct ReplicaQuestion {
  std::uint16_t node = 0;
  BucketId bucket;  ///< The bucket, with the bits that it has on this node.
  GlobalId gid;
  std::string id;
  bool header_only = false;
  Duration timeout{0};
};

/// Reads the document from the replica on that node, whatever the replica set says: a replica that is catching up,
/// obsolete or damaged answers too. Content with a wrong checksum is never returned. NotFound carries the time of the
/// remove, if there was one. Errors: Unavailable if the node does not answer. Confined to the executor, on which `done`
/// is called.
void read_replica(Context& context, const ReplicaQuestion& question, UniqueFunction<void(rpc::OperationResult)> done);

}  // namespace fjord::distributor
