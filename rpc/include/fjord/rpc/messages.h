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

/// The messages between nodes and clients, as plain structs. Each call has one request and one reply. The numbers of
/// fields on the wire are in api/fjord.thrift, the translation is in rpc/codec. A message with document operations is a
/// batch, and each operation has its own status. The parts of a document are opaque bytes here (document/FORMAT.md).
namespace fjord::rpc {

// ---------------------------------------------------------------------------------------------------------------------
// Cluster state

/// The cluster state and what belongs to it: addresses, schemas, live configuration. A part that is empty or 0 is left
/// out because the receiver has it.
struct ClusterInfo {
  std::uint64_t state_version = 0;
  std::string state;                               ///< Text of the cluster state.
  std::string distribution;                        ///< Text of the DistributionConfig.
  std::vector<std::string> distributor_addresses;  ///< "host:port" of each distributor, by index.
  std::vector<std::string> storage_addresses;      ///< "host:port" of each storage node, by index.
  std::uint64_t schema_version = 0;
  std::vector<std::string> schemas;  ///< Texts of .sd files.
  /// Term of the fleet controller that this comes from, directly or through other processes. It rises with every
  /// election. A node refuses a lower term than it has seen. 0: the sender has not heard any controller yet.
  std::uint64_t term = 0;
  /// Length of a distributor's lease, in microseconds, from the last poll of the leader. With a lease the distributor
  /// may rely on its cluster state (docs/design/0005). 0: unchanged.
  std::int64_t lease_us = 0;
  /// Text of the state that becomes active next, with its own version. Only a later state, active or pending, replaces
  /// it. Empty: there is none, or the receiver has it.
  std::string pending_state;
  std::string pending_distribution;                        ///< Text of its DistributionConfig.
  std::vector<std::string> pending_distributor_addresses;  ///< Addresses under the pending state; empty: unchanged.
  std::vector<std::string> pending_storage_addresses;      ///< The same.
  /// Version of the live configuration in `config`, which is complete. 0: `config` is left out.
  std::uint64_t config_version = 0;
  std::vector<std::string> config;  ///< "name=value" of each setting that is not at its default.
  friend bool operator==(const ClusterInfo&, const ClusterInfo&) = default;
};

struct GetClusterInfoReply {
  Status status;
  ClusterInfo info;
  /// With GetClusterInfo::everything, from a distributor: highest Poll::time_ceiling_us that it has received; 0: none.
  std::uint64_t time_ceiling_us = 0;
};
struct GetClusterInfo {
  using Reply = GetClusterInfoReply;
  static constexpr const char* kName = "getClusterInfo";
  std::uint64_t known_state_version = 0;  ///< The reply leaves out state and addresses unless they are newer than this.
  std::uint64_t known_schema_version = 0;  ///< The reply leaves out the schemas unless they are newer than this.
  /// The reply has everything that the receiver knows, also the pending state, the live configuration and the term,
  /// even if the receiver does not act under that state yet. Storage nodes answer the call only with this flag.
  bool everything = false;
};

// ---------------------------------------------------------------------------------------------------------------------
// Document operations: client to distributor

enum class OperationKind : std::int32_t { Unknown = 0, Get = 1, Put = 2, Remove = 3, Update = 4 };

/// The failure that a write survives once a storage node has acknowledged it.
enum class Durability : std::int32_t {
  Default = 0,  ///< The storage node's own setting (storage_options.durability).
  Process = 1,  ///< The end of the process.
  Sync = 2,     ///< A loss of power.
};

/// The order in which a distributor refuses operations when it is overloaded (docs/operating/overload.md). A value that
/// only a newer peer knows counts as Normal.
enum class Priority : std::int32_t {
  Default = 0,     ///< Normal.
  High = 1,        ///< Refused last.
  Normal = 2,      ///< A user or a program waits for the outcome.
  Background = 3,  ///< Refused first: feeds in the background, output of jobs.
};

/// The writes that a get may return. Either kind sees every write that was acknowledged before the get began.
enum class Consistency : std::int32_t {
  Default = 0,  ///< Also writes in flight, which a crash may undo.
  Session = 1,  ///< Only writes on all replicas: linearizable. The get waits for writes in flight on its document.
};

struct Operation {
  OperationKind kind = OperationKind::Unknown;
  std::string id;
  std::string header;  ///< Put: header part in wire form.
  std::string body;    ///< Put: body part in wire form.
  /// Put, in place of header and body: the document's fields as a JSON object. Update, in place of `update`: the value
  /// of "fields" in a feed (document/FEED.md).
  std::string json;
  /// Number of the operation within its client, rising from 1. 0: duplicates of the operation are not recognised.
  std::uint64_t sequence = 0;
  /// Rises each time the client sends the operation again, so that a late duplicate of a refused attempt stays refused.
  std::uint32_t attempt = 0;
  bool want_json = false;  ///< Get: the result has `json` in place of header and body.
  std::string update;      ///< Update: the changes, as DocumentUpdate::encode() returns them.
  /// Put, update, remove: a selection that the stored document must match, else TestAndSetFailed. No condition holds if
  /// there is no document. Empty: no condition.
  std::string condition;
  bool create = false;  ///< Put with a condition, update: is applied without the condition if there is no document.
  /// Put, update, remove: idempotency key chosen by the client, the same in every repetition. An operation with a known
  /// key was applied before and gets the same result as then. Empty: no key.
  std::string token;
  std::string field_set;  ///< Get: the fields in the result; empty: all.
  Durability durability = Durability::Default;
  Priority priority = Priority::Default;
  /// Time from the operation's arrival, in microseconds, after which the caller has given up and no work is begun. 0,
  /// or longer than Execute::timeout_us: Execute::timeout_us counts.
  std::int64_t timeout_us = 0;
  Consistency consistency = Consistency::Default;  ///< Get.
  /// Put, update, remove: timestamp_us that the stored document must have, else TestAndSetFailed with the actual one in
  /// version_us. 0: there must be no document. `create` does not relax it, and a condition must hold as well.
  std::optional<std::uint64_t> required_version = {};
  /// Get: index of a storage node whose replica alone answers, even if it is damaged or catching up. Used to compare
  /// replicas.
  std::optional<std::uint16_t> node = {};

