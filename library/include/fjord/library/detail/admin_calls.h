#pragma once

#include <string>

#include "fjord/library/detail/client_core.h"

/// Calls of administration that take more than one message. For the library and the command line.
namespace fjord {

/// The author of an order, for the history: user@host.
std::string who_am_i();

/// Asks the cluster for a change of its nodes. Each attempt says what it has seen of the cluster, so that one that is
/// late does nothing; when something happens to the cluster meanwhile, it is tried again.
///
/// Errors: those of the call, and what the fleet controller says. Its refusals are in the answer.
Result<rpc::ChangeNodesReply> change_nodes(Connection& connection, rpc::ChangeNodes request, Duration timeout);

/// Asks the distributor that owns the bucket, until it knows its buckets. Errors: those of the owner; NotFound.
Result<rpc::ShowBucketReply> show_bucket(Connection& connection, const rpc::ShowBucket& request, Duration timeout);

}  // namespace fjord
