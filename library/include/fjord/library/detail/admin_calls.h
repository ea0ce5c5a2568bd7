#pragma once

#include <string>

#include "fjord/library/configuration.h"
#include "fjord/library/detail/client_core.h"

/// Administrative calls that take more than one message. For the library and the command line.
namespace fjord {

/// Returns the user of this process for the cluster's history: user@host.
std::string who_am_i();

/// The author of a change of settings, and the reason that was given with it.
struct Author {
  std::string who;
  std::string why;
};
/// Splits what the history of settings has of an author: "uid 0@host: a reason". Without a reason `why` is empty.
Author author_of(std::string_view text);

/// Asks the fleet controller for a change of nodes. Each attempt carries the time of the last change that it has seen,
/// so that a delayed duplicate has no effect; if the cluster changes in between, the call retries.
///
/// Errors: those of the call and of the fleet controller. Refusals are part of the answer.
Result<rpc::ChangeNodesReply> change_nodes(Connection& connection, rpc::ChangeNodes request, Duration timeout);

/// Asks the distributor that owns the bucket; retries transient errors until `timeout`.
/// Errors: those of the owner; NotFound.
Result<rpc::ShowBucketReply> show_bucket(Connection& connection, const rpc::ShowBucket& request, Duration timeout);

/// Changes the live configuration. Each attempt carries the version that it has seen, so that a delayed duplicate has
/// no effect. A change of single settings without SetOptions::if_version is tried again after a concurrent change; a
/// revert is not, because its meaning can depend on the version. Errors: those of Admin::set() and Admin::revert().
Result<rpc::ChangeConfigReply> change_configuration(ClientCore& core, rpc::ChangeConfig request,
                                                    const SetOptions& options);

}  // namespace fjord