  /// Returns true for a write that depends on the stored document. It holds the document's lock exclusively.
  bool reads_first() const {
    if (kind == OperationKind::Get) return false;
    return kind == OperationKind::Update || !condition.empty() || !token.empty() || required_version.has_value();
  }
  /// Returns true if the operation travels in ExecuteStrict: an older receiver would ignore one of its fields and do
  /// harm.
  bool is_strict() const { return required_version.has_value() || node.has_value(); }
};
/// The longest Operation::token that is accepted, in bytes.
inline constexpr std::size_t kTokenBytesMax = 64;

struct OperationResult {
  Status status;
  std::uint64_t timestamp_us = 0;  ///< Timestamp of the version that was written or read.
  bool existed = false;            ///< Put, update, remove: there was a document with that id before.
  std::string header;              ///< Get: header part.
  std::string body;                ///< Get: body part.
  std::string json;                ///< Get with want_json: {"put": id, "fields": {...}}.
  /// With TestAndSetFailed: timestamp of the stored document that was compared; 0: there is no document.
  std::uint64_t version_us = 0;
  std::string token_entry;               ///< Storage node, get with token_gid: id of the token entry; empty: none.
  std::uint64_t token_timestamp_us = 0;  ///< Storage node, get with token_gid: timestamp of the token entry.
  /// With Busy: the sender's estimate of the time until it has room, in milliseconds; 0: no estimate.
  std::uint32_t retry_after_ms = 0;
};

struct ExecuteReply {
  Status status;                         ///< Status of the batch as a whole; OK even if single operations failed.
  std::vector<OperationResult> results;  ///< One for each operation, in their order.
  ClusterInfo newer_info;                ///< With WRONG_DISTRIBUTION results: the newer cluster state for the sender.
  std::uint32_t retry_after_ms = 0;      ///< With Busy as `status`: like OperationResult::retry_after_ms.
  /// Not 0: this is a part of the answer (docs/design/0015). Results with the status Unknown belong to operations that
  /// have not ended. The sender requests those with an Execute that has this number as `rest`.
  std::uint64_t rest = 0;
};
struct Execute {
  using Reply = ExecuteReply;
  static constexpr const char* kName = "execute";
  std::uint64_t state_version = 0;  ///< Version of the cluster state by which the client chose this distributor.
  std::uint64_t client_id = 0;      ///< 0: anonymous, no duplicates are recognised.
  /// All operations of this client with a smaller sequence are settled. A late duplicate of one of them is refused.
  std::uint64_t first_unsettled = 0;
  std::int64_t timeout_us = 0;  ///< 0: the server's default.
  std::vector<Operation> operations;
  /// Time after which the sender accepts a part of the answer, with the outcomes known by then. 0: only a whole answer.
  std::int64_t part_after_us = 0;
  /// Not 0: requests the rest of an answer that came in part (ExecuteReply::rest). Such a message has no operations.
  /// Its reply has one result for each operation that had not ended in the previous part, in order.
  std::uint64_t rest = 0;
};

struct ExecuteStrictReply {
  Status status;  ///< NotImplemented: the receiver does not know one of the features, and nothing was done.
  ExecuteReply batch;
};
/// An Execute whose operations have fields that an older receiver would ignore. Such a receiver does not know this
/// call, or not all of the features, and answers NotImplemented.
struct ExecuteStrict {
  using Reply = ExecuteStrictReply;
  static constexpr const char* kName = "executeStrict";
  Execute batch;
  std::vector<std::string> features;  ///< Names of the fields of Operation that the receiver must obey.
};
/// The features that this version of the distributor knows.
inline constexpr const char* kStrictFeatures[] = {"required_version", "node"};

struct BucketNode {
  BucketId bucket;
  Status status;  ///< Unavailable or NotReady if no replica may be read at present.
  /// Index of a storage node with an in-sync replica: with GetBucketNodes::all always the same one, otherwise random.
  std::uint16_t node = 0;
  /// For changes: epoch of the replica set. An entry that arrives with an old timestamp raises it (docs/design/0008).
  std::uint64_t epoch = 0;
  /// For changes: the stable bound. All writes with timestamps up to it have ended on every replica, and later writes
  /// get later timestamps.
  std::uint64_t stable_us = 0;
  bool even_damaged = false;  ///< No replica is intact; `node` has a damaged one, whose remains may be read.
};
struct GetBucketNodesReply {
  Status status;
  std::vector<BucketNode> buckets;
  ClusterInfo newer_info;
};
/// Asks a distributor for a storage node to read each bucket from. With `all` the reply has existing buckets only.
struct GetBucketNodes {
  using Reply = GetBucketNodesReply;
  static constexpr const char* kName = "getBucketNodes";
  std::uint64_t state_version = 0;
  bool all = false;               ///< All buckets that this distributor owns.
  std::vector<BucketId> buckets;  ///< The requested buckets; unused with `all` and `for_changes`.
  /// All buckets that this distributor owns, split as they are instead of as whole distribution buckets, with `epoch`
  /// and `stable_us`. A bucket whose replicas may differ is NotReady.
  bool for_changes = false;
  /// Storage nodes that the reply names only for buckets without another readable replica. Unused with `for_changes`.
  std::vector<std::uint16_t> avoid = {};
};

// ---------------------------------------------------------------------------------------------------------------------
// Distributor to storage node

struct StorageOperation {
  OperationKind kind = OperationKind::Unknown;
  BucketId bucket;
  std::uint64_t timestamp_us = 0;
  std::uint64_t epoch = 0;  ///< Epoch of the sender's replica set; refused if the replica has a newer one.
  GlobalId gid;             ///< Hash of `id`.
  std::string id;
  std::string header;
  std::string body;
  bool header_only = false;  ///< Get: the result has no body.
  /// Gid of a token entry (token_entry.h). Put, remove: the entry is written together with the document. Get: it is
  /// looked up together with the document. Zero: none.
  GlobalId token_gid;
  std::string token_entry;  ///< Put, remove: id of the token entry.
  Durability durability = Durability::Default;
  /// Put, remove: the replica applies the write only if its newest version has the timestamp `read_us` (0: no version),
  /// else TestAndSetFailed. A replica that is catching up may have an older version.
  bool compare = false;
  std::uint64_t read_us = 0;
  /// Get: a damaged replica returns a document that verifies, although it may have lost a newer version. Without this
  /// flag a damaged replica answers CORRUPTION.
  bool even_damaged = false;
  /// Put: another replica has applied it, so this replica refuses it for lack of space only where it refuses merges.
  bool is_elsewhere = false;
};
struct ApplyReply {
  Status status;
  std::vector<OperationResult> results;
  std::uint64_t state_version = 0;  ///< With WRONG_DISTRIBUTION: version of the storage node's cluster state.
};
/// A batch of gets, puts and removes. A storage node applies those on one bucket in order.
struct Apply {
  using Reply = ApplyReply;
  static constexpr const char* kName = "apply";
  std::uint64_t state_version = 0;
  std::uint16_t distributor = 0;
  std::vector<StorageOperation> operations;
  /// Time from arrival, in microseconds, after which the sender has given up the gets. A later get may be answered with
  /// Busy. 0: no limit.
  std::int64_t timeout_us = 0;
  std::uint32_t in_background = 0;  ///< Number of operations with Priority::Background.
  /// Message number of the distributor; rises with every message and over restarts. After the node refused a message
  /// for lack of space or because it was early, it refuses later duplicates as well. 0: duplicates are not recognised.
  std::uint64_t number = 0;
};

struct BucketReport {
  BucketId bucket;
  BucketInfo info;
  ReplicaSet replica_set;
  bool damaged = false;  ///< The replica has lost entries and is not repaired yet.
  /// The replica has dropped remove entries older than this; 0: none (docs/design/0013).
  std::uint64_t forgotten_removes_us = 0;
  std::uint64_t forgotten_tokens_us = 0;  ///< The same for token entries.
  /// The replica has remove or token entries older than the times in the request, or more tokens than
  /// GetBucketInfo::tokens_max.
  bool may_forget = false;
  std::uint64_t surplus_tokens_us = 0;  ///< Tokens older than this are the surplus over tokens_max.
};
struct GetBucketInfoReply {
  Status status;
  std::vector<BucketReport> reports;
  std::uint64_t state_version = 0;
  /// Fill stage of the node's disk: storage::SpaceStage plus one. 0: the node's version does not report it.
  std::uint16_t space_stage = 0;
  std::string space_reason = {};  ///< Measured value, limit and setting; empty while there is enough space.
  bool can_forget = false;        ///< The node knows BucketReplicaSet::forget_removes_before_us.
};
/// A distributor takes over (or checks) its buckets on a storage node. After the reply no write of another distributor
/// or of an older cluster state reaches them. Errors: NotReady if the node does not have that cluster state yet,
/// WrongDistribution if it has a newer one.
struct GetBucketInfo {
  using Reply = GetBucketInfoReply;
  static constexpr const char* kName = "getBucketInfo";
  std::uint64_t state_version = 0;
  std::uint16_t distributor = 0;
  bool all = false;  ///< All buckets that this distributor owns under `state_version`.
  /// Without `all`: these buckets or, where one is not held, the local buckets that contain it or are parts of it.
  std::vector<BucketId> buckets;
  bool only_damaged = false;        ///< Report only damaged buckets, and those above one of the limits below.
  std::uint64_t entries_limit = 0;  ///< Number of entries in a bucket; 0: no limit.
  std::uint64_t bytes_limit = 0;    ///< Size of a bucket in bytes; 0: no limit.
  bool census = false;  ///< From the fleet controller: all buckets, whichever distributor owns them; no takeover.
  /// With `only_damaged`: report also buckets with a remove entry older than this (BucketReport::may_forget); 0: none.
  std::uint64_t removes_before_us = 0;
  std::uint64_t tokens_before_us = 0;  ///< The same for token entries.
  std::uint64_t tokens_max = 0;        ///< Report also buckets with more tokens than this; 0: no limit.
};

struct BucketReplicaSet {
  BucketId bucket;
  ReplicaSet replica_set;
  /// The receiver's damaged replica was merged from an intact one. It is repaired if its content equals `intact`.
  bool repaired = false;
  BucketInfo intact = {};  ///< With `repaired`: content of the intact replica while no write is in flight.
  /// All members hold the same entries, and the receiver drops remove entries older than this. 0: drops none.
  std::uint64_t forget_removes_before_us = 0;
  std::uint64_t forget_tokens_before_us = 0;  ///< The same for token entries.
};
struct SetReplicaSetsReply {
  Status status;
  std::vector<Status> statuses;  ///< One for each bucket, in order.
  std::uint64_t state_version = 0;
  /// Content of each bucket right after its set was stored. From then on the node refuses writes that were sent under
  /// an older set. Empty: the node's version does not report it.
  std::vector<BucketInfo> contents;
};
/// Stores the replica sets. Creates buckets that the node lacks.
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
  BucketInfo info;  ///< Content of the receiver's replica after the merge.
  std::uint64_t state_version = 0;
  std::vector<std::uint16_t> damaged_sources;  ///< Sources whose replicas are damaged and may lack entries.
};
/// The receiver fetches the entries that it lacks from each source. The newest timestamp wins.
struct MergeBucket {
  using Reply = MergeBucketReply;
  static constexpr const char* kName = "mergeBucket";
  std::uint64_t state_version = 0;
  std::uint16_t distributor = 0;
  BucketId bucket;
  std::vector<std::uint16_t> sources;
  /// The sources with non-member replicas. Their content, or a gap in it, says nothing about the members.
  std::vector<std::uint16_t> outsiders = {};
  /// All members get the content that the receiver has afterwards. Where two replicas have different versions of a
  /// document, the receiver cancels the tokens of the losing version that the replica with the winning one lacks.
  bool decides = false;
  /// Time in milliseconds after which the receiver answers BUSY with its progress; the sender may repeat. 0: no limit.
  std::uint32_t time_limit_ms = 0;
  bool only_moves = false;  ///< The bucket only moves to other nodes: no replica is missing, and none differs.
  /// Epoch of the replica set; 0: the sender is of an earlier version. A receiver with a newer epoch refuses.
  std::uint64_t epoch = 0;
};

