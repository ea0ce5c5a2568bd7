#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fjord/cluster/replica_set.h"
#include "fjord/common/status.h"
#include "fjord/document/bucket_id.h"

/// What operators say to a cluster: the part of messages.h, which includes this, that is about changes of nodes and
/// settings, plugins, and buckets that are in trouble.
namespace fjord::rpc {

// ---------------------------------------------------------------------------------------------------------------------
// Operation of a cluster: sent to any distributor, decided by the fleet controller that leads

enum class NodeAction : std::int32_t {
  Unknown = 0,
  Up = 1,           ///< Takes back what an operator wanted before.
  Maintenance = 2,  ///< Away for a short time: nothing is copied.
  Retire = 3,       ///< Its buckets move to others while it serves.
  Down = 4,
  Add = 5,       ///< A new node, with the next free index.
  Remove = 6,    ///< Out of the distribution; only when it is retired and empty.
  Replace = 7,   ///< Another process takes the index over.
  Capacity = 8,  ///< Relative weight in the placement.
  Stop = 9,      ///< Nothing but the question whether it could be stopped.
  Balance = 10,  ///< Of the whole cluster: single buckets are kept elsewhere, so that all nodes are equally full.
};

/// What a change of nodes would move.
struct MovementPlan {
  std::uint64_t buckets_total = 0;
  std::uint64_t buckets_moved = 0;  ///< Distribution buckets that get at least one new replica.
  std::uint64_t replicas_moved = 0;
  std::uint64_t bytes = 0;       ///< Estimate, from what the storage nodes report.
  std::uint64_t duration_s = 0;  ///< Estimate.
  std::vector<std::string> notes;
  friend bool operator==(const MovementPlan&, const MovementPlan&) = default;
};

struct ChangeNodesReply {
  Status status;
  /// Why it is refused; empty: it was done, or would be. Not used for input that is wrong, which is a status.
  std::vector<std::string> refusals;
  std::vector<std::string> warnings;
  std::vector<std::string> nodes;   ///< That were changed; the name of a node that was added.
  std::uint64_t state_version = 0;  ///< In force when the change was decided; its effect is a later one.
  MovementPlan plan;
};
struct ChangeNodes {
  using Reply = ChangeNodesReply;
  static constexpr const char* kName = "changeNodes";
  NodeAction action = NodeAction::Unknown;
  std::vector<std::string> nodes;  ///< "storage.2". Add: "storage" or "distributor".
  std::string address;             ///< Add, replace.
  std::string group;               ///< Add of a storage node: name of the group; empty: the only one there is.
  std::string capacity;            ///< Add, capacity; empty: 1.
  std::string reason;
  std::string who;
  bool dry_run = false;
  bool force = false;      ///< Although it is refused otherwise.
  std::string balance_to;  ///< Balance: the largest max/mean of bytes, empty: 1.02; "off": no exceptions.
  /// Only if GetStatusReply::changed_unix_us is `unchanged_since_us` still; TEST_AND_SET_FAILED otherwise. A request
  /// that got stuck on its way, and that its sender has given up, cannot undo what came after it then.
  bool if_unchanged = false;
  std::int64_t unchanged_since_us = 0;
};

struct Setting {
  std::string name;
  std::string type;           ///< "integer", "bytes", "duration", "ratio", "bool" or the choices, "a|b".
  std::string default_value;  ///< As people write it; empty: from the configuration file.
  std::string min;
  std::string max;
  std::string value;  ///< In the live configuration; empty: it is not there.
  std::string used_by;
  std::string meaning;
  std::string in_force;  ///< The value as most nodes that use it have it; empty: none of them has said.
  std::string source;    ///< Of that value: "live configuration", "configuration file" or "built in".
  /// Nodes where another value is in force: "storage.1: 32MiB (configuration file)".
  std::vector<std::string> elsewhere = {};
};
struct ConfigChange {
  std::uint64_t version = 0;
  std::int64_t unix_us = 0;
  std::string who;
  std::vector<std::string> values;  ///< "name=value": all that is not at its default.
};
struct GetConfigReply {
  Status status;
  std::uint64_t config_version = 0;
  std::vector<Setting> settings;
  std::vector<ConfigChange> versions;  ///< Oldest first.
  std::vector<std::string> waiting;    ///< Nodes that do not have config_version yet.
  std::vector<std::string> errors;     ///< "storage.1: name: why": not in force there.
};
struct GetConfig {
  using Reply = GetConfigReply;
  static constexpr const char* kName = "getConfig";
};
struct ChangeConfigReply {
  Status status;  ///< InvalidArgument names the setting, the value and what would be right; nothing is changed then.
  std::uint64_t config_version = 0;
  std::vector<std::string> changes;  ///< "name: old -> new".
};
struct ChangeConfig {
  using Reply = ChangeConfigReply;
  static constexpr const char* kName = "changeConfig";
  std::vector<std::string> set;    ///< "name=value".
  std::vector<std::string> unset;  ///< Back to the default.
  std::uint64_t revert_to = 0;     ///< Everything as in that version; 0: not asked.
  bool revert = false;             ///< Everything as before the last change.
  std::string who;
  bool dry_run = false;
  /// Only if the configuration is of `version` still; TEST_AND_SET_FAILED otherwise. A request that was delayed, and
  /// that its sender has given up and sent again, cannot undo what came after it then.
  bool if_version = false;
  std::uint64_t version = 0;
};

struct RecoverStateReply {
  Status status;
  std::vector<std::string> refusals;  ///< Why nothing was recovered; empty: it was, or would be.
  std::vector<std::string> warnings;
  std::vector<std::string> found;  ///< What the nodes know, one line a node.
  std::string state;               ///< That the cluster continues from.
  std::string distribution;
  std::uint64_t state_version = 0;
  std::uint64_t next_version = 0;  ///< Of the state that is published next: above all that any node may know.
  std::uint64_t term = 0;          ///< The highest that a node has heard of.
  std::uint64_t schema_version = 0;
  std::uint64_t schemas = 0;
  std::uint64_t config_version = 0;
  std::uint64_t settings = 0;
};
/// A fleet controller without records takes over what the nodes of its configuration file, and those that they know of,
/// report: the newest cluster state, the schemas and the live configuration. Documents are not touched.
struct RecoverState {
  using Reply = RecoverStateReply;
  static constexpr const char* kName = "recoverState";
  bool dry_run = false;
  bool force = false;  ///< Although nodes do not answer.
  std::string who;
};

// ---------------------------------------------------------------------------------------------------------------------
// Plugins: whoever asks, to storage nodes and distributors

struct PluginFunction {
  std::string name;
  std::string help;
  bool is_application = false;  ///< Else a visitor.
  std::string version;          ///< Of an application.
};
struct PluginLibrary {
  std::string file;
  std::string problem;  ///< Why it is not used; empty: it is.
  std::vector<PluginFunction> functions;
};
struct ListPluginsReply {
  Status status;
  std::vector<PluginLibrary> libraries;
};
/// What the libraries of this node's plugin directory offer.
struct ListPlugins {
  using Reply = ListPluginsReply;
  static constexpr const char* kName = "listPlugins";
};

// ---------------------------------------------------------------------------------------------------------------------
// Buckets that are not as they should be: an operator to distributors

enum class BucketTroubleKind : std::int32_t {
  Unknown = 0,
  OutOfSync = 1,    ///< Too few replicas, or they are being made equal or moved. Goes away by itself.
  Damaged = 2,      ///< A replica has lost something, and is made anew from an intact one.
  Lost = 3,         ///< All replicas have lost something, and nobody knows what.
  Unavailable = 4,  ///< Cannot be served: its newest documents may be on a node that is down.
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
  std::uint64_t next_key = 0;  ///< Where to go on; 0: that was all.
};
/// Of the receiver's buckets. Errors: NotReady if it does not know them yet.
struct ListTroubles {
  using Reply = ListTroublesReply;
  static constexpr const char* kName = "listTroubles";
  BucketTroubleKind at_least = BucketTroubleKind::Unknown;  ///< Unknown: all.
  std::uint64_t from_key = 0;
  std::uint32_t max = 0;  ///< 0: as many as the receiver finds good.
};
struct AcceptLossReply {
  Status status;
  std::vector<Status> statuses;  ///< Of each bucket.
};
/// What is left of these buckets, all replicas of which have lost something, is from now on all that there is. Begins
/// it; when it is done they are not in an answer to listTroubles any more. If the cluster state changes before, it has
/// to be asked for again. Errors for a bucket: NotFound if the receiver does not own it, InvalidArgument if an intact
/// replica is there.
struct AcceptLoss {
  using Reply = AcceptLossReply;
  static constexpr const char* kName = "acceptLoss";
  std::vector<BucketId> buckets;
};

struct CheckWithoutReply {
  Status status;
  std::uint64_t buckets = 0;              ///< That the receiver owns.
  std::uint64_t unavailable = 0;          ///< Of these, the ones that nobody could serve.
  std::vector<std::string> reasons = {};  ///< Of some of them: "bucket: why".
  std::uint64_t state_version = 0;
};
/// The fleet controller asks a distributor which of its buckets could be served without these storage nodes. The
/// receiver asks the replicas that would be left what they really hold. Errors: NotReady if it does not know its
/// buckets yet, WrongDistribution if it is in another cluster state.
struct CheckWithout {
  using Reply = CheckWithoutReply;
  static constexpr const char* kName = "checkWithout";
  std::uint64_t state_version = 0;
  std::vector<std::uint16_t> nodes;
};

/// What a storage node's replica is to the bucket's distributor.
enum class ReplicaRole : std::int32_t {
  Unknown = 0,
  Member = 1,      ///< Of the replica set: it has every acknowledged write and is read.
  CatchingUp = 2,  ///< Gets every write, is not read, and becomes a member after a merge.
  Obsolete = 3,    ///< Not needed any more: to be looked through and deleted.
  Unlisted = 4,    ///< On that node, and not known to the distributor.
};
/// One replica of a bucket, as its storage node describes it.
struct BucketReplica {
  std::uint16_t node = 0;
  ReplicaRole role = ReplicaRole::Unknown;
  bool damaged = false;  ///< Has lost something that nobody has made good yet.
  /// Why the rest is not known: the node is not up, does not answer, or does not have the replica (NotFound).
  Status status;
  BucketInfo info;
  ReplicaSet replica_set;  ///< As it is written down on the node.
  /// With ShowBucket::id: of the document on this replica. NotFound: there is none; a timestamp says when it was
  /// removed.
  Status document;
  std::uint64_t timestamp_us = 0;
  std::uint64_t checksum = 0;  ///< Of the document's header and body part; equal content has an equal one.
  BucketId bucket;             ///< As it is on the node: now and then with more or fewer bits than the distributor's.
};
struct BucketView {
  BucketId bucket;
  BucketTroubleKind trouble = BucketTroubleKind::Unknown;  ///< Unknown: none.
  std::string reason;                                      ///< Of the trouble.
  ReplicaSet replica_set;                                  ///< Members, primary first.
  std::vector<BucketReplica> replicas;                     ///< Members in their order, then by node.
};
struct ShowBucketReply {
  Status status;
  std::uint16_t distributor = 0;  ///< That answers.
  std::uint64_t state_version = 0;
  std::vector<BucketView> buckets = {};
};
/// What the receiver and all storage nodes that are up know of a bucket, of its parts or of what it is a part of.
/// Errors: WrongDistribution if another distributor owns it; NotReady; NotFound if nothing is known of it.
struct ShowBucket {
  using Reply = ShowBucketReply;
  static constexpr const char* kName = "showBucket";
  BucketId bucket;
  std::string id;  ///< Instead: the bucket of this document, and the document on each replica.
};

}  // namespace fjord::rpc
