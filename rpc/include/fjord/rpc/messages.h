#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "fjord/cluster/replica_set.h"
#include "fjord/common/status.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/document_id.h"
#include "fjord/rpc/job_messages.h"
#include "fjord/rpc/operator_messages.h"

/// What nodes and clients say to each other: plain structs, one request and one answer a call. The wire numbers are in
/// api/fjord.thrift, the translation in rpc/codec. Every data message is a batch, and each operation in it has its own
/// status. Document parts are opaque bytes here (document/FORMAT.md).
namespace fjord::rpc {

// ---------------------------------------------------------------------------------------------------------------------
// Cluster state

/// What a client or node needs to know to find its way. Empty strings mean "as you have it".
struct ClusterInfo {
  std::uint64_t state_version = 0;
  std::string state;                               ///< Cluster state string.
  std::string distribution;                        ///< Text of the DistributionConfig.
  std::vector<std::string> distributor_addresses;  ///< By index, host:port.
  std::vector<std::string> storage_addresses;      ///< By index, host:port.
  std::uint64_t schema_version = 0;
  std::vector<std::string> schemas;  ///< .sd texts.
  /// Of the fleet controller that this comes from, directly or through others; rises with every election. What comes
  /// with a lower term than a node has seen is refused. 0: no controller spoke yet.
  std::uint64_t term = 0;
  /// A distributor that the leader polled within this time may believe its cluster state (docs/design/0005). 0: as you
  /// have it.
  std::int64_t lease_us = 0;
  /// The state that will be active next, with its own version; empty: none, or as you have it. A later state, active or
  /// pending, replaces it; it is never withdrawn otherwise.
  std::string pending_state;
  std::string pending_distribution;                        ///< Text of its DistributionConfig.
  std::vector<std::string> pending_distributor_addresses;  ///< As they will be then; empty: as now.
  std::vector<std::string> pending_storage_addresses;
  /// Version of the live configuration in `config`, which then is complete; 0: as you have it.
  std::uint64_t config_version = 0;
  std::vector<std::string> config;  ///< "name=value": the settings that are not at their defaults.
  friend bool operator==(const ClusterInfo&, const ClusterInfo&) = default;
};

struct GetClusterInfoReply {
  Status status;
  ClusterInfo info;
  /// With `everything`, from a distributor: the highest Poll::time_ceiling_us that it was told; 0: none.
  std::uint64_t time_ceiling_us = 0;
};
struct GetClusterInfo {
  using Reply = GetClusterInfoReply;
  static constexpr const char* kName = "getClusterInfo";
  std::uint64_t known_state_version = 0;   ///< Leave out state and addresses if they are no newer.
  std::uint64_t known_schema_version = 0;  ///< Leave out the schemas if they are no newer.
  /// All that the receiver knows, with the pending state, the live configuration and the term, even if it does not act
  /// under it. Storage nodes answer this, too.
  bool everything = false;
};

// ---------------------------------------------------------------------------------------------------------------------
// Document operations: client to distributor

enum class OperationKind : std::int32_t { Unknown = 0, Get = 1, Put = 2, Remove = 3, Update = 4 };

/// When a write counts as done on a storage node.
enum class Durability : std::int32_t {
  Default = 0,  ///< As the storage nodes are set (storage_options.durability).
  Process = 1,  ///< Survives the end of the process.
  Sync = 2,     ///< Survives a loss of power.
};

/// Which operations a distributor refuses first when there are too many (docs/operating/overload.md). What a newer peer
/// may have beside these counts as Normal.
enum class Priority : std::int32_t {
  Default = 0,     ///< Normal.
  High = 1,        ///< Refused last.
  Normal = 2,      ///< Somebody waits for it.
  Background = 3,  ///< Nobody does: feeds in the background, output of jobs.
};

/// What a get may see. All see every write that was acknowledged before.
enum class Consistency : std::int32_t {
  Default = 0,  ///< Also a write under way, of which nothing may be left after a crash.
  Session = 1,  ///< Only what all replicas have: reads are linearizable. Waits for writes of the document under way.
};

struct Operation {
  OperationKind kind = OperationKind::Unknown;
  std::string id;
  std::string header;  ///< Put: wire form of the header part.
  std::string body;    ///< Put: wire form of the body part.
  /// Put instead of header and body: the document's fields as a JSON object. Update instead of `update`: the changes,
  /// what stands in "fields" (document/FEED.md).
  std::string json;
  /// Rising number of the operation within its client, from 1; 0 if the client does not want duplicates recognised.
  std::uint64_t sequence = 0;
  /// Rising with every time the client sends it again: a late copy of an attempt that was refused stays refused.
  std::uint32_t attempt = 0;
  bool want_json = false;  ///< Get: answer with json instead of header and body.
  std::string update;      ///< Update: what DocumentUpdate::encode() makes.
  /// Put, update, remove: a selection that must hold for the document as it is stored, else TestAndSetFailed. Without a
  /// document no condition holds. Empty: none.
  std::string condition;
  bool create = false;  ///< Put with a condition, update: go on if there is no document, whatever the condition.
  /// Put, update, remove: chosen by the client, the same for every repetition. An operation whose token is known was
  /// applied and is answered as it was then. Empty: none.
  std::string token;
  std::string field_set;  ///< Get: which fields to answer with; empty: all of them.
  Durability durability = Durability::Default;
  Priority priority = Priority::Default;
  /// From its arrival; after that nobody waits for it, and no work is begun. 0, or more than that: the batch's.
  std::int64_t timeout_us = 0;
  Consistency consistency = Consistency::Default;  ///< Get.
  /// Put, update, remove: the document's timestamp_us must be this one, else TestAndSetFailed with the current one in
  /// version_us. 0: there must be no document. `create` changes nothing about it; a condition must hold as well.
  std::optional<std::uint64_t> required_version = {};
  /// Get: the replica on this storage node answers for itself, whatever the others hold: even one that is being filled,
  /// or that is damaged. For comparing replicas.
  std::optional<std::uint16_t> node = {};