struct DeleteBucketsReply {
  Status status;
  std::vector<Status> statuses;
  std::uint64_t state_version = 0;
};
/// Deletes surplus replicas of buckets that are complete on other nodes.
struct DeleteBuckets {
  using Reply = DeleteBucketsReply;
  static constexpr const char* kName = "deleteBuckets";
  std::uint64_t state_version = 0;
  std::uint16_t distributor = 0;
  std::vector<BucketId> buckets;
};

struct SplitBucketReply {
  Status status;
  std::vector<BucketReport> reports = {};  ///< Reports on the two halves.
  std::uint64_t state_version = 0;
};
/// Replaces a bucket by its two halves, which inherit its replica set. Succeeds also if the bucket is split already.
struct SplitBucket {
  using Reply = SplitBucketReply;
  static constexpr const char* kName = "splitBucket";
  std::uint64_t state_version = 0;
  std::uint16_t distributor = 0;
  BucketId bucket;
  std::uint64_t epoch = 0;  ///< Epoch of the sender's replica set; refused if the replica has a newer one.
};

struct JoinBucketsReply {
  Status status;
  BucketReport report = {};
  std::uint64_t state_version = 0;
};
/// Replaces two halves that have the same replica set by `parent`. Succeeds also if they are joined already.
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
  std::vector<std::string> types = {};  ///< Document types, in the order of `ids`.
  bool more = false;                    ///< The bucket may have more garbage than `ids`.
  std::uint64_t scanned = 0;            ///< Number of documents looked at.
  std::uint64_t state_version = 0;
};
/// Lists documents of a bucket that are due for removal by their types' rules (DocumentType::keep_while). The
/// receiver's clock counts.
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
  static constexpr std::size_t kBytes = 24;  ///< Size of one key for limits in bytes.
  GlobalId gid;
  std::uint64_t timestamp_us = 0;
  bool removed = false;
};
struct ListEntriesReply {
  Status status;
  std::vector<EntryKey> entries;
  bool more = false;      ///< There are entries behind these.
  bool damaged = false;   ///< The replica is damaged and may have lost entries of this part.
  bool by_group = false;  ///< The reply obeys ListEntries::by_group; false from a node of an older version.
  std::uint64_t forgotten_removes_us = 0;  ///< spi::Forgotten::removes of the replica.
  std::uint64_t forgotten_tokens_us = 0;   ///< spi::Forgotten::tokens.
  std::uint64_t forgotten_checksum = 0;    ///< spi::Forgotten::checksum.
  std::uint64_t epoch = 0;                 ///< Epoch of the replica's replica set.
};
/// Lists a part of a replica's entries, without content, by rising gid. With `by_group` the part is a window: whole
/// groups by rising group, the entries of a group by rising gid. A *group* is the narrowest bucket of an entry, which a
/// document and the tokens of its operations share (BucketId::sort_key() with all bits).
struct ListEntries {
  using Reply = ListEntriesReply;
  static constexpr const char* kName = "listEntries";
  BucketId bucket;
  GlobalId after;          ///< The part starts behind this gid.
  bool from_start = true;  ///< The part starts with the first entry; `after` and `after_group` are ignored.
  /// Largest number of entries; a window exceeds it only if its first group does. 0: the node's setting.
  std::uint32_t max_entries = 0;
  bool by_group = false;
  std::uint64_t after_group = 0;                 ///< The window starts behind this group.
  std::uint64_t last_group = ~std::uint64_t{0};  ///< The window ends with this group at the latest.
};
struct FetchEntriesReply {
  Status status;
  std::uint32_t done = 0;  ///< Number of `gids` dealt with, from the first; the caller requests the rest again.
  std::string docblock;
  bool damaged = false;  ///< The replica is damaged and may have lost some of `gids`.
  /// With BUSY: time until this node may send data for merges again.
  std::uint64_t wait_us = 0;
};
struct FetchEntries {
  using Reply = FetchEntriesReply;
  static constexpr const char* kName = "fetchEntries";
  BucketId bucket;
  std::vector<GlobalId> gids;
  std::uint32_t max_bytes = 0;
  bool only_moves = false;  ///< As MergeBucket::only_moves of the merge.
};

