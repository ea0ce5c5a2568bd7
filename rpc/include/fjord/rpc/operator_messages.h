#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fjord/cluster/replica_set.h"
#include "fjord/common/status.h"
#include "fjord/document/bucket_id.h"

/// The messages of messages.h (which includes this file) that operators use: changes of nodes and settings, plugins,
/// and unhealthy buckets.
namespace fjord::rpc {

// ---------------------------------------------------------------------------------------------------------------------
// Administration of a cluster: a client sends these to any distributor, and the leading fleet controller decides them

enum class NodeAction : std::int32_t {
  Unknown = 0,
  Up = 1,           ///< Withdraws an earlier maintenance, retire or down.
  Maintenance = 2,  ///< The node is away for a short time, and its buckets are not replicated elsewhere.
  Retire = 3,       ///< The node goes on serving while its buckets move to other nodes.
  Down = 4,
  Add = 5,       ///< Adds a new node under the next free index.
  Remove = 6,    ///< Takes the node out of the distribution; only if it is retired and empty.
  Replace = 7,   ///< Another process takes over the node's index.
  Capacity = 8,  ///< Sets the node's relative weight in the placement.
  Stop = 9,      ///< Only checks whether the node may be stopped safely.
  Balance = 10,  ///< For the whole cluster: moves single buckets so that all nodes are equally full.
};

/// The data that a change of nodes would move.
struct MovementPlan {
  std::uint64_t buckets_total = 0;
  std::uint64_t buckets_moved = 0;  ///< Distribution buckets that get at least one new replica.
  std::uint64_t replicas_moved = 0;
  std::uint64_t bytes = 0;       ///< Estimated from the reports of the storage nodes.
  std::uint64_t duration_s = 0;  ///< Estimated duration in seconds.
  std::vector<std::string> notes;
  friend bool operator==(const MovementPlan&, const MovementPlan&) = default;
};

struct ChangeNodesReply {
  Status status;
  /// Reasons why the change is refused. Empty: it was done, or would be done (dry_run). Wrong input is an error in
  /// `status` instead.
  std::vector<std::string> refusals;
  std::vector<std::string> warnings;
  std::vector<std::string> nodes;   ///< Names of the nodes that were changed or added.
  std::uint64_t state_version = 0;  ///< Cluster state in force at the decision; the change takes effect in a later one.
  MovementPlan plan;
};
struct ChangeNodes {
  using Reply = ChangeNodesReply;
  static constexpr const char* kName = "changeNodes";
  NodeAction action = NodeAction::Unknown;
  std::vector<std::string> nodes;  ///< Names, "storage.2". Add: "storage" or "distributor".
  std::string address;             ///< Add, replace: address of the process.
  std::string group;               ///< Add of a storage node: name of its group; empty: the only group.
  std::string capacity;            ///< Add, capacity: relative weight; empty: 1.
  std::string reason;
  std::string who;  ///< The operator, for the history.
  bool dry_run = false;
  bool force = false;      ///< Do it in spite of refusals that can be overridden.
  std::string balance_to;  ///< Balance: largest allowed max/mean of bytes. Empty: 1.02; "off": drop all exceptions.
  /// Do it only if GetStatusReply::changed_unix_us still equals `unchanged_since_us`; TEST_AND_SET_FAILED otherwise. So
  /// a delayed request that its sender has given up cannot undo later changes.
  bool if_unchanged = false;
  std::int64_t unchanged_since_us = 0;
};

struct Setting {
  std::string name;
  std::string type;           ///< "integer", "bytes", "duration", "ratio", "bool" or the choices, "a|b".
  std::string default_value;  ///< With its unit, as an operator types it; empty: from the configuration file.
  std::string min;
  std::string max;
  std::string value;  ///< Value in the live configuration; empty: the setting is not in it.
  std::string used_by;
  std::string meaning;
  /// Value in force on most of the nodes that use the setting; if no node has reported it, the live value or default.
  std::string in_force;
  std::string source;  ///< Source of `in_force`: "live configuration", "configuration file" or "built in".
  /// Nodes with another value in force: "storage.1: 32MiB (configuration file)".
  std::vector<std::string> elsewhere = {};
};
struct ConfigChange {
  std::uint64_t version = 0;
  std::int64_t unix_us = 0;
  std::string who;
  std::vector<std::string> values;  ///< "name=value" of each setting in this version that is not at its default.
};
struct GetConfigReply {
  Status status;
  std::uint64_t config_version = 0;
  std::vector<Setting> settings;
  std::vector<ConfigChange> versions;  ///< Oldest first.
  std::vector<std::string> waiting;    ///< Nodes that have not applied config_version yet.
  std::vector<std::string> errors;     ///< "storage.1: name: why" of each value that a node has refused.
};
struct GetConfig {
  using Reply = GetConfigReply;
  static constexpr const char* kName = "getConfig";
};
struct ChangeConfigReply {
  Status status;  ///< InvalidArgument names the setting, its value and valid values; then nothing is changed.
  std::uint64_t config_version = 0;
  std::vector<std::string> changes;  ///< "name: old -> new".
};
struct ChangeConfig {
  using Reply = ChangeConfigReply;
  static constexpr const char* kName = "changeConfig";
  std::vector<std::string> set;    ///< "name=value".
  std::vector<std::string> unset;  ///< Names of settings that return to their defaults.
  std::uint64_t revert_to = 0;     ///< Version whose settings are restored; 0: none.
  bool revert = false;             ///< Restore the settings before the last change.
  std::string who;
  bool dry_run = false;
  /// Change it only if the live configuration still has `version`; TEST_AND_SET_FAILED otherwise. So a delayed request
  /// that its sender has repeated cannot undo later changes.
  bool if_version = false;
  std::uint64_t version = 0;
};

struct RecoverStateReply {
  Status status;
  std::vector<std::string> refusals;  ///< Reasons why nothing was recovered; empty: it was, or would be (dry_run).
  std::vector<std::string> warnings;
  std::vector<std::string> found;  ///< What each node reported, one line for each.
  std::string state;               ///< Text of the cluster state from which the cluster continues.
  std::string distribution;
  std::uint64_t state_version = 0;
  std::uint64_t next_version = 0;  ///< Version of the next published state, above every version that a node may know.
  std::uint64_t term = 0;          ///< Highest term that a node has seen.
  std::uint64_t schema_version = 0;
  std::uint64_t schemas = 0;  ///< Number of schemas.
  std::uint64_t config_version = 0;
  std::uint64_t settings = 0;  ///< Number of live settings.
};
/// A fleet controller without records rebuilds them from the reports of nodes: the newest cluster state, the schemas
/// and the live configuration. It asks the nodes of its configuration file and those that they name. Documents stay as
/// they are.
struct RecoverState {
  using Reply = RecoverStateReply;
  static constexpr const char* kName = "recoverState";
  bool dry_run = false;
  bool force = false;  ///< Do it although some nodes do not answer.
  std::string who;
};

// ---------------------------------------------------------------------------------------------------------------------
// Plugins: any client to storage nodes and distributors

struct PluginFunction {
  std::string name;
  std::string help;
  bool is_application = false;  ///< A MapReduce application; otherwise a visitor.
  std::string version;          ///< Version of the application.
};
struct PluginLibrary {
  std::string file;
  std::string problem;  ///< Why the library is not used; empty: it is used.
  std::vector<PluginFunction> functions;
};
struct ListPluginsReply {
  Status status;
  std::vector<PluginLibrary> libraries;
};
/// Lists the libraries in the receiver's plugin directory and their functions.
struct ListPlugins {
  using Reply = ListPluginsReply;
  static constexpr const char* kName = "listPlugins";
};

// ---------------------------------------------------------------------------------------------------------------------
// Unhealthy buckets: an operator to distributors

enum class BucketTroubleKind : std::int32_t {
  Unknown = 0,
  OutOfSync = 1,    ///< Replicas are missing, differ or are being moved. Ends without an operator.
  Damaged = 2,      ///< A replica has lost entries and is repaired from an intact one.
  Lost = 3,         ///< All replicas have lost entries, and it is not known which.
  Unavailable = 4,  ///< The bucket is not served: its newest documents may be on a node that is down.
};
struct BucketTrouble {
  BucketId bucket;
  BucketTroubleKind kind = BucketTroubleKind::Unknown;
  std::string reason;
  std::vector<std::uint16_t> members;
  std::vector<std::uint16_t> damaged;
  std::vector<std::uint16_t> filling;
};
struct ListTroublesReply {
  Status status;
  std::vector<BucketTrouble> troubles = {};
  std::uint64_t next_key = 0;  ///< ListTroubles::from_key of the next page; 0: this is the last page.
};
/// Lists the unhealthy buckets that the receiver owns. Errors: NotReady if the receiver does not know its buckets yet.
struct ListTroubles {
  using Reply = ListTroublesReply;
  static constexpr const char* kName = "listTroubles";
  BucketTroubleKind at_least = BucketTroubleKind::Unknown;  ///< Lowest kind to list; Unknown: all.
  std::uint64_t from_key = 0;
  std::uint32_t max = 0;  ///< Largest number of buckets in the reply; 0: the receiver's default.
};
struct AcceptLossReply {
  Status status;
  std::vector<Status> statuses;  ///< One for each bucket, in order.
};
/// Unsafe recovery of buckets whose replicas are all damaged: the remains become the content of the bucket. The reply
/// says that it has begun; when it is done, listTroubles does not list the bucket any more. After a change of the
/// cluster state the caller has to send the call again. Errors of a bucket: NotFound if the receiver does not own it,
/// InvalidArgument if a replica is intact.
struct AcceptLoss {
  using Reply = AcceptLossReply;
  static constexpr const char* kName = "acceptLoss";
  std::vector<BucketId> buckets;
};

struct CheckWithoutReply {
  Status status;
  std::uint64_t buckets = 0;              ///< Number of buckets that the receiver owns.
  std::uint64_t unavailable = 0;          ///< Number of these that could not be served.
  std::vector<std::string> reasons = {};  ///< "bucket: why" of some of the unavailable ones.
  std::uint64_t state_version = 0;
};
/// The fleet controller asks a distributor which of its buckets could still be served without some storage nodes. The
/// receiver asks the remaining nodes what their replicas hold. Errors: NotReady if the receiver does not know its
/// buckets yet, WrongDistribution if its cluster state has another version.
struct CheckWithout {
  using Reply = CheckWithoutReply;
  static constexpr const char* kName = "checkWithout";
  std::uint64_t state_version = 0;
  std::vector<std::uint16_t> nodes;  ///< Indexes of the storage nodes that would be missing.
};

/// The role of a replica for the distributor that owns the bucket.
enum class ReplicaRole : std::int32_t {
  Unknown = 0,
  Member = 1,      ///< Member of the replica set: has every acknowledged write and is read.
  CatchingUp = 2,  ///< Receives every write, is not read, and becomes a member after a merge.
  Obsolete = 3,    ///< Not needed any more: it is checked for entries that members lack, then deleted.
  Unlisted = 4,    ///< The storage node has the replica, and the distributor does not know of it.
};
/// One replica of a bucket, as its storage node describes it.
struct BucketReplica {
  std::uint16_t node = 0;
  ReplicaRole role = ReplicaRole::Unknown;
  bool damaged = false;  ///< The replica has lost entries and is not repaired yet.
  /// Why the fields below are unknown: the node is not up, does not answer, or does not have the replica (NotFound).
  Status status;
  BucketInfo info;
  ReplicaSet replica_set;  ///< The replica set as stored on the node.
  /// With ShowBucket::id: status of the get of the document on this replica. NotFound: the replica does not have it.
  Status document;
  std::uint64_t timestamp_us = 0;  ///< Timestamp of the document; with NotFound, of its remove entry (0: none).
  std::uint64_t checksum = 0;      ///< Checksum of the document's header and body part; equal for equal content.
  BucketId bucket;                 ///< The bucket as split on the node; may have more or fewer bits than the owner's.
};
struct BucketView {
  BucketId bucket;
  BucketTroubleKind trouble = BucketTroubleKind::Unknown;  ///< Unknown: the bucket is healthy.
  std::string reason;                                      ///< Why the bucket is unhealthy.
  ReplicaSet replica_set;                                  ///< Members, primary first.
  std::vector<BucketReplica> replicas;                     ///< Members in their order, then by node.
};
struct ShowBucketReply {
  Status status;
  std::uint16_t distributor = 0;  ///< Index of the distributor that answers.
  std::uint64_t state_version = 0;
  std::vector<BucketView> buckets = {};
};
/// Returns what the receiver and all storage nodes that are up have of a bucket, of its parts or of the bucket that
/// contains it. Errors: WrongDistribution if another distributor owns it; NotReady if the receiver does not know its
/// buckets yet or they change meanwhile; NotFound if there is no such bucket.
struct ShowBucket {
  using Reply = ShowBucketReply;
  static constexpr const char* kName = "showBucket";
  BucketId bucket;
  std::string
      id;  ///< In place of `bucket`: a document id. The reply shows its bucket, and the document on each replica.
};

}  // namespace fjord::rpc