  /// True if what is stored decides what is written: such an operation has the document for itself.
  bool reads_first() const {
    if (kind == OperationKind::Get) return false;
    return kind == OperationKind::Update || !condition.empty() || !token.empty() || required_version.has_value();
  }
  /// A receiver that ignored one of its fields would do harm: it travels in ExecuteStrict.
  bool is_strict() const { return required_version.has_value() || node.has_value(); }
};
/// A longer token is refused.
inline constexpr std::size_t kTokenBytesMax = 64;

struct OperationResult {
  Status status;
  std::uint64_t timestamp_us = 0;  ///< Of the version that was written or read.
  bool existed = false;            ///< Put, update, remove: a document of that id was there before.
  std::string header;              ///< Get.
  std::string body;                ///< Get.
  std::string json;                ///< Get with want_json: {"put": id, "fields": {...}}.
  /// With TestAndSetFailed: the timestamp of the document that the condition was compared with; 0 if there is none.
  std::uint64_t version_us = 0;
  std::string token_entry;               ///< Storage node, get with token_gid: the id of that entry; empty if none.
  std::uint64_t token_timestamp_us = 0;  ///< Storage node: of that entry.
  /// With Busy: in so many milliseconds there should be room, as far as the sender can tell; 0: it cannot.
  std::uint32_t retry_after_ms = 0;
};

struct ExecuteReply {
  Status status;                         ///< Of the batch as a whole; OK even if single operations failed.
  std::vector<OperationResult> results;  ///< One an operation, in order.
  ClusterInfo newer_info;                ///< With WRONG_DISTRIBUTION results: the state that the sender should have.
  std::uint32_t retry_after_ms = 0;      ///< With Busy for the batch as a whole: as in OperationResult.
  /// Not 0: a part of the answer (docs/design/0015). Results with the status Unknown belong to operations that have not
  /// ended; the sender asks for these by an Execute with this number as `rest`.
  std::uint64_t rest = 0;
};
struct Execute {
  using Reply = ExecuteReply;
  static constexpr const char* kName = "execute";
  std::uint64_t state_version = 0;  ///< Under which the client chose this distributor.
  std::uint64_t client_id = 0;      ///< 0: anonymous, no duplicates are recognised.
  /// All operations of this client with a smaller sequence are settled; a late copy of one of them is refused.
  std::uint64_t first_unsettled = 0;
  std::int64_t timeout_us = 0;  ///< 0: the server's default.
  std::vector<Operation> operations;
  /// After this time the sender takes a part of the answer: the outcomes that are known then. 0: it takes all at once.
  std::int64_t part_after_us = 0;
  /// Not 0: asks for the rest of an answer that came in part (ExecuteReply::rest). Such a message has no operations;
  /// its answer has one result for each operation that had not ended in the part before, in order.
  std::uint64_t rest = 0;
};

struct ExecuteStrictReply {
  Status status;  ///< NotImplemented: the receiver does not know one of the features. Nothing was done then.
  ExecuteReply batch;
};
/// Execute for operations with fields that a receiver of an older version would ignore. Such a receiver does not know
/// this call, or not all of the features, and answers NotImplemented.
struct ExecuteStrict {
  using Reply = ExecuteStrictReply;
  static constexpr const char* kName = "executeStrict";
  Execute batch;
  std::vector<std::string> features;  ///< Names of the fields of Operation that must be obeyed.
};
/// The features that a distributor of this version knows.
inline constexpr const char* kStrictFeatures[] = {"required_version", "node"};

struct BucketNode {
  BucketId bucket;
  Status status;           ///< Unavailable or NotReady if no replica may be read now.
  std::uint16_t node = 0;  ///< One in-sync replica, chosen at random.
  /// For changes: of the replica set. Whatever comes into the bucket's past raises it (docs/design/0008).
  std::uint64_t epoch = 0;
  /// For changes: all writes up to here have ended on every replica, and later ones have later timestamps.
  std::uint64_t stable_us = 0;
  bool even_damaged = false;  ///< No replica is intact: what is left of the bucket may be read there.
};
struct GetBucketNodesReply {
  Status status;
  std::vector<BucketNode> buckets;
  ClusterInfo newer_info;
};
/// Which storage node to visit for each bucket. Buckets that hold nothing yet are left out of the answer for `all`.
struct GetBucketNodes {
  using Reply = GetBucketNodesReply;
  static constexpr const char* kName = "getBucketNodes";
  std::uint64_t state_version = 0;
  bool all = false;  ///< Every bucket that this distributor owns.
  std::vector<BucketId> buckets;
  /// The answer names the buckets as they are now instead of whole distribution buckets, with `epoch` and `stable_us`;
  /// one whose replicas may differ is NotReady.
  bool for_changes = false;
  /// Not for changes: storage nodes that are named only for buckets that nobody else can be asked for.
  std::vector<std::uint16_t> avoid = {};
};

// ---------------------------------------------------------------------------------------------------------------------
// Distributor to storage node

struct StorageOperation {
  OperationKind kind = OperationKind::Unknown;
  BucketId bucket;
  std::uint64_t timestamp_us = 0;
  std::uint64_t epoch = 0;  ///< Replica set under which it is sent; refused if the replica knows a newer one.
  GlobalId gid;             ///< Of `id`.
  std::string id;
  std::string header;
  std::string body;
  bool header_only = false;  ///< Get: leave the body out.
  /// Put, remove: an entry that is written together with the document (token_entry.h). Get: one that is looked up
  /// together with it. Zero: none.
  GlobalId token_gid;
  std::string token_entry;  ///< Put, remove: that entry's id.
  Durability durability = Durability::Default;
  /// Put, remove: done only if the newest version here is the one of `read_us` (0: none), else TestAndSetFailed; a
  /// replica that is being filled may have an older one.
  bool compare = false;
  std::uint64_t read_us = 0;
  /// Get: what verifies is given even if the bucket is damaged here and may have lost a newer version; otherwise the
  /// answer is CORRUPTION then.
  bool even_damaged = false;
  /// Put: another replica has taken it, so this one takes it for as long as it takes merges, whatever its space says
  /// about writes of clients.
  bool is_elsewhere = false;
};
struct ApplyReply {
  Status status;
  std::vector<OperationResult> results;
  std::uint64_t state_version = 0;  ///< The storage node's, with WRONG_DISTRIBUTION.
};
/// Gets, puts and removes. Operations on one bucket are applied in order.
struct Apply {
  using Reply = ApplyReply;
  static constexpr const char* kName = "apply";
  std::uint64_t state_version = 0;
  std::uint16_t distributor = 0;
  std::vector<StorageOperation> operations;
  /// From its arrival; after that nobody waits for a get in it, and the answer to one may be Busy. 0: for ever.
  std::int64_t timeout_us = 0;
  std::uint32_t in_background = 0;  ///< How many of the operations nobody waits for (Priority::Background).
  /// Rises from message to message of a distributor, also over its restarts: of a message that was refused for lack of
  /// space, or because it came too early, a copy that comes later is refused as well. 0: not numbered, copies are not
  /// recognised.
  std::uint64_t number = 0;
};

struct BucketReport {
  BucketId bucket;
  BucketInfo info;
  ReplicaSet replica_set;
  bool damaged = false;  ///< The replica has lost something, and nobody has made it good yet.
  /// Removed entries, and tokens, before these times are dropped; 0: none are (docs/design/0013).
  std::uint64_t forgotten_removes_us = 0;
  std::uint64_t forgotten_tokens_us = 0;
  /// The replica has removed entries that are older than the times that were asked about, or too many tokens: all that
  /// are older than `surplus_tokens_us` are too many.
  bool may_forget = false;
  std::uint64_t surplus_tokens_us = 0;
};
struct GetBucketInfoReply {
  Status status;
  std::vector<BucketReport> reports;
  std::uint64_t state_version = 0;
  /// How full the node's disk is: a storage::SpaceStage plus one. 0: the node does not say.
  std::uint16_t space_stage = 0;
  std::string space_reason = {};  ///< What was measured, the limit, and the setting; empty while there is enough space.
  bool can_forget = false;  ///< The node knows BucketReplicaSet::forget_removes_before_us; earlier versions do not.
};
/// The asking distributor takes over (or checks) its buckets: after the answer, no write of another distributor or of
/// an older cluster state reaches them. Refused with WRONG_DISTRIBUTION until the node has that state version.
struct GetBucketInfo {
  using Reply = GetBucketInfoReply;
  static constexpr const char* kName = "getBucketInfo";
  std::uint64_t state_version = 0;
  std::uint16_t distributor = 0;
  bool all = false;               ///< Every bucket that this distributor owns under `state_version`.
  std::vector<BucketId> buckets;  ///< Otherwise these, or what is there of them with more or fewer bits.
  bool only_damaged = false;      ///< Of all these, the damaged ones, and those above one of the limits (0: none).
  std::uint64_t entries_limit = 0;
  std::uint64_t bytes_limit = 0;
  bool census = false;  ///< The fleet controller asks: all buckets, whoever owns them; nothing is taken over.
  /// With `only_damaged`: also buckets with removed entries that are older (0: none), or with more tokens (0: any
  /// number). See BucketReport::may_forget.
  std::uint64_t removes_before_us = 0;
  std::uint64_t tokens_before_us = 0;
  std::uint64_t tokens_max = 0;
};

struct BucketReplicaSet {
  BucketId bucket;
  ReplicaSet replica_set;
  /// The receiver's replica was damaged and has been merged from an intact one, which holds `intact` while no write is
  /// under way. If the receiver holds the same, it is no longer damaged.
  bool repaired = false;
  BucketInfo intact = {};
  /// All members hold the same, and from now on none of the removed entries (of the tokens) that are older.
  std::uint64_t forget_removes_before_us = 0;
  std::uint64_t forget_tokens_before_us = 0;
};
struct SetReplicaSetsReply {
  Status status;
  std::vector<Status> statuses;
  std::uint64_t state_version = 0;
  /// What each bucket held when it had its set: from then on nothing lands that was sent under an older one. Empty: the
  /// node is of a version that does not tell.
  std::vector<BucketInfo> contents;
};
/// Creates the buckets that are not there and stores the replica sets.
struct SetReplicaSets {
  using Reply = SetReplicaSetsReply;
  static constexpr const char* kName = "setReplicaSets";
  std::uint64_t state_version = 0;
  std::uint16_t distributor = 0;
  std::vector<BucketReplicaSet> buckets;
};

struct MergeBucketReply {
  Status status;
  std::uint64_t entries_copied = 0;
  std::uint64_t bytes_copied = 0;
  BucketInfo info;  ///< Of the receiver afterwards.
  std::uint64_t state_version = 0;
  std::vector<std::uint16_t> damaged_sources;  ///< Their replicas have lost something: what they gave may not be all.
};
/// The receiver fetches from each source the entries that are newer there. Newest timestamp wins.
struct MergeBucket {
  using Reply = MergeBucketReply;
  static constexpr const char* kName = "mergeBucket";
  std::uint64_t state_version = 0;
  std::uint16_t distributor = 0;
  BucketId bucket;
  std::vector<std::uint16_t> sources;
  /// Those of `sources` that are not members of the replica set: what they hold or lack says nothing about members.
  std::vector<std::uint16_t> outsiders = {};
  /// The receiver's content becomes what all members have. Where two replicas have different versions of a document,
  /// the tokens of the one that loses and does not know the other are cancelled.
  bool decides = false;
  /// After so long the receiver answers BUSY with what it has done so far, and may be asked again; 0: no limit.
  std::uint32_t time_limit_ms = 0;
  bool only_moves = false;  ///< Nothing is missing or differs: the bucket only gets other places.
  /// The epoch of the replica set; 0: sent by an earlier version. A receiver that has a newer one refuses.
  std::uint64_t epoch = 0;
};

/// Surplus replicas whose bucket is complete elsewhere.
struct DeleteBucketsReply {
  Status status;
  std::vector<Status> statuses;
  std::uint64_t state_version = 0;
};
struct DeleteBuckets {
  using Reply = DeleteBucketsReply;
  static constexpr const char* kName = "deleteBuckets";
  std::uint64_t state_version = 0;
  std::uint16_t distributor = 0;
  std::vector<BucketId> buckets;
};

struct SplitBucketReply {
  Status status;
  std::vector<BucketReport> reports = {};  ///< Of the halves.
  std::uint64_t state_version = 0;
};
/// Replaces a bucket by its two halves, which take over its replica set; fine if that happened before.
struct SplitBucket {
  using Reply = SplitBucketReply;
  static constexpr const char* kName = "splitBucket";
  std::uint64_t state_version = 0;
  std::uint16_t distributor = 0;
  BucketId bucket;
  std::uint64_t epoch = 0;  ///< Of the set that the sender knows; refused if the replica knows a newer one.
};

struct JoinBucketsReply {
  Status status;
  BucketReport report = {};
  std::uint64_t state_version = 0;
};
/// The reverse: replaces the two halves, which have the same replica set, by `parent`; fine if that happened before.
struct JoinBuckets {
  using Reply = JoinBucketsReply;
  static constexpr const char* kName = "joinBuckets";
  std::uint64_t state_version = 0;
  std::uint16_t distributor = 0;
  BucketId parent;
  std::uint64_t epoch = 0;
};

struct FindGarbageReply {
  Status status;
  std::vector<std::string> ids = {};
  std::vector<std::string> types = {};  ///< Of the documents, in the order of `ids`.
  bool more = false;                    ///< There may be more than these.
  std::uint64_t scanned = 0;            ///< Documents looked at.
  std::uint64_t state_version = 0;
};
/// Documents of a bucket that their types do not want to keep (DocumentType::keep_while), by the receiver's clock.
struct FindGarbage {
  using Reply = FindGarbageReply;
  static constexpr const char* kName = "findGarbage";
  std::uint64_t state_version = 0;
  std::uint16_t distributor = 0;
  BucketId bucket;
  std::uint32_t max_ids = 0;
};

// ---------------------------------------------------------------------------------------------------------------------
// Storage node to storage node (merge)

struct EntryKey {
  static constexpr std::size_t kBytes = 24;  ///< What one counts as where bytes are counted.
  GlobalId gid;
  std::uint64_t timestamp_us = 0;
  bool removed = false;
};
struct ListEntriesReply {
  Status status;
  std::vector<EntryKey> entries;
  bool more = false;      ///< Behind these.
  bool damaged = false;   ///< There may have been more.
  bool by_group = false;  ///< They are as the request wanted them by group; an older version does not know that.
  /// What the replica has dropped (spi::Forgotten), and the epoch of its replica set.
  std::uint64_t forgotten_removes_us = 0;
  std::uint64_t forgotten_tokens_us = 0;
  std::uint64_t forgotten_checksum = 0;
  std::uint64_t epoch = 0;
};
/// A part of what is there: by rising gid, behind `after`. Or, with `by_group`, a window: whole groups by rising group,
/// those of a group by rising gid. A *group* is the narrowest bucket of an entry, which a document and the tokens of
/// its operations share (BucketId::sort_key() with all bits).
struct ListEntries {
  using Reply = ListEntriesReply;
  static constexpr const char* kName = "listEntries";
  BucketId bucket;
  GlobalId after;                 ///< Start behind this gid.
  bool from_start = true;         ///< Ignore `after` and `after_group`.
  std::uint32_t max_entries = 0;  ///< By group more only if they are of one group; 0: as the node is set.
  bool by_group = false;
  std::uint64_t after_group = 0;                 ///< Start behind this group.
  std::uint64_t last_group = ~std::uint64_t{0};  ///< And end with this one.
};
struct FetchEntriesReply {
  Status status;
  std::uint32_t done = 0;  ///< How many of `gids` were dealt with; ask again for the rest.
  std::string docblock;
  bool damaged = false;  ///< Some of `gids` may have been lost.
  /// With BUSY: how long until this node may send data of merges again.
  std::uint64_t wait_us = 0;
};
struct FetchEntries {
  using Reply = FetchEntriesReply;
  static constexpr const char* kName = "fetchEntries";
  BucketId bucket;
  std::vector<GlobalId> gids;
  std::uint32_t max_bytes = 0;
  bool only_moves = false;  ///< MergeBucket's.
};

// ---------------------------------------------------------------------------------------------------------------------
// Fleet controller to nodes, and administration

/// How fast a storage node has answered one distributor lately.
struct NodeLatency {
  std::uint16_t node = 0;
  std::int64_t read_us = 0;         ///< 0: nothing was measured lately.
  std::int64_t write_us = 0;        ///< The same.
  std::int64_t peers_read_us = 0;   ///< Median of the other storage nodes; 0: too few of them were measured.
  std::int64_t peers_write_us = 0;  ///< The same.
  bool suspect = false;             ///< Much slower than its peers: the distributor reads elsewhere where it can.
  friend bool operator==(const NodeLatency&, const NodeLatency&) = default;
};
struct PollReply {
  Status status;
  std::string node_state;           ///< As in the state string: "s:u t:123".
  std::uint64_t incarnation = 0;    ///< Changes with every start of the process.
  std::uint64_t state_version = 0;  ///< In use at the node.
  std::uint64_t schema_version = 0;
  std::uint64_t buckets = 0;
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0;
  std::uint64_t buckets_out_of_sync = 0;  ///< Distributor: buckets that wait for a merge.
  std::uint64_t buckets_unavailable = 0;  ///< Distributor: buckets that cannot be served now.
  std::uint64_t buckets_damaged = 0;      ///< Have lost something here; distributor: on one of their replicas.
  std::uint64_t pending_version = 0;      ///< The highest pending state that the node is prepared for.
  std::uint64_t term = 0;                 ///< The highest that the node has seen; also told with a refusal.
  std::uint32_t min_bucket_bits = 0;      ///< The fewest bits that a bucket here has; 0: no buckets, or not known.
  std::uint64_t config_version = 0;       ///< Of the live configuration that the node has taken.
  std::vector<std::string> config_errors = {};  ///< "name: why it was refused": settings of it that are not in force.
  std::int64_t clock_us = 0;  ///< The node's monotonic clock when it answered; comes back in Poll::heard_us.
  std::vector<NodeLatency> latencies = {};  ///< Distributor: of the storage nodes that it has asked something lately.
  /// What the process was started as, "storage.2", also told with a refusal; empty: its version does not say.
  std::string node = {};
  /// With Poll::wants_settings: "name=value=source" of each setting, without the live configuration. The source is
  /// "file", or empty for what is built in.
  std::vector<std::string> settings = {};
  /// Storage node: 0 normal, 1 warns, 2 throttles, 3 refuses puts, 4 refuses all writes but removes.
  std::uint32_t space_stage = 0;
  std::string space = {};              ///< Storage node: what was measured and the limit; empty in the normal stage.
  std::uint64_t buckets_failing = 0;   ///< Distributor: buckets whose merges have failed several times in a row.
  std::string failing = {};            ///< Distributor: the newest failure among these.
  std::uint64_t buckets_unplaced = 0;  ///< Distributor: buckets for which the cluster state names no storage node.
  /// Distributor: buckets that are served with fewer current replicas than they should have. Those that wait for a node
  /// in maintenance are not out of sync.
  std::uint64_t buckets_under_replicated = 0;
};
/// Asks a node how it is; the current cluster state is piggybacked if the node's is older.
struct Poll {
  using Reply = PollReply;
  static constexpr const char* kName = "poll";
  ClusterInfo info;
  /// The sender has made sure, within its session with the store, that it leads: the node's lease lasts until
  /// `heard_us` plus the info's lease_us, by the node's own clock. So a poll that was under way for long renews
  /// nothing.
  bool renews_lease = false;
  /// Echo of the newest PollReply::clock_us that the sender has got, and of the incarnation that it came from. A node
  /// of another incarnation gets no lease by it. 0: none yet.
  std::int64_t heard_us = 0;
  std::uint64_t heard_incarnation = 0;
  /// Storage nodes that most distributors find slow: read from others where there are others. Complete each time; not
  /// a part of the cluster state, as every choice is correct.
  std::vector<std::uint16_t> slow_storage = {};
  /// To distributors: timestamps up to this one may be given, and beyond it only in steps of one microsecond. 0: the
  /// sender knows of no such limit (docs/design/0005, "Timestamps").
  std::uint64_t time_ceiling_us = 0;
  /// What the cluster calls the receiver, "storage.2". A process that was started as another node takes nothing of this
  /// and answers INVALID_ARGUMENT. Empty: the sender is of a version that does not say.
  std::string node = {};
  bool wants_settings = false;  ///< The answer lists the node's settings.
};

struct DeploySchemasReply {
  Status status;
  std::uint64_t schema_version = 0;
  std::vector<std::string> warnings;
};
/// Adds document types or replaces them by name. Sent to any distributor, decided by the fleet controller.
struct DeploySchemas {
  using Reply = DeploySchemasReply;
  static constexpr const char* kName = "deploySchemas";
  std::vector<std::string> schemas;
  /// Fields and members whose stored values may be lost: "song.title". What is not named here stays readable.
  std::vector<std::string> may_drop = {};
};

struct NodeStatus {
  std::string node;  ///< "storage.2"
  std::string address;
  std::string state;  ///< "up", "down", ...
  std::string reason;
  PollReply last;                     ///< The last answer to a poll.
  std::int64_t answered_us_ago = -1;  ///< -1: never.
  std::string wanted;                 ///< What an operator wants: "retired: reason (who)"; empty: nothing.
  std::string group;                  ///< Storage nodes: in the distribution; empty: in none.
  std::string capacity;
  std::string slow;  ///< Storage nodes: why it is marked as slow; empty: it is not.
  /// Storage nodes in maintenance: for how long they have been, and when they count as down; -1: not in maintenance, no
  /// limit.
  std::int64_t maintenance_us = -1;
  std::int64_t maintenance_left_us = -1;
};
struct GetStatusReply {
  Status status;
  ClusterInfo info;
  std::vector<NodeStatus> nodes;
  std::int64_t changed_unix_us = 0;  ///< Of the newest line of the cluster's history; 0: there is none.
};
struct GetStatus {
  using Reply = GetStatusReply;
  static constexpr const char* kName = "getStatus";
};

/// One line of the cluster's history.
struct StateChange {
  std::uint64_t version = 0;
  std::uint64_t term = 0;
  std::int64_t unix_us = 0;
  std::int64_t active_unix_us = 0;  ///< 0: it did not become active, or is no state.
  std::string what;
  std::string why;
  std::string who;
};
struct GetHistoryReply {
  Status status;
  std::vector<StateChange> changes;  ///< Oldest first.
  std::uint64_t term = 0;
  std::string leader;
  ClusterInfo info;
  std::string waits_for;  ///< Why the pending state is not active yet.
};
struct GetHistory {
  using Reply = GetHistoryReply;
  static constexpr const char* kName = "getHistory";
  std::uint32_t max = 0;  ///< The newest so many; 0: all that is kept.
};

// ---------------------------------------------------------------------------------------------------------------------
// Visitors: client to storage node

struct CreateVisitorReply {
  Status status;
};
struct CreateVisitor {
  using Reply = CreateVisitorReply;
  static constexpr const char* kName = "createVisitor";
  std::uint64_t visitor_id = 0;  ///< Chosen by the client, random; creating the same id again is fine.
  std::string library;           ///< Name of the server-side visitor, e.g. "dump".
  std::vector<Parameter> parameters;
  std::vector<BucketId> buckets;
  std::string selection;
  bool ids_only = false;
  std::uint32_t docblock_bytes = 0;   ///< 0: the server's default (1 MiB).
  std::uint32_t buckets_at_once = 0;  ///< 0: 1
  std::uint64_t schema_version = 0;   ///< The visitor needs at least this one.
  std::string field_set = {};         ///< Which fields the visitor is given; empty: all of them.
  std::uint64_t from_us = 0;          ///< Only versions written at or after this time.
  std::uint64_t to_us = 0;            ///< And not after this one; 0: no limit.
  /// Removed documents too, as entries without content; the selection is asked about their ids alone.
  bool include_removed = false;
  Priority priority = Priority::Default;  ///< Which visitors begin first when there are too many.
  /// Only documents whose narrowest bucket is in this part of the bucket tree (BucketId::position()), both ends of it
  /// included; 0 and 0: all of it.
  std::uint64_t first_position = 0;
  std::uint64_t last_position = 0;
  bool header_only = false;  ///< The visitor is given header parts as they are stored, and no bodies.
  bool snapshot = false;     ///< Each bucket as it was when the visitor began with it.
  /// A bucket that has lost something on the node is refused (NotReady): it was intact when its distributor named the
  /// node, and may have lost what was there then. Not refused are those that it named although they are damaged.
  bool refuses_damaged = false;
  std::vector<BucketId> even_damaged = {};
  /// Visitors of one visit or job have the same number, and share what it gets of the node's time. 0: it does not say;
  /// all such visitors are one group.
  std::uint64_t group = 0;
  /// The weight of the group: it gets time in proportion to this, beside other groups of its priority. 0: the
  /// default, 10.
  std::uint32_t weight = 0;
};

/// Something that a visitor has for its client.
struct VisitorEvent {
  std::uint64_t sequence = 0;  ///< From 1, without gaps.
  BucketId bucket;
  std::string docblock;      ///< Documents of that bucket; empty if there are none in this event.
  bool bucket_done = false;  ///< The bucket was read to its end, or `status` says why not.
  Status status;
  std::string result;  ///< With bucket_done: what the visitor says of the bucket (for MapReduce: TaskReport).
  std::uint64_t documents_read = 0;     ///< With bucket_done: documents there were in the bucket.
  std::uint64_t documents_matched = 0;  ///< With bucket_done: documents and removes that the visitor was given.
};
struct VisitorNextReply {
  Status status;  ///< NotFound: the node does not know the visitor (any more).
  std::vector<VisitorEvent> events;
  bool finished = false;  ///< No event will follow these.
  /// How long processors have worked for the visitor so far, in buckets that are not done, too; 0: not measured.
  std::uint64_t processor_us = 0;
};
/// Waits (at most `wait_us`) for events. Events up to `acknowledged` are dropped at the node; later ones that were
/// sent before are sent again, so a lost answer loses nothing.
struct VisitorNext {
  using Reply = VisitorNextReply;
  static constexpr const char* kName = "visitorNext";
  std::uint64_t visitor_id = 0;
  std::uint64_t acknowledged = 0;
  std::uint32_t max_bytes = 0;
  std::int64_t wait_us = 0;
};
struct DestroyVisitorReply {
  Status status;
};
struct DestroyVisitor {
  using Reply = DestroyVisitorReply;
  static constexpr const char* kName = "destroyVisitor";
  std::uint64_t visitor_id = 0;
};

// ---------------------------------------------------------------------------------------------------------------------
// Subscriptions: client to storage node

/// How far a subscriber is in one bucket, and how far it may read.
struct ChangesWanted {
  BucketId bucket;
  std::uint64_t epoch = 0;     ///< As BucketNode has it; NotReady if the replica has another one.
  std::uint64_t until_us = 0;  ///< BucketNode::stable_us.
  std::uint64_t after_us = 0;  ///< Changes up to here were given.
  /// What the answer said when they were given; if it is no longer so, they are given again.
  std::uint64_t seen_epoch = 0;
  std::uint64_t seen_checksum = 0;
  std::uint64_t seen_horizon_us = 0;  ///< BucketChanges::horizon_us of that answer.
};
struct BucketChanges {
  BucketId bucket;
  Status status;
  std::string docblock;          ///< By rising timestamp; an entry that is removed is, or may be, no longer selected.
  std::uint64_t after_us = 0;    ///< The new position.
  std::uint64_t checksum = 0;    ///< Of all entries up to it, and of those that were dropped since the bucket was made.
  bool more = false;             ///< There is more up to `until_us`.
  bool again = false;            ///< Begins anew, as what was given before may have had gaps.
  bool resync = false;           ///< Removes that the subscriber has not been given are forgotten.
  std::uint64_t horizon_us = 0;  ///< Removes before this time may be forgotten; 0: none are.
};
struct ReadChangesReply {
  Status status;
  std::vector<BucketChanges> buckets;  ///< Those that were read, in order; the rest is for another call.
};
/// What changed in buckets since a time, without documents that changed again later than `until_us`.
struct ReadChanges {
  using Reply = ReadChangesReply;
  static constexpr const char* kName = "readChanges";
  std::vector<ChangesWanted> buckets;
  std::string selection;
  std::string field_set;
  std::uint32_t max_bytes = 0;  ///< 0: the server's default.
  std::uint64_t schema_version = 0;
};

// ---------------------------------------------------------------------------------------------------------------------

/// Every request of the system. The order is not on the wire; calls go by name.
using Request =
    std::variant<GetClusterInfo, Execute, GetBucketNodes, Apply, GetBucketInfo, SetReplicaSets, MergeBucket,
                 DeleteBuckets, SplitBucket, JoinBuckets, ListEntries, FetchEntries, Poll, DeploySchemas, GetStatus,
                 CreateVisitor, VisitorNext, DestroyVisitor, SubmitJob, ListJobs, CancelJob, ChangeNodes, GetConfig,
                 ChangeConfig, GetHistory, FindGarbage, ReadChanges, ControlJob, ListPlugins, ListTroubles, AcceptLoss,
                 CheckWithout, RecoverState, ExecuteStrict, ShowBucket>;
using Reply =
    std::variant<GetClusterInfoReply, ExecuteReply, GetBucketNodesReply, ApplyReply, GetBucketInfoReply,
                 SetReplicaSetsReply, MergeBucketReply, DeleteBucketsReply, SplitBucketReply, JoinBucketsReply,
                 ListEntriesReply, FetchEntriesReply, PollReply, DeploySchemasReply, GetStatusReply, CreateVisitorReply,
                 VisitorNextReply, DestroyVisitorReply, SubmitJobReply, ListJobsReply, CancelJobReply, ChangeNodesReply,
                 GetConfigReply, ChangeConfigReply, GetHistoryReply, FindGarbageReply, ReadChangesReply,
                 ControlJobReply, ListPluginsReply, ListTroublesReply, AcceptLossReply, CheckWithoutReply,
                 RecoverStateReply, ExecuteStrictReply, ShowBucketReply>;
static_assert(std::variant_size_v<Request> == std::variant_size_v<Reply>, "the answer of request i is reply i");

/// "execute" for an Execute, and so on.
const char* name_of(const Request& request);
/// The answer that belongs to `request`, holding nothing but `status`.
Reply error_reply(const Request& request, Status status);
/// The status at the head of any answer.
const Status& status_of(const Reply& reply);

}  // namespace fjord::rpc