// ---------------------------------------------------------------------------------------------------------------------
// Fleet controller to nodes, and administration

/// Recent latency of a storage node, as one distributor measured it.
struct NodeLatency {
  std::uint16_t node = 0;
  std::int64_t read_us = 0;         ///< Latency of reads; 0: none was measured recently.
  std::int64_t write_us = 0;        ///< Latency of writes; 0: none was measured recently.
  std::int64_t peers_read_us = 0;   ///< Median over the other storage nodes; 0: too few of them were measured.
  std::int64_t peers_write_us = 0;  ///< The same for writes.
  bool suspect = false;             ///< Much slower than the others: the distributor avoids reading from it.
  friend bool operator==(const NodeLatency&, const NodeLatency&) = default;
};
struct PollReply {
  Status status;
  std::string node_state;           ///< The node's state as in the text of a cluster state: "s:u t:123".
  std::uint64_t incarnation = 0;    ///< Changes with every start of the process.
  std::uint64_t state_version = 0;  ///< Version of the cluster state in use at the node.
  std::uint64_t schema_version = 0;
  std::uint64_t buckets = 0;
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0;
  std::uint64_t buckets_out_of_sync = 0;        ///< Distributor: buckets that wait for a merge.
  std::uint64_t buckets_unavailable = 0;        ///< Distributor: buckets that cannot be served now.
  std::uint64_t buckets_damaged = 0;            ///< Storage node: damaged replicas. Distributor: buckets with one.
  std::uint64_t pending_version = 0;            ///< Highest pending state that the node is prepared for.
  std::uint64_t term = 0;                       ///< Highest term that the node has seen; set also in a refusal.
  std::uint32_t min_bucket_bits = 0;            ///< Fewest bits of a bucket on the node; 0: no buckets, or not known.
  std::uint64_t config_version = 0;             ///< Version of the live configuration that the node has applied.
  std::vector<std::string> config_errors = {};  ///< "name: why it was refused" of each live setting not in force.
  std::int64_t clock_us = 0;                    ///< The node's monotonic clock at the answer; echoed in Poll::heard_us.
  std::vector<NodeLatency> latencies = {};  ///< Distributor: latencies of storage nodes that it has called recently.
  /// Name that the process was started as, "storage.2"; set also in a refusal. Empty: its version does not report it.
  std::string node = {};
  /// With Poll::wants_settings: "name=value=source" of each setting, without the live configuration. The source is
  /// "file" (configuration file) or empty (built in).
  std::vector<std::string> settings = {};
  /// Storage node: 0 normal, 1 warns, 2 throttles, 3 refuses puts, 4 refuses all writes but removes.
  std::uint32_t space_stage = 0;
  std::string space = {};              ///< Storage node: measured disk use and its limit; empty in the normal stage.
  std::uint64_t buckets_failing = 0;   ///< Distributor: buckets whose merges have failed several times in a row.
  std::string failing = {};            ///< Distributor: the newest of these failures.
  std::uint64_t buckets_unplaced = 0;  ///< Distributor: buckets for which the cluster state has no storage node.
  /// Distributor: buckets that are served with fewer current replicas than wanted. Buckets that wait for a node in
  /// maintenance count here and not as out of sync.
  std::uint64_t buckets_under_replicated = 0;
};
/// The fleet controller asks a node for its state. The poll carries the current cluster state if the node's is older.
struct Poll {
  using Reply = PollReply;
  static constexpr const char* kName = "poll";
  ClusterInfo info;
  /// The poll renews the lease: the sender has confirmed its leadership within its session with the store. The lease
  /// ends info.lease_us after `heard_us` by the node's own clock, so a poll that was long in flight renews nothing.
  bool renews_lease = false;
  /// Echo of the newest PollReply::clock_us that the sender has received. 0: none yet.
  std::int64_t heard_us = 0;
  std::uint64_t heard_incarnation = 0;  ///< Incarnation that `heard_us` came from; another one gets no lease by it.
  /// All storage nodes that most distributors find slow. Reads prefer other replicas. They are not part of the cluster
  /// state because any choice of replica is correct.
  std::vector<std::uint16_t> slow_storage = {};
  /// To distributors: the granted limit of timestamps. Beyond it a distributor advances in steps of one microsecond. 0:
  /// the sender sets no limit (docs/design/0005, "Timestamps").
  std::uint64_t time_ceiling_us = 0;
  /// The receiver's name in the cluster, "storage.2". A process that was started under another name ignores the poll
  /// and answers INVALID_ARGUMENT. Empty: the sender's version does not set it.
  std::string node = {};
  bool wants_settings = false;  ///< The reply lists the node's settings.
};

