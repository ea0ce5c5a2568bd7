#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/library/balancing.h"
#include "fjord/library/buckets.h"
#include "fjord/library/cluster_status.h"
#include "fjord/library/configuration.h"
#include "fjord/library/tuning.h"

namespace fjord {

class ClientCore;

struct DeployedSchemas {
  std::uint64_t version = 0;
  std::vector<std::string> warnings;
};

/// Administration of a cluster. The cluster's history records every change with the user's name.
///
/// Threading: any thread. Every member blocks until the cluster answers. Lifetime: the client must outlive it.
class Admin {
 public:
  explicit Admin(ClientCore& core) : core_(&core) {}

  // --- The cluster and its nodes

  Result<ClusterStatus> status();
  Result<ClusterStateInfo> state();
  /// Returns the newest `max` entries, oldest first; all stored entries if `max` is 0.
  Result<std::vector<HistoryEntry>> history(std::uint32_t max = 0);
  /// Errors: InvalidArgument, NotFound. A change that is only unsafe is no error: NodePlan::refusals says why.
  Result<NodePlan> change_nodes(const NodeChange& change);
  /// Waits until the change is in force and no bucket is left to move; calls `on_progress` about twice a second.
  /// Errors: Timeout with what is left; Cancelled after a stop request.
  Status wait_for(const NodeChange& change, const NodePlan& plan, Duration timeout,
                  const std::function<void(const NodeChangeProgress&)>& on_progress = {},
                  const std::stop_token& stop = {});
  /// Rebuilds the records of a fleet controller that has lost them (docs/operating/controllers.md).
  Result<RecoveredState> recover_state(const RecoverOptions& options);
  /// Asks all nodes for the plugins that they use. A node that does not answer is a problem in the result.
  Result<Plugins> plugins();

  // --- Settings

  Result<Configuration> configuration();
  /// Changes settings of the running cluster, all or none; an empty value restores the default. Errors: NotFound for a
  /// name that the cluster does not know, InvalidArgument for a value out of range, both with Status::setting() and
  /// Status::limit(); TestAndSetFailed if SetOptions::if_version is not in force any more.
  Result<ConfigurationChange> set(const std::map<std::string, std::string>& values, const SetOptions& options = {});
  /// Restores the settings of a version in the history; 0: those before the last change. Errors: NotFound;
  /// TestAndSetFailed if another change came between.
  Result<ConfigurationChange> revert(std::uint64_t to_version = 0, const SetOptions& options = {});

  /// Tuning gives advice on settings, and changes settings and watches the effect: tuning.h
  Tuning tuning() { return Tuning(*core_); }

  /// Balancing moves buckets between storage nodes by load: balancing.h
  Balancing balancing() { return Balancing(*core_); }

  // --- Schemas

  /// Adds or replaces document types. Errors: InvalidArgument with the position in the text if a schema is malformed;
  /// InvalidArgument if stored documents would lose a field that `may_drop` ("song.title") does not name.
  Result<DeployedSchemas> deploy_schemas(std::vector<std::string> schemas, std::vector<std::string> may_drop = {});
  /// Returns the texts of the deployed schemas. Client::types() has them parsed.
  Result<std::vector<std::string>> schemas();

  // --- Buckets

  /// Returns the bucket of a document with the contents of each replica. Errors: InvalidId.
  Result<std::vector<BucketReplicas>> bucket_of(const std::string& document_id);
  /// Returns the bucket with this name, its parts or the bucket that contains it. Errors: InvalidArgument.
  Result<std::vector<BucketReplicas>> bucket(const std::string& name);
  /// Returns up to `max` buckets that are not in sync.
  Result<UnhealthyBuckets> unhealthy_buckets(std::size_t max);
  /// Returns all buckets of which all replicas have lost entries.
  Result<UnhealthyBuckets> lost_buckets();
  /// Declares for these lost buckets that what is left is all there is, and waits until they are served again.
  /// Documents that they have lost are NotFound from then on. Errors: NotFound for a bucket that is not lost; Timeout.
  Status accept_loss(const std::vector<std::string>& buckets, Duration timeout);

 private:
  ClientCore* core_;
};

}  // namespace fjord