struct DeploySchemasReply {
  Status status;
  std::uint64_t schema_version = 0;
  std::vector<std::string> warnings;
};
/// Adds document types or replaces those of the same name. Any distributor accepts it; the fleet controller decides it.
struct DeploySchemas {
  using Reply = DeploySchemasReply;
  static constexpr const char* kName = "deploySchemas";
  std::vector<std::string> schemas;
  /// Fields and struct members whose stored values may be lost: "song.title". A change that makes stored values of any
  /// other field unreadable is refused.
  std::vector<std::string> may_drop = {};
};

struct NodeStatus {
  std::string node;  ///< "storage.2"
  std::string address;
  std::string state;  ///< "up", "down", ...
  std::string reason;
  PollReply last;                     ///< The node's last answer to a poll.
  std::int64_t answered_us_ago = -1;  ///< Time since that answer, in microseconds; -1: there was none.
  std::string wanted;                 ///< State that an operator has set: "retired: reason (who)"; empty: none.
  std::string group;                  ///< Storage node: its group in the distribution; empty: it is in no group.
  std::string capacity;               ///< Storage node: its relative weight in the placement.
  std::string slow;                   ///< Storage node: why it is marked as slow; empty: it is not marked.
  std::int64_t maintenance_us = -1;   ///< Storage node: time spent in maintenance so far; -1: it is not in maintenance.
  /// Storage node in maintenance: time until it counts as down; -1: there is no limit, or it is not in maintenance.
  std::int64_t maintenance_left_us = -1;
};
struct GetStatusReply {
  Status status;
  ClusterInfo info;
  std::vector<NodeStatus> nodes;
  std::int64_t changed_unix_us = 0;  ///< Time of the newest line in the cluster's history; 0: there is none.
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
  std::int64_t active_unix_us = 0;  ///< When the state became active; 0: it did not, or the line is not about a state.
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
  std::string waits_for;  ///< Why the pending state is not active yet; empty: nothing is pending.
};
struct GetHistory {
  using Reply = GetHistoryReply;
  static constexpr const char* kName = "getHistory";
  std::uint32_t max = 0;  ///< Number of lines, counted from the newest; 0: all that are kept.
};

// ---------------------------------------------------------------------------------------------------------------------
// Visitors: client to storage node

struct CreateVisitorReply {
  Status status;
};
struct CreateVisitor {
  using Reply = CreateVisitorReply;
  static constexpr const char* kName = "createVisitor";
  std::uint64_t visitor_id = 0;  ///< Random number chosen by the client; creating the same visitor again succeeds.
  std::string library;           ///< Name of the visitor's code on the storage node, e.g. "dump".
  std::vector<Parameter> parameters;
  std::vector<BucketId> buckets;
  std::string selection;
  bool ids_only = false;
  std::uint32_t docblock_bytes = 0;   ///< 0: the server's default (1 MiB).
  std::uint32_t buckets_at_once = 0;  ///< Number of buckets read concurrently; 0: 1.
  std::uint64_t schema_version = 0;   ///< Lowest schema version that the visitor works with.
  std::string field_set = {};         ///< Fields that the visitor receives; empty: all.
  std::uint64_t from_us = 0;          ///< Earliest timestamp of the versions to visit.
  std::uint64_t to_us = 0;            ///< Latest timestamp of the versions to visit; 0: no limit.
  /// Visits remove entries as well, which have no content. The selection is evaluated on their ids alone.
  bool include_removed = false;
  Priority priority = Priority::Default;  ///< Order in which visitors begin when there are too many.
  /// Range of positions (BucketId::position()) of the documents to visit, both ends included. 0 and 0: all documents.
  std::uint64_t first_position = 0;
  std::uint64_t last_position = 0;
  bool header_only = false;  ///< The visitor receives header parts as they are stored, and no bodies.
  bool snapshot = false;     ///< The visitor reads each bucket as it was when the visitor opened it.
  /// The node refuses a damaged bucket (NotReady). The bucket was intact when its distributor named the node, so it may
  /// have lost documents since.
  bool refuses_damaged = false;
  std::vector<BucketId> even_damaged = {};  ///< Buckets that the distributor named as damaged; these are not refused.
  /// Number of the visit or job. Its visitors share the group's part of the node's time. 0: visitors without a number
  /// are one group.
  std::uint64_t group = 0;
  /// Weight of the group. Groups of one priority get time in proportion to their weights. 0: the default, 10.
  std::uint32_t weight = 0;
};

/// A message of a visitor to its client.
struct VisitorEvent {
  std::uint64_t sequence = 0;  ///< Number of the event; from 1, without gaps.
  BucketId bucket;
  std::string docblock;      ///< Documents of that bucket; empty if the event has none.
  bool bucket_done = false;  ///< The bucket was read to its end, or `status` says why not.
  Status status;
  std::string result;                ///< With bucket_done: the visitor's result of the bucket (MapReduce: TaskReport).
  std::uint64_t documents_read = 0;  ///< With bucket_done: number of documents in the bucket.
  std::uint64_t documents_matched = 0;  ///< With bucket_done: number of documents and removes given to the visitor.
};
struct VisitorNextReply {
  Status status;  ///< NotFound: the node does not know the visitor, or does not know it any more.
  std::vector<VisitorEvent> events;
  bool finished = false;  ///< These are the last events.
  /// Processor time spent on the visitor so far, also in unfinished buckets; 0: not measured.
  std::uint64_t processor_us = 0;
};
/// Waits for events, at most `wait_us`. The node drops events up to `acknowledged` and sends later ones again, so a
/// lost answer loses no event.
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

/// A subscriber's position in one bucket, and the bound up to which it may read.
struct ChangesWanted {
  BucketId bucket;
  std::uint64_t epoch = 0;     ///< BucketNode::epoch; the answer is NotReady if the replica has another epoch.
  std::uint64_t until_us = 0;  ///< BucketNode::stable_us.
  std::uint64_t after_us = 0;  ///< The position: the subscriber has received the changes with timestamps up to it.
  /// Epoch of the last answer. If epoch and checksum are both different, the bucket is given from its beginning.
  std::uint64_t seen_epoch = 0;
  std::uint64_t seen_checksum = 0;    ///< BucketChanges::checksum of the last answer.
  std::uint64_t seen_horizon_us = 0;  ///< BucketChanges::horizon_us of the last answer.
};
struct BucketChanges {
  BucketId bucket;
  Status status;
  std::string docblock;          ///< Entries by rising timestamp; a removed one is gone or may no longer match.
  std::uint64_t after_us = 0;    ///< The new position.
  std::uint64_t checksum = 0;    ///< Sum over all entries up to the position and over all dropped entries.
  bool more = false;             ///< There are further changes up to `until_us`.
  bool again = false;            ///< The bucket is given from its beginning: earlier answers may have had gaps.
  bool resync = false;           ///< The replica has dropped removes that the subscriber may not have received.
  std::uint64_t horizon_us = 0;  ///< The replica may have dropped removes before this time; 0: none.
};
struct ReadChangesReply {
  Status status;
  std::vector<BucketChanges> buckets;  ///< The buckets that were read, in order; the caller requests the rest again.
};
/// Reads the changes of buckets after a position. A document that changed again after `until_us` is left out.
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

/// Every request of the system. The order is not part of the wire format, because calls travel by name.
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

/// Returns the name of the call: "execute" for an Execute, for example.
const char* name_of(const Request& request);
/// Returns a reply of the type that belongs to `request`, with nothing but `status` in it.
Reply error_reply(const Request& request, Status status);
/// Returns the status of the call as a whole, which every reply has.
const Status& status_of(const Reply& reply);

}  // namespace fjord::rpc
