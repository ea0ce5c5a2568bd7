/**
 * What Fjord's processes and its clients in any language say to each other.
 *
 * Transport: framed TCP (a 4-byte big-endian length before each message), compact protocol. Frames in the binary protocol
 * are understood, too, and answered in kind. A connection carries any number of calls at once; answers may come in another
 * order and are matched by sequence id. Frames above 64 MiB close the connection.
 *
 * Rules of change are in README.md: field numbers are never used again, fields are only added, every field is optional,
 * zero in an enum means unknown.
 */
namespace cpp fjord.api
namespace py fjord_api

// ---------------------------------------------------------------------------------------------------------------------
// Numbers and ids. The notes in parentheses are for Fjord's own C++ code; other languages ignore them.

/** Unsigned 64-bit number. It travels with the same bits: a value of 2^63 or more looks negative to a language without
 *  unsigned numbers. */
typedef i64 u64 (fjord.type = "std::uint64_t")

/** Unsigned number of at most 32 bits. */
typedef i64 u32 (fjord.type = "std::uint32_t")

/** Unsigned number of at most 16 bits. */
typedef i32 u16 (fjord.type = "std::uint16_t")

/** Index of a storage node or distributor in the cluster state. */
typedef i32 NodeIndex (fjord.type = "std::uint16_t")

/** A bucket: the number of its bits and its place in the bucket tree. */
typedef i64 BucketId (fjord.type = "BucketId", fjord.header = "fjord/document/bucket_id.h")

/** Global id of a document: 12 bytes, a hash of its id. */
typedef binary GlobalId (fjord.type = "GlobalId", fjord.header = "fjord/document/document_id.h")

// ---------------------------------------------------------------------------------------------------------------------
// Status (C++: common_messages.h)

/** Values of Status.code. */
enum StatusCode {
  UNKNOWN = 0,
  OK = 1,
  // Transient: certainly not applied, send it again.
  BUSY = 10,
  /** The receiver does not own the bucket; its newer cluster state is in `newer_info`. */
  WRONG_DISTRIBUTION = 11,
  UNAVAILABLE = 12,
  NOT_READY = 13,
  // In doubt: it may have been applied.
  TIMEOUT = 20,
  // Permanent: nothing was stored, a retry gives the same answer.
  INVALID_ID = 30,
  UNKNOWN_TYPE = 31,
  INVALID_FIELD = 32,
  INVALID_SELECTION = 33,
  TOO_LARGE = 34,
  NO_SPACE = 35,
  UNAUTHORIZED = 36,
  INVALID_ARGUMENT = 37,
  TEST_AND_SET_FAILED = 38,
  // Facts about what was looked for.
  NOT_FOUND = 50,
  ALREADY_EXISTS = 51,
  // The machine or the program.
  CORRUPTION = 60,
  IO_ERROR = 61,
  CANCELLED = 62,
  NOT_IMPLEMENTED = 63,
} (fjord.header = "fjord/common/status.h")

/** A missing status, or one without a code, is UNKNOWN and never success. */
struct Status {
  /** A StatusCode. */
  1: optional i32 code = 0
  /** For people: names the node, the value, the limit. */
  2: optional string message = ""
  /** Node that reported the error or did not answer, "storage.2"; empty: not known. */
  3: optional string node = ""
  /** The limit that was exceeded, or the permitted values: "67108864", "1 to 256"; empty: none. */
  4: optional string limit = ""
  /** Setting that is wrong or that sets the limit, "mapreduce.task_memory_bytes"; empty: none. */
  5: optional string setting = ""
} (fjord.header = "fjord/common/status.h")

struct Parameter {
  1: optional string name = ""
  2: optional string value = ""
}

// ---------------------------------------------------------------------------------------------------------------------
// Cluster state (C++: common_messages.h)

/**
 * The cluster state and what belongs to it: addresses, schemas, live configuration. A part that is empty or 0 is left
 * out because the receiver has it.
 */
struct ClusterInfo {
  1: optional u64 state_version = 0
  /** Text of the cluster state: "version:7 distributor:2 storage:4 .2.s:d". */
  2: optional string state = ""
  /** Text of the distribution configuration. */
  3: optional string distribution = ""
  /** "host:port" of each distributor, by index. */
  4: optional list<string> distributor_addresses = []
  /** "host:port" of each storage node, by index. */
  5: optional list<string> storage_addresses = []
  6: optional u64 schema_version = 0
  /** Texts of .sd files. */
  7: optional list<string> schemas = []
  /** Term of the fleet controller that this comes from, directly or through other processes. It rises with every
   *  election. A node refuses a lower term than it has seen. 0: the sender has not heard any controller yet. */
  8: optional u64 term = 0
  /** Length of a distributor's lease, in microseconds, from the last poll of the leader. With a lease the distributor
   *  may rely on its cluster state (docs/design/0005). 0: unchanged. */
  9: optional i64 lease_us = 0
  /** Text of the state that becomes active next, with its own version. Only a later state, active or pending, replaces
   *  it. Empty: there is none, or the receiver has it. */
  10: optional string pending_state = ""
  /** Text of its DistributionConfig. */
  11: optional string pending_distribution = ""
  /** Addresses under the pending state; empty: unchanged. */
  12: optional list<string> pending_distributor_addresses = []
  /** The same. */
  13: optional list<string> pending_storage_addresses = []
  /** Version of the live configuration in `config`, which is complete. 0: `config` is left out. */
  14: optional u64 config_version = 0
  /** "name=value" of each setting that is not at its default. */
  15: optional list<string> config = []
  /** Random number of the cluster, which its first fleet controller draws. Two clusters at the same addresses have
   *  different ones. Always sent. 0: not known, or the sender's version does not know it. */
  16: optional u64 cluster_id = 0
}

struct GetClusterInfo {
  /** The reply leaves out state and addresses unless they are newer than this. */
  1: optional u64 known_state_version = 0
  /** The reply leaves out the schemas unless they are newer than this. */
  2: optional u64 known_schema_version = 0
  /** The reply has everything that the receiver knows, also the pending state, the live configuration and the term,
   *  even if the receiver does not act under that state yet. Storage nodes answer the call only with this flag. */
  3: optional bool everything = false
  /** ClusterInfo.cluster_id of the sender's information. If the receiver belongs to another cluster, the reply leaves
   *  out nothing. 0: not known. */
  4: optional u64 known_cluster_id = 0
}

struct GetClusterInfoReply {
  1: optional Status status
  2: optional ClusterInfo info
  /** With GetClusterInfo.everything, from a distributor: highest Poll.time_ceiling_us that it has received; 0: none. */
  3: optional u64 time_ceiling_us = 0
}

// ---------------------------------------------------------------------------------------------------------------------
// Document operations: client to distributor (C++: distributor_messages.h)

enum OperationKind {
  UNKNOWN = 0,
  GET = 1,
  PUT = 2,
  REMOVE = 3,
  /** Changes to some fields of a document. */
  UPDATE = 4,
}

/** When a write counts as done on a storage node. */
enum Durability {
  /** The storage node's own setting (storage_options.durability). */
  DEFAULT = 0,
  /** The write survives a crash of the process. */
  PROCESS = 1,
  /** The write survives a loss of power. */
  SYNC = 2,
}

/**
 * The order in which a distributor refuses operations when it is overloaded (docs/operating/overload.md). A value that
 * only a newer peer knows counts as NORMAL.
 */
enum Priority {
  /** Normal. */
  DEFAULT = 0,
  /** Refused last. */
  HIGH = 1,
  /** A user or a program waits for the outcome. */
  NORMAL = 2,
  /** Refused first. No user waits: feeds in the background, output of jobs. */
  BACKGROUND = 3,
}

/** The writes that a get may return. Either kind sees every write that was acknowledged before the get began. */
enum Consistency {
  /** Also writes in flight, which a crash may undo. */
  DEFAULT = 0,
  /** Only writes on all replicas: linearizable. The get waits for writes in flight on its document. */
  SESSION = 1,
}

struct Operation {
  1: optional OperationKind kind = OperationKind.UNKNOWN
  /** Document id, e.g. "id:music:album::42". */
  2: optional string id = ""
  /** Put: wire form of the header and body part (document/FORMAT.md). */
  3: optional binary header = ""
  /** Put: body part in wire form. */
  4: optional binary body = ""
  /** Put, in place of header and body: the document's fields as a JSON object. Update, in place of `update`: the value
   *  of "fields" in a feed (document/FEED.md). */
  5: optional string json = ""
  /** Number of the operation within its client, rising from 1. 0: duplicates of the operation are not recognised. */
  6: optional u64 sequence = 0
  /** Get: the result has `json` in place of header and body. */
  7: optional bool want_json = false
  /** Rises each time the client sends the operation again, so that a late duplicate of a refused attempt stays
   *  refused. */
  8: optional u32 attempt = 0
  /** Update: the changes in wire form (document/FORMAT.md). */
  9: optional binary update = ""
  /** Put, update, remove: a selection that the stored document must match, else TEST_AND_SET_FAILED. No condition holds
   *  if there is no document. Empty: no condition. */
  10: optional string condition = ""
  /** Put with a condition, update: is applied without the condition if there is no document. */
  11: optional bool create = false
  /** Put, update, remove: idempotency key chosen by the client, at most 64 bytes, the same in every repetition. An
   *  operation with a known key was applied before and gets the same result as then. Empty: no key. */
  12: optional binary token = ""
  /** Get: fields of the answer, e.g. "[all]", "[id]", "song:title,year"; empty: all. */
  13: optional string field_set = ""
  14: optional Durability durability = Durability.DEFAULT
  15: optional Priority priority = Priority.DEFAULT
  /** Time from the operation's arrival, in microseconds, after which the caller has given up and no work is begun. 0,
   *  or longer than Execute.timeout_us: Execute.timeout_us counts. */
  16: optional i64 timeout_us = 0
  /** Get. */
  17: optional Consistency consistency = Consistency.DEFAULT
  /** Put, update, remove: timestamp_us that the stored document must have, else TEST_AND_SET_FAILED with the actual one
   *  in version_us. 0: there must be no document. Not set: any version. `create` does not relax it, and a condition
   *  must hold as well. A server of a version that does not know this field ignores it: use executeStrict if there may
   *  be one. */
  18: optional u64 required_version
  /** Get: index of a storage node whose replica alone answers, even if it is damaged or catching up. Used to compare
   *  replicas. Not set: an in-sync replica answers. */
  19: optional NodeIndex node
}

struct OperationResult {
  1: optional Status status
  /** Timestamp of the version that was written or read: microseconds since 1970. */
  2: optional u64 timestamp_us = 0
  /** Put, update, remove: there was a document with that id before. */
  3: optional bool existed = false
  /** Get: header part. */
  4: optional binary header = ""
  /** Get: body part. */
  5: optional binary body = ""
  /** Get with want_json: {"put": id, "fields": {...}}. */
  6: optional string json = ""
  /** With TEST_AND_SET_FAILED: timestamp of the stored document that was compared; 0: there is no document. */
  7: optional u64 version_us = 0
  /** Storage node, get with token_gid: id of the token entry; empty: none. */
  8: optional string token_entry = ""
  /** Storage node, get with token_gid: timestamp of the token entry. */
  9: optional u64 token_timestamp_us = 0
  /** With BUSY: the sender's estimate of the time until it has room, in milliseconds; 0: no estimate. */
  10: optional u32 retry_after_ms = 0
}

/** Operations on documents that one distributor owns; up to some hundred in one call is fast. */
struct Execute {
  /** Version of the cluster state by which the client chose this distributor; 0: chosen without a state. */
  1: optional u64 state_version = 0
  /** Random number of the client. 0: anonymous, no duplicates are recognised. */
  2: optional u64 client_id = 0
  /** All operations of this client with a smaller sequence are settled. A late duplicate of one of them is refused. */
  3: optional u64 first_unsettled = 0
  /** 0: the server's default. */
  4: optional i64 timeout_us = 0
  5: optional list<Operation> operations = []
  /** Time after which the sender accepts a part of the answer, with the outcomes known by then. 0: only a whole
   *  answer. */
  6: optional i64 part_after_us = 0
  /** Not 0: requests the rest of an answer that came in part (ExecuteReply.rest). Such a message has no operations. Its
   *  reply has one result for each operation that had not ended in the previous part, in order. */
  7: optional u64 rest = 0
  /** Cluster that `state_version` belongs to (ClusterInfo.cluster_id). A distributor of another cluster answers
   *  WRONG_DISTRIBUTION. 0: not known. */
  8: optional u64 cluster_id = 0
}

struct ExecuteReply {
  /** Status of the batch as a whole; OK even if single operations failed. */
  1: optional Status status
  /** One for each operation, in their order. */
  2: optional list<OperationResult> results = []
  /** With WRONG_DISTRIBUTION results: the newer cluster state for the sender. */
  3: optional ClusterInfo newer_info
  /** With BUSY as `status`: like OperationResult.retry_after_ms. */
  4: optional u32 retry_after_ms = 0
  /** Not 0: this is a part of the answer (docs/design/0015), which only a sender with `part_after_us` gets. Results
   *  without a status code belong to operations that have not ended. The sender requests those with an Execute that has
   *  this number as `rest`. */
  5: optional u64 rest = 0
}

/**
 * Execute for operations with fields that a server of an older version would ignore. Such a server does not know this
 * call, or not all of `features`, and answers NOT_IMPLEMENTED (or Thrift's UNKNOWN_METHOD): nothing was done.
 */
struct ExecuteStrict {
  1: optional Execute batch
  /** Names of the fields of Operation that must be obeyed: "required_version", "node". */
  2: optional list<string> features = []
}

struct ExecuteStrictReply {
  /** NOT_IMPLEMENTED: the receiver does not know one of the features, and nothing was done. */
  1: optional Status status
  2: optional ExecuteReply batch
}

/** Asks a distributor for a storage node to read each bucket from. With `all` the reply has existing buckets only. */
struct GetBucketNodes {
  1: optional u64 state_version = 0
  /** All buckets that this distributor owns. */
  2: optional bool all = false
  /** The requested buckets; unused with `all` and `for_changes`. */
  3: optional list<BucketId> buckets = []
  /** All buckets that this distributor owns, split as they are instead of as whole distribution buckets, with `epoch`
   *  and `stable_us`. A bucket whose replicas may differ is NOT_READY. */
  4: optional bool for_changes = false
  /** Storage nodes that the reply names only for buckets without another readable replica. Unused with
   *  `for_changes`. */
  5: optional list<NodeIndex> avoid = []
  /** See Execute.cluster_id. */
  6: optional u64 cluster_id = 0
}

struct BucketNode {
  1: optional BucketId bucket = 0
  /** Unavailable or NOT_READY if no replica may be read at present. */
  2: optional Status status
  /** Index of a storage node with an in-sync replica: with GetBucketNodes.all always the same one, otherwise random. */
  3: optional NodeIndex node = 0
  /** For changes: epoch of the replica set. An entry that arrives with an old timestamp raises it
   *  (docs/design/0008). */
  4: optional u64 epoch = 0
  /** For changes: the stable bound. All writes with timestamps up to it have ended on every replica, and later writes
   *  get later timestamps. */
  5: optional u64 stable_us = 0
  /** No replica is intact; `node` has a damaged one, whose remains may be read. */
  6: optional bool even_damaged = false
}

struct GetBucketNodesReply {
  1: optional Status status
  2: optional list<BucketNode> buckets = []
  3: optional ClusterInfo newer_info
}

// ---------------------------------------------------------------------------------------------------------------------
// Distributor to storage node (C++: storage_messages.h)

struct StorageOperation {
  1: optional OperationKind kind = OperationKind.UNKNOWN
  2: optional BucketId bucket = 0
  3: optional u64 timestamp_us = 0
  4: optional string id = ""
  5: optional binary header = ""
  6: optional binary body = ""
  /** Epoch of the sender's replica set; refused if the replica has a newer one. */
  7: optional u64 epoch = 0
  /** Global id: hash of `id`. */
  8: optional GlobalId gid = ""
  /** Get: the result has no body. */
  9: optional bool header_only = false
  /** Global id of a token entry (TokenEntry). Put, remove: the entry is written together with the
   *  document. Get: it is looked up together with the document. Zero: none. */
  10: optional GlobalId token_gid = ""
  /** Put, remove: id of the token entry. */
  11: optional string token_entry = ""
  12: optional Durability durability = Durability.DEFAULT
  /** Put, remove: the replica applies the write only if its newest version has the timestamp `read_us` (0: no version),
   *  else TEST_AND_SET_FAILED. A replica that is catching up may have an older version. */
  13: optional bool compare = false
  14: optional u64 read_us = 0
  /** Get: a damaged replica returns a document that verifies, although it may have lost a newer version. Without this
   *  flag a damaged replica answers CORRUPTION. */
  15: optional bool even_damaged = false
  /** Put: another replica has applied it, so this replica refuses it for lack of space only where it refuses merges. */
  16: optional bool is_elsewhere = false
}

/** A batch of gets, puts and removes. A storage node applies those on one bucket in order. */
struct Apply {
  1: optional u64 state_version = 0
  2: optional NodeIndex distributor = 0
  3: optional list<StorageOperation> operations = []
  /** Time from arrival, in microseconds, after which the sender has given up the gets. A later get may be answered with
   *  BUSY. 0: no limit. */
  4: optional i64 timeout_us = 0
  /** Number of operations with Priority.BACKGROUND. */
  5: optional u32 in_background = 0
  /** Message number of the distributor; rises with every message and over restarts. After the node refused a message
   *  for lack of space or because it was early, it refuses later duplicates as well. 0: duplicates are not
   *  recognised. */
  6: optional u64 number = 0
}

struct ApplyReply {
  1: optional Status status
  2: optional list<OperationResult> results = []
  /** With WRONG_DISTRIBUTION: version of the storage node's cluster state. */
  3: optional u64 state_version = 0
  /** Load of the storage node, 1 (idle) to 1000 (saturated); 0: an earlier version, which does not say. */
  4: optional u32 utilisation_permille = 0
}

/** Content of a replica of a bucket. */
struct BucketInfo {
  1: optional u64 entries = 0
  2: optional u64 documents = 0
  3: optional u64 bytes = 0
  4: optional u64 checksum = 0
  5: optional u64 max_timestamp_us = 0
} (fjord.header = "fjord/cluster/replica_set.h")

/** The storage nodes that hold every acknowledged write of a bucket since `epoch`. */
struct ReplicaSet {
  /** A cluster state version and, in the low 20 bits, a step that counts the sets made under it. */
  1: optional u64 epoch = 0
  /** Primary first. */
  2: optional list<NodeIndex> nodes = []
} (fjord.header = "fjord/cluster/replica_set.h")

/**
 * A distributor takes over (or checks) its buckets on a storage node. After the reply no write of another distributor
 * or of an older cluster state reaches them. Errors: NOT_READY if the node does not have that cluster state yet,
 * WRONG_DISTRIBUTION if it has a newer one.
 */
struct GetBucketInfo {
  1: optional u64 state_version = 0
  2: optional NodeIndex distributor = 0
  /** All buckets that this distributor owns under `state_version`. */
  3: optional bool all = false
  /** Without `all`: these buckets or, where one is not held, the local buckets that contain it or are parts of it. */
  4: optional list<BucketId> buckets = []
  /** Report only damaged buckets, and those above one of the limits below. */
  5: optional bool only_damaged = false
  /** Number of entries in a bucket; 0: no limit. */
  6: optional u64 entries_limit = 0
  /** Size of a bucket in bytes; 0: no limit. */
  7: optional u64 bytes_limit = 0
  /** All buckets, whichever distributor owns them. The receiver does not take the sender for their owner. */
  8: optional bool of_all_owners = false
  /** With `only_damaged`: report also buckets with a remove entry older than this (BucketReport.may_forget); 0:
   *  none. */
  9: optional u64 removes_before_us = 0
  /** The same for token entries. */
  10: optional u64 tokens_before_us = 0
  /** Report also buckets with more tokens than this; 0: no limit. */
  11: optional u64 tokens_max = 0
}

struct BucketReport {
  1: optional BucketId bucket = 0
  2: optional BucketInfo info
  3: optional ReplicaSet replica_set
  /** The replica has lost entries and is not repaired yet. */
  4: optional bool damaged = false
  /** The replica has dropped remove entries older than this; 0: none (docs/design/0013). */
  5: optional u64 forgotten_removes_us = 0
  /** The same for token entries. */
  6: optional u64 forgotten_tokens_us = 0
  /** The replica has remove or token entries older than the times in the request, or more tokens than
   *  GetBucketInfo.tokens_max. */
  7: optional bool may_forget = false
  /** Tokens older than this are the surplus over tokens_max. */
  8: optional u64 surplus_tokens_us = 0
}

struct GetBucketInfoReply {
  1: optional Status status
  2: optional list<BucketReport> reports = []
  3: optional u64 state_version = 0
  /** Stage of the disk. 0: not reported; 1: normal; 2: warn; 3: throttle; 4: no writes of clients; 5: only removes. */
  4: optional u16 space_stage = 0
  /** Measured value, limit and setting; empty while there is enough space. */
  5: optional string space_reason = ""
  /** The node knows BucketReplicaSet.forget_removes_before_us. For distributors that do not know features. */
  6: optional bool can_forget = false
}

struct BucketReplicaSet {
  1: optional BucketId bucket = 0
  2: optional ReplicaSet replica_set
  /** The receiver's damaged replica was merged from an intact one. It is repaired if its content equals `intact`. */
  3: optional bool repaired = false
  /** With `repaired`: content of the intact replica while no write is in flight. */
  4: optional BucketInfo intact
  /** All members hold the same entries, and the receiver drops remove entries older than this. 0: drops none. */
  5: optional u64 forget_removes_before_us = 0
  /** The same for token entries. */
  6: optional u64 forget_tokens_before_us = 0
}

/** Stores the replica sets. Creates buckets that the node lacks. */
struct SetReplicaSets {
  1: optional u64 state_version = 0
  2: optional NodeIndex distributor = 0
  3: optional list<BucketReplicaSet> buckets = []
}

struct SetReplicaSetsReply {
  1: optional Status status
  /** One for each bucket, in order. */
  2: optional list<Status> statuses = []
  3: optional u64 state_version = 0
  /** Content of each bucket right after its set was stored. From then on the node refuses writes that were sent under
   *  an older set. Empty: the node's version does not report it. */
  4: optional list<BucketInfo> contents = []
}

/** The receiver fetches the entries that it lacks from each source. The newest timestamp wins. */
struct MergeBucket {
  1: optional u64 state_version = 0
  2: optional NodeIndex distributor = 0
  3: optional BucketId bucket = 0
  4: optional list<NodeIndex> sources = []
  /** The sources with non-member replicas. Their content, or a gap in it, says nothing about the members. */
  5: optional list<NodeIndex> non_members = []
  /** All members get the content that the receiver has afterwards. Where two replicas have different versions of a
   *  document, the receiver cancels the tokens of the losing version that the replica with the winning one lacks. */
  6: optional bool decides = false
  /** Time in milliseconds after which the receiver answers BUSY with its progress; the sender may repeat. 0: no
   *  limit. */
  7: optional u32 time_limit_ms = 0
  /** The bucket only moves to other nodes: no replica is missing, and none differs. */
  8: optional bool only_moves = false
  /** Epoch of the replica set; 0: the sender is of an earlier version. A receiver with a newer epoch refuses. */
  9: optional u64 epoch = 0
}

struct MergeBucketReply {
  1: optional Status status
  2: optional u64 entries_copied = 0
  3: optional u64 bytes_copied = 0
  /** Content of the receiver's replica after the merge. */
  4: optional BucketInfo info
  5: optional u64 state_version = 0
  /** Sources whose replicas are damaged and may lack entries. */
  6: optional list<NodeIndex> damaged_sources = []
}

/** Deletes surplus replicas of buckets that are complete on other nodes. */
struct DeleteBuckets {
  1: optional u64 state_version = 0
  2: optional NodeIndex distributor = 0
  3: optional list<BucketId> buckets = []
}

struct DeleteBucketsReply {
  1: optional Status status
  2: optional list<Status> statuses = []
  3: optional u64 state_version = 0
}

/** Replaces a bucket by its two halves, which inherit its replica set. Succeeds also if the bucket is split already. */
struct SplitBucket {
  1: optional u64 state_version = 0
  2: optional NodeIndex distributor = 0
  3: optional BucketId bucket = 0
  /** Epoch of the sender's replica set; refused if the replica has a newer one. */
  4: optional u64 epoch = 0
}

struct SplitBucketReply {
  1: optional Status status
  /** Reports on the two halves. */
  2: optional list<BucketReport> reports = []
  3: optional u64 state_version = 0
}

/** Replaces two halves that have the same replica set by `parent`. Succeeds also if they are joined already. */
struct JoinBuckets {
  1: optional u64 state_version = 0
  2: optional NodeIndex distributor = 0
  3: optional BucketId parent = 0
  4: optional u64 epoch = 0
}

struct JoinBucketsReply {
  1: optional Status status
  2: optional BucketReport report
  3: optional u64 state_version = 0
}

/** Asks for the documents of a bucket that their types do not keep, by the receiver's clock. */
struct FindGarbage {
  1: optional u64 state_version = 0
  2: optional NodeIndex distributor = 0
  3: optional BucketId bucket = 0
  4: optional u32 max_ids = 0
}

struct FindGarbageReply {
  1: optional Status status
  2: optional list<string> ids = []
  /** Document types, in the order of `ids`. */
  3: optional list<string> types = []
  /** The bucket may have more garbage than `ids`. */
  4: optional bool more = false
  /** Number of documents looked at. */
  5: optional u64 scanned = 0
  6: optional u64 state_version = 0
}

// ---------------------------------------------------------------------------------------------------------------------
// Loads: fleet controller to storage node (C++: storage_messages.h)

/** What users' operations on a bucket, or on a whole storage node, have cost. Counts only rise while the node's process
 *  runs, except `stored_bytes`. */
struct BucketLoad {
  /** First `GetLoadsReply.bits` bits of the bucket. 0 in a total. */
  1: optional u64 bucket = 0
  /** Time of execution, without the time in queues. */
  2: optional u64 read_ns = 0
  3: optional u64 write_ns = 0
  /** Gets; puts and removes. */
  4: optional u64 reads = 0
  5: optional u64 writes = 0
  6: optional u64 read_bytes = 0
  7: optional u64 written_bytes = 0
  /** Bytes of the replica now. */
  8: optional u64 stored_bytes = 0
  /** Time of searches that keywords of this bucket took, and number of its keywords that matched a query. */
  9: optional u64 search_ns = 0
  10: optional u64 search_candidates = 0
  /** Pages of index files that were read for them. */
  11: optional u64 search_pages = 0
}

/** Asks a storage node for the loads of all its buckets. */
struct GetLoads {
}

/** Two answers of one process (`incarnation`) differ by what was done between them. So a lost answer loses nothing, and
 *  one that arrives twice counts once. */
struct GetLoadsReply {
  1: optional Status status
  2: optional u64 incarnation = 0
  /** Monotonic clock of the node when the counts began, and now. */
  3: optional i64 began_us = 0
  4: optional i64 now_us = 0
  /** Buckets are counted by this many of their first bits; at most 16. When the number changes the counts of a bucket
   *  are divided among its parts, or added up. */
  5: optional u32 bits = 0
  /** Buckets with a count or a replica, by rising bucket. */
  6: optional list<BucketLoad> buckets = []
  /** Of the whole node, counted apart from `buckets`. */
  7: optional BucketLoad total
  /** Cluster state in use. */
  8: optional u64 state_version = 0
}

// ---------------------------------------------------------------------------------------------------------------------
// Storage node to storage node (C++: storage_messages.h)

struct EntryKey {
  /** Global id of the document or token. */
  1: optional GlobalId gid = ""
  2: optional u64 timestamp_us = 0
  3: optional bool removed = false
}

/**
 * Lists a part of a replica's entries, without content, by rising gid. With `by_group` the part is a window: whole
 * groups by rising group, the entries of a group by rising gid. A *group* is the narrowest bucket of an entry, which a
 * document and the tokens of its operations share (the order key of all its bits).
 */
struct ListEntries {
  1: optional BucketId bucket = 0
  /** The part starts behind this gid. */
  2: optional GlobalId after = ""
  /** The part starts with the first entry; `after` and `after_group` are ignored. */
  3: optional bool from_start = true
  /** Largest number of entries; a window exceeds it only if its first group does. 0: the node's setting. */
  4: optional u32 max_entries = 0
  /** The window starts behind this group. */
  5: optional u64 after_group = 0
  /** The window ends with this group at the latest. All bits set: no end. */
  6: optional u64 last_group = -1
  /** Whole groups by rising group, instead of entries by rising gid. */
  7: optional bool by_group = false
}

struct ListEntriesReply {
  1: optional Status status
  /** By rising gid, or by rising (group, gid). */
  2: optional list<EntryKey> entries = []
  /** There are entries behind these. */
  3: optional bool more = false
  /** The replica is damaged and may have lost entries of this part. */
  4: optional bool damaged = false
  /** The reply obeys ListEntries.by_group; false from a node of an older version. */
  5: optional bool by_group = false
  /** The replica has dropped remove entries older than this; 0: none (docs/design/0013). */
  6: optional u64 forgotten_removes_us = 0
  /** The same for token entries. */
  7: optional u64 forgotten_tokens_us = 0
  /** Checksum of the entries that the replica has dropped. */
  8: optional u64 forgotten_checksum = 0
  /** Epoch of the replica's replica set. */
  9: optional u64 epoch = 0
}

struct FetchEntries {
  1: optional BucketId bucket = 0
  /** 12 bytes each. */
  2: optional list<GlobalId> gids = []
  3: optional u32 max_bytes = 0
  /** As MergeBucket.only_moves of the merge. */
  4: optional bool only_moves = false
  /** Timestamp of each of `gids` as ListEntriesReply gave it. With a document that has been written since, the reply brings the tokens of its later writes. */
  5: optional list<u64> listed_us = []
}

struct FetchEntriesReply {
  1: optional Status status
  /** Number of `gids` dealt with, from the first; the caller requests the rest again. */
  2: optional u32 done = 0
  /** The entries of `gids`, and tokens as FetchEntries.listed_us says. */
  3: optional binary docblock = ""
  /** The replica is damaged and may have lost some of `gids`. */
  4: optional bool damaged = false
  /** With BUSY: time until this node may send data for merges again. */
  5: optional u64 wait_us = 0
}

// ---------------------------------------------------------------------------------------------------------------------
// Fleet controller to nodes, and the state of the cluster (C++: controller_messages.h)

/**
 * The fleet controller asks a node for its state. The poll carries the current cluster state if the node's is older.
 */
struct Poll {
  1: optional ClusterInfo info
  /** The poll renews the lease: the sender has confirmed its leadership within its session with the store. The lease
   *  ends info.lease_us after `heard_us` by the node's own clock, so a poll that was long in flight renews nothing. */
  2: optional bool renews_lease = false
  /** Echo of the newest PollReply.clock_us that the sender has received. 0: none yet. */
  3: optional i64 heard_us = 0
  /** Incarnation that `heard_us` came from; another one gets no lease by it. */
  4: optional u64 heard_incarnation = 0
  /** All storage nodes that most distributors find slow. Reads prefer other replicas. They are not part of the cluster
   *  state because any choice of replica is correct. */
  5: optional list<NodeIndex> slow_storage = []
  /** To distributors: the granted limit of timestamps. Beyond it a distributor advances in steps of one microsecond. 0:
   *  the sender sets no limit (docs/design/0005, "Timestamps"). */
  6: optional u64 time_ceiling_us = 0
  /** The receiver's name in the cluster, "storage.2". A process that was started under another name ignores the poll
   *  and answers INVALID_ARGUMENT. Empty: the sender's version does not set it. */
  7: optional string node = ""
  /** The reply lists the node's settings. */
  8: optional bool wants_settings = false
}

/** Recent latency of a storage node, as one distributor measured it. */
struct NodeLatency {
  1: optional NodeIndex node = 0
  /** Latency of reads; 0: none was measured recently. */
  2: optional i64 read_us = 0
  /** Latency of writes; 0: none was measured recently. */
  3: optional i64 write_us = 0
  /** Median over the other storage nodes; 0: too few of them were measured. */
  4: optional i64 peers_read_us = 0
  /** The same for writes. */
  5: optional i64 peers_write_us = 0
  /** Much slower than the others: the distributor avoids reading from it. */
  6: optional bool suspect = false
}

struct PollReply {
  1: optional Status status
  /** The node's state as in the text of a cluster state: "s:u t:123". */
  2: optional string node_state = ""
  /** Changes with every start of the process. */
  3: optional u64 incarnation = 0
  /** Version of the cluster state in use at the node. */
  4: optional u64 state_version = 0
  5: optional u64 schema_version = 0
  6: optional u64 buckets = 0
  7: optional u64 documents = 0
  8: optional u64 bytes = 0
  /** Distributor: buckets that wait for a merge. */
  9: optional u64 buckets_out_of_sync = 0
  /** Distributor: buckets that cannot be served now and are not in `buckets_collecting`. */
  10: optional u64 buckets_unavailable = 0
  /** Storage node: damaged replicas. Distributor: buckets with one. */
  11: optional u64 buckets_damaged = 0
  /** Highest pending state that the node is prepared for. */
  12: optional u64 pending_version = 0
  /** Highest term that the node has seen; set also in a refusal. */
  13: optional u64 term = 0
  /** Fewest bits of a bucket on the node; 0: no buckets, or not known. */
  14: optional u32 min_bucket_bits = 0
  /** Version of the live configuration that the node has applied. */
  15: optional u64 config_version = 0
  /** "name: why it was refused" of each live setting not in force. */
  16: optional list<string> config_errors = []
  /** The node's monotonic clock at the answer; echoed in Poll.heard_us. */
  17: optional i64 clock_us = 0
  /** Distributor: latencies of storage nodes that it has called recently. */
  18: optional list<NodeLatency> latencies = []
  /** Name that the process was started as, "storage.2"; set also in a refusal. Empty: its version does not report
   *  it. */
  19: optional string node = ""
  /** With Poll.wants_settings: "name=value=source" of each setting, without the live configuration. The source is
   *  "file" (configuration file) or empty (built in). */
  20: optional list<string> settings = []
  /** Storage node: 0 normal, 1 warns, 2 throttles, 3 refuses puts, 4 refuses all writes but removes. */
  21: optional u32 space_stage = 0
  /** Storage node: measured disk use and its limit; empty in the normal stage. */
  22: optional string space = ""
  /** Distributor: buckets whose merges have failed several times in a row. */
  23: optional u64 buckets_failing = 0
  /** Distributor: the newest of these failures. */
  24: optional string failing = ""
  /** Distributor: buckets for which the cluster state has no storage node. */
  25: optional u64 buckets_unplaced = 0
  /** Distributor: buckets that are served with fewer current replicas than wanted. Buckets that wait for a node in
   *  maintenance count here and not as out of sync. */
  26: optional u64 buckets_under_replicated = 0
  /** Distributor: buckets of which storage nodes are asked since a short time, after a change of the cluster state.
   *  Operations on them wait. They count in `buckets_out_of_sync`, too, and not in `buckets_unavailable`. */
  27: optional u64 buckets_collecting = 0
  /** Names of what the node's program can do beyond earlier versions (docs/operating/upgrade.md). The cluster state
   *  lists those that all serving nodes announce ("features:forget"). */
  28: optional list<string> features = []
  /** Storage node: random number of its folder (storage/FORMAT.md, "Identity"). 0: its version does not report it, or
   *  it keeps no files. */
  29: optional u64 folder_id = 0
  /** Storage node: the cluster that the folder belongs to; 0: none yet. */
  30: optional u64 folder_cluster = 0
  /** Storage node: the folder held data when it got its number, because an earlier version had filled it. */
  31: optional bool folder_adopted = false
  /** Storage node: writes or background work that fail at present, and why; empty: none. */
  32: optional string fault = ""
  /** Storage node: earlier processes of it (their `incarnation`) whose acknowledged writes it has, every one: since the
   *  oldest of them the folder is the same and the machine has not been started again. */
  33: optional list<u64> kept_from = []
}

/**
 * Adds document types or replaces those of the same name. Any distributor accepts it; the fleet controller decides it.
 */
struct DeploySchemas {
  /** Each the text of a .sd file. */
  1: optional list<string> schemas = []
  /** Fields and struct members whose stored values may be lost: "song.title". A change that makes stored values of any
   *  other field unreadable is refused. */
  2: optional list<string> may_drop = []
}

struct DeploySchemasReply {
  1: optional Status status
  2: optional u64 schema_version = 0
  3: optional list<string> warnings = []
}

struct GetStatus {
}

struct NodeStatus {
  /** "storage.2" */
  1: optional string node = ""
  2: optional string address = ""
  /** "up", "down", ... */
  3: optional string state = ""
  4: optional string reason = ""
  /** The node's last answer to a poll. */
  5: optional PollReply last
  /** Time since that answer, in microseconds; -1: there was none. */
  6: optional i64 answered_us_ago = -1
  /** State that an operator has set: "retired: reason (who)"; empty: none. */
  7: optional string wanted = ""
  /** Storage node: its group in the distribution; empty: it is in no group. */
  8: optional string group = ""
  /** Storage node: its relative weight in the placement. */
  9: optional string capacity = ""
  /** Storage node: why it is marked as slow; empty: it is not marked. */
  10: optional string slow = ""
  /** Storage node: time spent in maintenance so far; -1: it is not in maintenance. */
  11: optional i64 maintenance_us = -1
  /** Storage node in maintenance: time until it counts as down; -1: there is no limit, or it is not in maintenance. */
  12: optional i64 maintenance_left_us = -1
}

struct GetStatusReply {
  1: optional Status status
  2: optional ClusterInfo info
  3: optional list<NodeStatus> nodes = []
  /** Time of the newest line in the cluster's history; 0: there is none. */
  4: optional i64 changed_unix_us = 0
}

// ---------------------------------------------------------------------------------------------------------------------
// Operation of a cluster: a client to any distributor, which asks the fleet controller (C++: operator_messages.h)

enum NodeAction {
  UNKNOWN = 0,
  /** Withdraws an earlier maintenance, retire or down. */
  UP = 1,
  /** The node is away for a short time, and its buckets are not replicated elsewhere. */
  MAINTENANCE = 2,
  /** The node goes on serving while its buckets move to other nodes. */
  RETIRE = 3,
  DOWN = 4,
  /** Adds a new node under the next free index. */
  ADD = 5,
  /** Takes the node out of the distribution; only if it is retired and empty. */
  REMOVE = 6,
  /** Another process takes over the node's index. */
  REPLACE = 7,
  /** Sets the node's relative weight in the placement. */
  CAPACITY = 8,
  /** Only checks whether the node may be stopped safely. */
  STOP = 9,
  /** For the whole cluster: moves single buckets so that all nodes are equally full. */
  BALANCE = 10,
  /** Gives up the data of a storage node that came back without it (NodeStatus.lost). */
  ACCEPT_LOSS = 11,
}

/** The data that a change of nodes would move. */
struct MovementPlan {
  1: optional u64 buckets_total = 0
  /** Distribution buckets that get at least one new replica. */
  2: optional u64 buckets_moved = 0
  3: optional u64 replicas_moved = 0
  /** Estimated from the reports of the storage nodes. */
  4: optional u64 bytes = 0
  /** Estimated duration in seconds. */
  5: optional u64 duration_s = 0
  6: optional list<string> notes = []
}

/** A change of nodes by an operator. Any distributor accepts it; the fleet controller decides. */
struct ChangeNodes {
  1: optional NodeAction action = NodeAction.UNKNOWN
  /** Names, "storage.2". Add: "storage" or "distributor". */
  2: optional list<string> nodes = []
  /** Add, replace: address of the process. */
  3: optional string address = ""
  /** Add of a storage node: name of its group; empty: the only group. */
  4: optional string group = ""
  /** Add, capacity: relative weight; empty: 1. */
  5: optional string capacity = ""
  6: optional string reason = ""
  /** The operator, for the history. */
  7: optional string who = ""
  8: optional bool dry_run = false
  /** Do it in spite of refusals that can be overridden. */
  9: optional bool force = false
  /** Balance: largest allowed max/mean of bytes. Empty: 1.02; "off": drop all exceptions. */
  10: optional string balance_to = ""
  /** Do it only if GetStatusReply.changed_unix_us still equals `unchanged_since_us`; TEST_AND_SET_FAILED otherwise. So
   *  a delayed request that its sender has given up cannot undo later changes. */
  11: optional bool if_unchanged = false
  12: optional i64 unchanged_since_us = 0
}

struct ChangeNodesReply {
  1: optional Status status
  /** Reasons why the change is refused. Empty: it was done, or would be done (dry_run). Wrong input is an error in
   *  `status` instead. */
  2: optional list<string> refusals = []
  3: optional list<string> warnings = []
  /** Names of the nodes that were changed or added. */
  4: optional list<string> nodes = []
  /** Cluster state in force at the decision; the change takes effect in a later one. */
  5: optional u64 state_version = 0
  6: optional MovementPlan plan
}

/** One setting of the live configuration. */
struct Setting {
  1: optional string name = ""
  /** "integer", "bytes", "duration", "ratio", "bool" or the choices, "a|b". */
  2: optional string type = ""
  /** With its unit, as an operator types it; empty: from the configuration file. */
  3: optional string default_value = ""
  4: optional string min = ""
  5: optional string max = ""
  /** Value in the live configuration; empty: the setting is not in it. */
  6: optional string value = ""
  7: optional string used_by = ""
  8: optional string meaning = ""
  /** Value in force on most of the nodes that use the setting; if no node has reported it, the live value or
   *  default. */
  9: optional string in_force = ""
  /** Source of `in_force`: "live configuration", "configuration file" or "built in". */
  10: optional string source = ""
  /** Nodes with another value in force: "storage.1: 32MiB (configuration file)". */
  11: optional list<string> elsewhere = []
}

struct ConfigChange {
  1: optional u64 version = 0
  2: optional i64 unix_us = 0
  3: optional string who = ""
  /** "name=value" of each setting in this version that is not at its default. */
  4: optional list<string> values = []
}

/** The settings, what they are and were. */
struct GetConfig {
}

struct GetConfigReply {
  1: optional Status status
  2: optional u64 config_version = 0
  3: optional list<Setting> settings = []
  /** Oldest first. */
  4: optional list<ConfigChange> versions = []
  /** Nodes that have not applied config_version yet. */
  5: optional list<string> waiting = []
  /** "storage.1: name: why" of each value that a node has refused. */
  6: optional list<string> errors = []
}

/** Changes settings of the live configuration, all of them or none. */
struct ChangeConfig {
  /** "name=value". */
  1: optional list<string> assignments = [] (fjord.name = "set")
  /** Names of settings that return to their defaults. */
  2: optional list<string> unset = []
  /** Version whose settings are restored; 0: none. */
  3: optional u64 revert_to = 0
  /** Restore the settings before the last change. */
  4: optional bool revert = false
  5: optional string who = ""
  6: optional bool dry_run = false
  /** Change it only if the live configuration still has `version`; TEST_AND_SET_FAILED otherwise. So a delayed request
   *  that its sender has repeated cannot undo later changes. */
  7: optional bool if_version = false
  8: optional u64 version = 0
}

struct ChangeConfigReply {
  /** INVALID_ARGUMENT names the setting, its value and valid values; then nothing is changed. */
  1: optional Status status
  2: optional u64 config_version = 0
  /** "name: old -> new". */
  3: optional list<string> changes = []
}

/** One line of the cluster's history. */
struct StateChange {
  1: optional u64 version = 0
  2: optional u64 term = 0
  3: optional i64 unix_us = 0
  /** When the state became active; 0: it did not, or the line is not about a state. */
  4: optional i64 active_unix_us = 0
  5: optional string what = ""
  6: optional string why = ""
  7: optional string who = ""
}

/** The newest `max` lines of the history (0: all that is kept), and the state of the publication. */
struct GetHistory {
  /** Number of lines, counted from the newest; 0: all that are kept. */
  1: optional u32 max = 0
}

struct GetHistoryReply {
  1: optional Status status
  /** Oldest first. */
  2: optional list<StateChange> changes = []
  3: optional u64 term = 0
  4: optional string leader = ""
  5: optional ClusterInfo info
  /** Why the pending state is not active yet; empty: nothing is pending. */
  6: optional string waits_for = ""
}

// ---------------------------------------------------------------------------------------------------------------------
// Balancing by load: a client to any distributor, which asks the fleet controller (C++: operator_messages.h)

enum BalanceAction {
  UNKNOWN = 0,
  /** Loads of the nodes, the hottest buckets, what the balancer is about to do. */
  STATUS = 1,
  /** A plan from the loads of the last round. */
  PLAN = 2,
  /** Carries out `moves`, which were planned on `state_version`. */
  APPLY = 3,
  /** Makes the table of overrides what it was before `step`. */
  REVERT = 4,
  /** The steps that are kept. */
  HISTORY = 5,
  /** The loads of all buckets. */
  SLICES = 6
}

/** One replica of one bucket goes to another node, or a part of the bucket's reads does. */
struct BalanceMove {
  1: optional u64 bucket = 0
  2: optional NodeIndex source = 0
  3: optional NodeIndex target = 0
  /** Thousandths of all reads of the bucket; 0: the replica itself moves. */
  4: optional u32 read_permille = 0
  /** Bytes that are copied. */
  5: optional u64 bytes = 0
  /** Load that leaves the source, per second. */
  6: optional u64 load = 0
  7: optional string reason = ""
}

struct BalancePlan {
  /** Cluster state that the plan is made on. It can be carried out in this state only. */
  1: optional u64 state_version = 0
  2: optional string algorithm = ""
  3: optional list<BalanceMove> moves = []
  4: optional u64 bytes = 0
  /** Estimate. */
  5: optional u64 duration_s = 0
  /** Load of the hottest node over the mean, in thousandths. */
  6: optional u32 imbalance_before = 0
  7: optional u32 imbalance_after = 0
  /** Rows that the table of overrides will have. */
  8: optional u32 rows = 0
  /** What was left out, and why. */
  9: optional list<string> notes = []
  /** The plan levels the bytes of a sample, before the documents are put. */
  10: optional bool is_initial = false
}

/** Bytes of the documents of a sample in one bucket. */
struct SampledBucket {
  /** First 16 bits of the bucket. */
  1: optional u64 bucket = 0
  2: optional u64 bytes = 0
}

/** A storage node as the balancer sees it. Loads are per second, in the unit of BalanceReply.unit. */
struct BalanceNode {
  1: optional NodeIndex node = 0
  2: optional u64 load = 0
  /** Thousandths of the mean, by capacity. */
  3: optional u32 over_mean = 0
  4: optional u64 reads = 0
  5: optional u64 writes = 0
  6: optional u64 bytes = 0
  7: optional u32 capacity_permille = 1000
  /** Why nothing is moved onto it, or why its loads are not known; empty: no reason. */
  8: optional string note = ""
  /** Operations that the controller has counted, of which process, and what that process had counted before. */
  9: optional u64 counted = 0
  10: optional u64 incarnation = 0
  11: optional u64 counted_before = 0
}

struct BalanceSlice {
  1: optional u64 bucket = 0
  2: optional u64 load = 0
  3: optional u64 reads = 0
  4: optional u64 writes = 0
  /** Of one replica. */
  5: optional u64 bytes = 0
  6: optional list<NodeIndex> nodes = []
  /** Thousandths of the reads that each of `nodes` answered. */
  7: optional list<u32> read_permille = []
  /** Why it is not moved now; empty: no reason. */
  8: optional string why_not = ""
}

/** One row of the table of overrides: the bucket is on `target` in place of `source`. */
struct BalanceRow {
  1: optional u64 bucket = 0
  2: optional NodeIndex source = 0
  3: optional NodeIndex target = 0
}

/** The part of a bucket's reads that one of its replicas serves, in thousandths. */
struct BalanceReads {
  1: optional u64 bucket = 0
  2: optional NodeIndex node = 0
  3: optional u32 permille = 0
}

/** A change of the table of overrides. */
struct BalanceStep {
  1: optional u64 step = 0
  /** "load", "bytes" or "revert". */
  2: optional string kind = ""
  3: optional i64 unix_us = 0
  /** Cluster state that it was made on; the table is in the next one. */
  4: optional u64 state_version = 0
  5: optional u64 round = 0
  6: optional u32 bits = 0
  7: optional list<BalanceRow> removed = []
  8: optional list<BalanceRow> added = []
  9: optional list<BalanceMove> moves = []
  10: optional u64 bytes = 0
  /** Bytes of all replicas then. */
  11: optional u64 bytes_total = 0
  12: optional u32 imbalance_before = 0
  13: optional u32 imbalance_after = 0
  14: optional string who = ""
  15: optional string why = ""
  /** For a revert: the oldest step that it takes back. */
  16: optional u64 reverts = 0
  17: optional list<BalanceReads> reads_removed = []
  18: optional list<BalanceReads> reads_added = []
}

/** A question to the balancer, or an order. */
struct Balance {
  1: optional BalanceAction action = BalanceAction.UNKNOWN
  /** Plan: another algorithm than the one in force. */
  2: optional string algorithm = ""
  /** Apply: the state that the plan was made on. */
  3: optional u64 state_version = 0
  4: optional list<BalanceMove> moves = []
  /** Revert. */
  5: optional u64 step = 0
  /** Status: the number of slices that are shown. */
  6: optional u32 max = 0
  7: optional bool dry_run = false
  8: optional string who = ""
  9: optional string reason = ""
  /** Plan: a sample of documents that are to be put. The plan levels their bytes in place of the loads. */
  10: optional list<SampledBucket> sample = []
  /** Apply: the plan is of a sample. No growth of the imbalance takes it back, as documents are put afterwards. */
  11: optional bool is_initial = false
}

struct BalanceReply {
  1: optional Status status
  /** Why an order is refused; empty: it is not. */
  2: optional list<string> refusals = []
  3: optional string mode = ""
  4: optional string algorithm = ""
  /** What loads are: "time" (nanoseconds a second) or "operations" (thousandths of one a second). */
  5: optional string unit = ""
  6: optional u64 round = 0
  7: optional i64 round_us = 0
  /** Time since the last round ended; negative: there was none. */
  8: optional i64 round_age_us = -1
  9: optional u32 imbalance = 0
  /** What the balancer is doing, for people. */
  10: optional string doing = ""
  /** Reasons why nothing is moved now. */
  11: optional list<string> waits_for = []
  12: optional u64 state_version = 0
  13: optional u32 bits = 0
  14: optional u32 rows = 0
  15: optional u32 rows_max = 0
  16: optional list<BalanceNode> nodes = []
  17: optional list<BalanceSlice> slices = []
  18: optional list<BalanceStep> steps = []
  19: optional BalancePlan plan
  /** Estimate of the seconds until the moves of the last step are done; 0: they are, or it is not known. */
  20: optional u64 seconds_left = 0
  21: optional string leader = ""
}

// ---------------------------------------------------------------------------------------------------------------------
// Visitors: client to storage node (C++: visitor_messages.h)

struct CreateVisitor {
  /** Random number chosen by the client; creating the same visitor again succeeds. */
  1: optional u64 visitor_id = 0
  /** Name of the visitor's code on the storage node, e.g. "dump". */
  2: optional string library = ""
  3: optional list<Parameter> parameters = []
  4: optional list<BucketId> buckets = []
  5: optional string selection = ""
  6: optional bool ids_only = false
  /** 0: the server's default (1 MiB). */
  7: optional u32 docblock_bytes = 0
  /** Number of buckets read concurrently; 0: 1. */
  8: optional u32 buckets_at_once = 0
  /** Lowest schema version that the visitor works with. */
  9: optional u64 schema_version = 0
  /** Fields that the visitor receives, as in Operation.field_set; empty: all. */
  10: optional string field_set = ""
  /** Earliest timestamp of the versions to visit. */
  11: optional u64 from_us = 0
  /** Latest timestamp of the versions to visit; 0: no limit. */
  12: optional u64 to_us = 0
  /** Visits remove entries as well, which have no content. The selection is evaluated on their ids alone. */
  13: optional bool include_removed = false
  /** Order in which visitors begin when there are too many. */
  14: optional Priority priority = Priority.DEFAULT
  /** Only documents in this part of the bucket tree, both ends included; 0 and 0: all of it. */
  15: optional u64 first_position = 0
  16: optional u64 last_position = 0
  /** The visitor receives header parts as they are stored, and no bodies. */
  20: optional bool header_only = false
  /** The visitor reads each bucket as it was when the visitor opened it. */
  21: optional bool snapshot = false
  /** The node refuses a damaged bucket (NOT_READY). The bucket was intact when its distributor named the node, so it
   *  may have lost documents since. */
  22: optional bool refuses_damaged = false
  /** Buckets that the distributor named as damaged; these are not refused. */
  23: optional list<BucketId> even_damaged = []
  /** Number of the visit or job. Its visitors share the group's part of the node's time. 0: visitors without a number
   *  are one group. */
  24: optional u64 group = 0
  /** Weight of the group. Groups of one priority get time in proportion to their weights. 0: the default, 10. */
  25: optional u32 weight = 0
}

struct CreateVisitorReply {
  1: optional Status status
}

/** A message of a visitor to its client. */
struct VisitorEvent {
  /** Number of the event; from 1, without gaps. */
  1: optional u64 sequence = 0
  2: optional BucketId bucket = 0
  /** Documents of that bucket; empty if the event has none. */
  3: optional binary docblock = ""
  /** The bucket was read to its end, or `status` says why not. */
  4: optional bool bucket_done = false
  5: optional Status status
  /** With bucket_done: the visitor's result of the bucket (MapReduce: TaskReport). */
  6: optional binary result = ""
  /** With bucket_done: number of documents in the bucket. */
  7: optional u64 documents_read = 0
  /** With bucket_done: number of documents and removes given to the visitor. */
  8: optional u64 documents_matched = 0
}

/**
 * Waits for events, at most `wait_us`. The node drops events up to `acknowledged` and sends later ones again, so a lost
 * answer loses no event.
 */
struct VisitorNext {
  1: optional u64 visitor_id = 0
  2: optional u64 acknowledged = 0
  3: optional u32 max_bytes = 0
  4: optional i64 wait_us = 0
}

struct VisitorNextReply {
  /** NOT_FOUND: the node does not know the visitor, or does not know it any more. */
  1: optional Status status
  2: optional list<VisitorEvent> events = []
  /** These are the last events. */
  3: optional bool finished = false
  /** Processor time spent on the visitor so far, also in unfinished buckets; 0: not measured. */
  4: optional u64 processor_us = 0
  /** Documents that matched and were visited so far in buckets whose end was not told yet. */
  5: optional u64 documents_open = 0
}

struct DestroyVisitor {
  1: optional u64 visitor_id = 0
}

struct DestroyVisitorReply {
  1: optional Status status
}

// ---------------------------------------------------------------------------------------------------------------------
// Subscriptions: client to storage node (C++: visitor_messages.h)

/** A subscriber's position in one bucket, and the bound up to which it may read. */
struct ChangesWanted {
  1: optional BucketId bucket = 0
  /** BucketNode.epoch; the answer is NOT_READY if the replica has another epoch. */
  2: optional u64 epoch = 0
  /** BucketNode.stable_us. */
  3: optional u64 until_us = 0
  /** The position: the subscriber has received the changes with timestamps up to it. */
  4: optional u64 after_us = 0
  /** Epoch of the last answer. If epoch and checksum are both different, the bucket is given from its beginning. */
  5: optional u64 seen_epoch = 0
  /** BucketChanges.checksum of the last answer. */
  6: optional u64 seen_checksum = 0
  /** BucketChanges.horizon_us of the last answer. */
  7: optional u64 seen_horizon_us = 0
}

struct BucketChanges {
  1: optional BucketId bucket = 0
  2: optional Status status
  /** Entries by rising timestamp; a removed one is gone or may no longer match. */
  3: optional binary docblock = ""
  /** The new position. */
  4: optional u64 after_us = 0
  /** Sum over all entries up to the position and over all dropped entries. */
  5: optional u64 checksum = 0
  /** There are further changes up to `until_us`. */
  6: optional bool more = false
  /** The bucket is given from its beginning: earlier answers may have had gaps. */
  7: optional bool again = false
  /** The replica has dropped removes that the subscriber may not have received. */
  8: optional bool resync = false
  /** The replica may have dropped removes before this time; 0: none. */
  9: optional u64 horizon_us = 0
}

/** Reads the changes of buckets after a position. A document that changed again after `until_us` is left out. */
struct ReadChanges {
  1: optional list<ChangesWanted> buckets = []
  2: optional string selection = ""
  3: optional string field_set = ""
  /** 0: the server's default. */
  4: optional u32 max_bytes = 0
  5: optional u64 schema_version = 0
}

struct ReadChangesReply {
  1: optional Status status
  /** The buckets that were read, in order; the caller requests the rest again. */
  2: optional list<BucketChanges> buckets = []
}

// ---------------------------------------------------------------------------------------------------------------------
// Jobs: client to distributor (C++: job_messages.h)

/** The way of tuples from map to reduce. */
enum Shuffle {
  /** The system chooses. */
  AUTO = 0,
  /** As documents in the store. The results are documents, too. */
  STORE = 1,
  /** In the visitors' answers to the process that runs the job. It reduces them and holds the results. */
  DIRECT = 2,
}

/**
 * The document type and ids under which a pass puts its rows as lasting documents. The id of a row is made of
 * namespace, type, name and group.
 */
struct RowTarget {
  /** Document type; empty: rows do not become documents. */
  1: optional string type = ""
  /** Namespace; empty: "results". */
  2: optional string name_space = ""
  /** Jobs with the same name overwrite each other's documents; empty: the id of the job. */
  3: optional string name = ""
}

/** One MapReduce of a job with several passes, or of a job that puts documents. */
struct JobPass {
  1: optional string application = ""
  /** Input type of the first pass. Later passes: the type that follows, or empty. */
  2: optional string document_type = ""
  3: optional string selection = ""
  4: optional list<Parameter> parameters = []
  5: optional RowTarget into
}

struct JobSpec {
  1: optional string application = ""
  2: optional string document_type = ""
  3: optional string selection = ""
  4: optional list<Parameter> parameters = []
  /** Namespace of the results; empty: "results". */
  5: optional string output_namespace = ""
  /** Number of output buckets; 0: the system chooses. */
  6: optional u32 output_buckets = 0
  /** Map tasks at a time on a storage node; 0: the system chooses. */
  7: optional u32 visitors_per_node = 0
  8: optional Shuffle shuffle = Shuffle.AUTO
  /** Limits and throttle, which change how the job runs and not what it computes (docs/design/0010-durable-jobs.md). A
   *  setting that is not listed has its default. */
  9: optional list<Parameter> settings = []
  /** Read only what changed since the last equal job, as far as its partials are kept (docs/design/0011-incremental-
   *  refresh.md). */
  10: optional bool incremental = false
  /** The passes of a chain; each pass after the first reads the rows of the previous one (docs/design/0012-chained-
   *  passes.md). With passes the members from `application` to `parameters` are empty, so that a distributor of an
   *  older version refuses the job instead of running a part of it. */
  11: optional list<JobPass> passes = []
}

/** A document on which the map function of a job failed, with the error. */
struct DeadLetter {
  1: optional string document = ""
  2: optional string error = ""
}

enum JobPhase {
  UNKNOWN = 0,
  QUEUED = 1,
  MAP = 2,
  REDUCE = 3,
  CLEAN_UP = 4,
  DONE = 5,
  FAILED = 6,
  CANCELLED = 7,
  /** Rows become documents; after REDUCE. */
  PUT = 8,
}

/** The counts of a finished pass. The fields are those of JobStatus. */
struct PassStatus {
  1: optional u64 map_tasks = 0
  2: optional u64 map_tasks_done = 0
  3: optional u64 reduce_tasks = 0
  4: optional u64 reduce_tasks_done = 0
  5: optional u64 documents_read = 0
  6: optional u64 bytes_read = 0
  7: optional u64 tuples = 0
  8: optional u64 tuple_documents = 0
  9: optional u64 results = 0
  10: optional u64 tasks_repeated = 0
  11: optional u64 spilled_bytes = 0
  12: optional u64 sent_bytes = 0
  13: optional u64 dead_letters = 0
  14: optional u64 documents_put = 0
  15: optional u64 documents_removed = 0
  16: optional u64 documents_reused = 0
  17: optional Shuffle shuffle = Shuffle.AUTO
}

struct JobStatus {
  1: optional string job_id = ""
  2: optional JobSpec spec
  3: optional JobPhase phase = JobPhase.UNKNOWN
  4: optional Status error
  5: optional u64 map_tasks = 0
  6: optional u64 map_tasks_done = 0
  7: optional u64 reduce_tasks = 0
  8: optional u64 reduce_tasks_done = 0
  /** Input documents that matched, each counted once. */
  9: optional u64 documents_read = 0
  10: optional u64 bytes_read = 0
  /** Tuples emitted by map. */
  11: optional u64 tuples = 0
  /** Tuple documents put between map and reduce. */
  12: optional u64 tuple_documents = 0
  /** Result documents. */
  13: optional u64 results = 0
  14: optional u64 tasks_repeated = 0
  15: optional i64 submitted_unix_us = 0
  /** 0: not finished. */
  16: optional i64 finished_unix_us = 0
  17: optional u32 output_buckets = 0
  /** Location of output bucket 0. */
  18: optional u64 output_base = 0
  /** The shuffle in use; AUTO until the job has begun. */
  19: optional Shuffle shuffle = Shuffle.AUTO
  /** Bytes written to disk by tasks whose groups did not fit into memory. */
  20: optional u64 spilled_bytes = 0
  21: optional bool paused = false
  /** Process that runs or ran the job, as "distributor.1". */
  22: optional string owner = ""
  /** Rises when another process takes the job over; 0: the job has no record (yet). */
  23: optional u64 epoch = 0
  /** Reported by the process that runs the job; false: read from the job's record. */
  24: optional bool live = false
  /** Number of documents on which map failed; included in documents_read. */
  25: optional u64 dead_letters = 0
  /** Only with ListJobs.dead_letters. */
  26: optional list<DeadLetter> dead_letter_list = []
  /** Settings in force. */
  27: optional list<Parameter> settings = []
  /** The resource or limit that the job waits for most. */
  28: optional string bound_by = ""
  /** Estimated time until the phase ends; 0: no estimate. */
  29: optional i64 left_us = 0
  /** Estimated error of left_us. */
  30: optional i64 left_error_us = 0
  /** Bytes of tuples that tasks put or sent, without repeated tasks. */
  31: optional u64 sent_bytes = 0
  /** Time that tasks spent in map and reduce. */
  32: optional u64 busy_us = 0
  /** Number of times that another process has taken the job over. */
  34: optional u64 taken_over = 0
  // From here on for distributors that may have to go on with the job.
  /** Revision of the job's record; rises with every change of it. */
  35: optional u64 revision = 0
  /** Incarnation of the process that owns the job. */
  36: optional u64 owner_id = 0
  /** Restart count of map; part of the tuple documents' ids. */
  37: optional u32 run = 0
  /** Distribution bits under which map began. */
  38: optional u32 bits = 0
  /** In phase CLEAN_UP: the phase that the job ends with. */
  39: optional JobPhase outcome = JobPhase.UNKNOWN
  40: optional bool cancel_wanted = false
  /** Visit cursor of map, with the buckets that the counts here include. */
  41: optional string resume = ""
  /** Number of tuple documents of each destination, separated by commas. */
  42: optional string expected = ""
  /** Part of documents_read that comes from partials of an earlier job. */
  43: optional u64 documents_reused = 0
  /** Counts of the finished passes. The counts above are those of the current or last pass, except times, dead letters
   *  and busy_us. */
  44: optional list<PassStatus> passes_done = []
  /** Number of rows that became documents (RowTarget). */
  45: optional u64 documents_put = 0
  /** Number of documents of the RowTarget removed because they have no row. */
  46: optional u64 documents_removed = 0
  /** Value of `run` when the pass began. */
  47: optional u32 pass_run = 0
  /** Version of a plugin's application; the same for all tasks. */
  48: optional string application_version = ""
  /** Processor time of tasks, part of busy_us; 0: the job has no cpu_max. */
  49: optional u64 processor_us = 0
  /** Application versions of a job with several passes, one for each pass, in place of application_version. */
  50: optional list<string> application_versions = []
  /** When the results are removed; 0: never, or there are none. */
  51: optional i64 results_until_unix_us = 0
  /** The results have been removed, or are being removed. */
  52: optional bool results_removed = false
}

struct SubmitJob {
  /** Chosen by the client, so that a repeated call does not start a second job. */
  1: optional string job_id = ""
  2: optional JobSpec spec
}

struct SubmitJobReply {
  1: optional Status status
  2: optional string job_id = ""
}

/** Lists the jobs that the receiver runs or ran. With `records` also all other jobs that have a record. */
struct ListJobs {
  /** Empty: all jobs. */
  1: optional string job_id = ""
  /** With a job_id: time to wait for the end of the job before the reply. */
  2: optional i64 wait_us = 0
  /** With a job_id: index of the first result to return from memory. */
  3: optional u64 results_from = 0
  /** Approximate size of the returned results, at least one result; 0: none. */
  4: optional u32 results_bytes_max = 0
  /** List also jobs that the receiver does not run, from their records. */
  5: optional bool records = false
  /** With a job_id: return JobStatus.dead_letter_list. */
  6: optional bool dead_letters = false
  /** Return results as ListJobsReply.packed_results. A receiver that does not know this returns `results`. */
  7: optional bool packed = false
}

struct ListJobsReply {
  1: optional Status status
  2: optional list<JobStatus> jobs = []
  /** Results as key and value, by rising key (ListJobs.results_from). */
  3: optional list<Parameter> results = []
  4: optional bool more_results = false
  /** With ListJobs.packed, instead of `results`: the key and the value of each result, each after its length as a
      varint. */
  5: optional binary packed_results = ""
}

struct CancelJob {
  1: optional string job_id = ""
}

struct CancelJobReply {
  1: optional Status status
}

enum JobAction {
  UNKNOWN = 0,
  PAUSE = 1,
  RESUME = 2,
  CANCEL = 3,
  SET = 4,
  /** Removes an ended job: its record, its results and everything else it has stored. */
  REMOVE = 5,
  /** Removes the results of an ended job. */
  REMOVE_RESULTS = 6,
}

struct ControlJob {
  1: optional string job_id = ""
  2: optional JobAction action = JobAction.UNKNOWN
  /** Set: the settings to change. */
  3: optional list<Parameter> settings = []
  /** Change the job's record if the receiver does not run the job. */
  4: optional bool records = false
}

struct ControlJobReply {
  /** NOT_FOUND if the receiver does not run the job and ControlJob.records is false. */
  1: optional Status status
}

// ---------------------------------------------------------------------------------------------------------------------
// Searches: a client to any distributor, which asks storage nodes (C++: search_messages.h)

/** A place that an ad has won, or could win. */
struct SearchHit {
  1: optional u64 advertiser = 0
  /** bid_micros * quality_ppm: higher scores come first. */
  2: optional i64 score = 0
  /** How well the ad fits who searches, in millionths; about a million for an ordinary one. */
  3: optional i64 quality_ppm = 0
  4: optional i64 bid_micros = 0
  /** What a click costs. 0 in answers of storage nodes. */
  5: optional i64 price_micros = 0
  /** Ids of the documents. */
  6: optional string keyword = ""
  7: optional string ad = ""
  8: optional string title = ""
  /** The words of the keyword. */
  9: optional string matched = ""
  /** Global ids of the documents: equal scores are ordered by them. */
  10: optional GlobalId keyword_gid = ""
  11: optional GlobalId ad_gid = ""
}

/**
 * Asks for the ads whose keywords match a query. Each slice of the documents (a distribution bucket) is searched on one
 * storage node that is in sync.
 */
struct Search {
  1: optional string query = ""
  /** Who searches: device, language, region, hour, age, interests. */
  2: optional list<Parameter> context = []
  /** Number of places, at most 100. */
  3: optional u32 limit = 4
  /** Time limit; what is not searched by then is missing in the answer. 0: 500 ms. */
  4: optional u32 timeout_ms = 0
  /** True: the answer shows every write that was acknowledged before. False: those acknowledged 50 ms before. */
  5: optional bool session = false
  /** True: the answer names the storage nodes and what each did. */
  6: optional bool explain = false
}

/** Pages of 4 KiB that the index of a storage node has for keywords that begin with a word. */
struct WordPages {
  1: optional string word = ""
  2: optional u32 pages = 0
}

/** How far a broker has heard of the changes of a cache: what entered and left it is numbered from 0. */
struct CacheHeard {
  1: optional u32 stripe = 0
  /** Start of the process that has the cache; numbers of another one mean nothing. */
  2: optional u64 incarnation = 0
  3: optional u64 up_to = 0
}

/** What entered and left the cache of a stripe since a broker last heard of it. */
struct CacheReport {
  1: optional u32 stripe = 0
  2: optional u64 incarnation = 0
  /** True: changes before these are not kept, so what the broker believed of this cache is to be forgotten. */
  3: optional bool forget = false
  /** Number of the change behind the last one of this list. */
  4: optional u64 up_to = 0
  /** In order; for each twice the number of the word, and 1 more if it entered. */
  5: optional list<u64> changes = []
}

/** What one storage node did for a search. */
struct SearchNode {
  1: optional NodeIndex node = 0
  2: optional u32 asked = 0
  /** Slices that it searched; it holds no up-to-date replica of the others. */
  3: optional u32 searched = 0
  4: optional u64 candidates = 0
  5: optional u64 scanned = 0
  /** Time from the question to the answer. */
  6: optional i64 took_us = 0
  /** Time of the search itself. */
  7: optional i64 search_us = 0
  /** Why it searched less than it was asked for. */
  8: optional Status status
  /** Lists of keywords that it found in its cache, and that it read. */
  9: optional u32 list_hits = 0
  10: optional u32 list_misses = 0
  /** Pages of the lists that it used, and of those that it read. */
  11: optional u64 pages = 0
  12: optional u64 pages_read = 0
  /** Its load, in thousandths of what it can do. */
  13: optional u32 utilisation_permille = 0
  /** The class of replicas that it was asked as, its share in thousandths, and the votes of the query against it: pages
   *  that it was expected to read, in thousandths. */
  14: optional u32 replica_class = 0
  15: optional u32 share_permille = 0
  16: optional u64 vote_milli = 0
}

struct SearchReply {
  /** OK also if slices are missing. */
  1: optional Status status
  /** Best first. */
  2: optional list<SearchHit> hits = []
  /** Cluster state under which each slice was searched. */
  3: optional u64 state_version = 0
  /** Number of slices of the cluster, and of those that were searched. If both are equal, the answer is complete. */
  4: optional u32 slices = 0
  5: optional u32 slices_searched = 0
  /** Why slices are missing; OK if none is. */
  6: optional Status missing
  /** Keywords that matched, before the auction. */
  7: optional u64 candidates = 0
  8: optional i64 took_us = 0
  /** The forms of the query that were searched. */
  9: optional list<string> variants = []
  10: optional list<SearchNode> nodes = []
  /** How the replicas were chosen, for people; with Search.explain. */
  11: optional string choice = ""
  /** The most pages that a storage node has for each word of the query; with Search.explain. */
  12: optional list<WordPages> words = []
}

/** Asks a storage node to search slices. */
struct SearchSlices {
  /** The slices are those of this cluster state. */
  1: optional u64 state_version = 0
  2: optional u32 bits = 0
  /** A bit for each distribution bucket, from the lowest bit of the first byte: 1 for those to search. */
  3: optional binary slices = ""
  /** Forms of the query: folded words, a space between two. */
  4: optional list<string> variants = []
  5: optional list<Parameter> context = []
  /** Number of advertisers to answer with: one more than places, because a price depends on the next one. */
  6: optional u32 hits_max = 0
  /** Keywords that bid less do not take part. */
  7: optional i64 reserve_micros = 0
  8: optional bool session = false
  /** Time that the sender waits. 0: no limit. */
  9: optional i64 timeout_us = 0
  /** True: the answer has the changes of the caches that are not in `heard`. */
  10: optional bool with_cache = false
  11: optional list<CacheHeard> heard = []
  /** True: the answer has the pages of each word. */
  12: optional bool with_words = false
}

struct SearchSlicesReply {
  1: optional Status status
  /** Cluster state in use. */
  2: optional u64 state_version = 0
  /** The slices that were searched, as in the question. */
  3: optional binary searched = ""
  /** Why others were not. */
  4: optional Status refused
  5: optional list<SearchHit> hits = []
  6: optional u64 candidates = 0
  /** Keywords that were compared with the query. */
  7: optional u64 scanned = 0
  8: optional i64 search_us = 0
  /** As in SearchNode. */
  9: optional u32 list_hits = 0
  10: optional u32 list_misses = 0
  11: optional u64 pages = 0
  12: optional u64 pages_read = 0
  13: optional u32 utilisation_permille = 0
  /** Of the stripes with changes. */
  14: optional list<CacheReport> caches = []
  15: optional list<WordPages> words = []
}

// ---------------------------------------------------------------------------------------------------------------------
// Plugins: any client to storage nodes and distributors (C++: operator_messages.h)

struct PluginFunction {
  1: optional string name = ""
  2: optional string help = ""
  /** A MapReduce application; otherwise a visitor. */
  3: optional bool is_application = false
  /** Version of the application. */
  4: optional string version = ""
}

struct PluginLibrary {
  1: optional string file = ""
  /** Why the library is not used; empty: it is used. */
  2: optional string problem = ""
  3: optional list<PluginFunction> functions = []
}

/** Asks for the visitors and applications in the libraries of this node's plugin directory. */
struct ListPlugins {
}

struct ListPluginsReply {
  1: optional Status status
  2: optional list<PluginLibrary> libraries = []
}

// ---------------------------------------------------------------------------------------------------------------------
// Unhealthy buckets: an operator to distributors (C++: operator_messages.h)

enum BucketProblem {
  UNKNOWN = 0,
  /** Replicas are missing, differ or are being moved. Ends without an operator. */
  OUT_OF_SYNC = 1,
  /** A replica has lost entries and is repaired from an intact one. */
  DAMAGED = 2,
  /** All replicas have lost entries, and it is not known which. */
  LOST = 3,
  /** The bucket is not served: its newest documents may be on a node that is down. */
  UNAVAILABLE = 4,
}

struct UnhealthyBucket {
  1: optional BucketId bucket = 0
  2: optional BucketProblem kind = BucketProblem.UNKNOWN
  3: optional string reason = ""
  4: optional list<NodeIndex> members = []
  5: optional list<NodeIndex> damaged = []
  6: optional list<NodeIndex> catching_up = []
}

/**
 * Lists the unhealthy buckets that the receiver owns. The call keeps the name listTroubles. Errors: NOT_READY if the
 * receiver does not know its buckets yet.
 */
struct ListUnhealthyBuckets {
  /** Lowest kind to list; UNKNOWN: all. */
  1: optional BucketProblem at_least = BucketProblem.UNKNOWN
  2: optional u64 from_key = 0
  /** Largest number of buckets in the reply; 0: the receiver's default. */
  3: optional u32 max = 0
}

struct ListUnhealthyBucketsReply {
  1: optional Status status
  2: optional list<UnhealthyBucket> buckets = []
  /** ListUnhealthyBuckets.from_key of the next page; 0: this is the last page. */
  3: optional u64 next_key = 0
}

/**
 * Unsafe recovery of buckets whose replicas are all damaged: the remains become the content of the bucket. The reply
 * says that it has begun; when it is done, listTroubles does not list the bucket any more. After a change of the
 * cluster state the caller has to send the call again. Errors of a bucket: NOT_FOUND if the receiver does not own it,
 * INVALID_ARGUMENT if a replica is intact.
 */
struct AcceptLoss {
  1: optional list<BucketId> buckets = []
}

struct AcceptLossReply {
  1: optional Status status
  /** One for each bucket, in order. */
  2: optional list<Status> statuses = []
}

/**
 * The fleet controller asks a distributor which of its buckets could still be served without some storage nodes. The
 * receiver asks the remaining nodes what their replicas hold. Errors: NOT_READY if the receiver does not know its
 * buckets yet, WRONG_DISTRIBUTION if its cluster state has another version.
 */
struct CheckWithout {
  1: optional u64 state_version = 0
  /** Indexes of the storage nodes that would be missing. */
  2: optional list<NodeIndex> nodes = []
}

struct CheckWithoutReply {
  1: optional Status status
  /** Number of buckets that the receiver owns. */
  2: optional u64 buckets = 0
  /** Number of these that could not be served. */
  3: optional u64 unavailable = 0
  /** "bucket: why" of some of the unavailable ones. */
  4: optional list<string> reasons = []
  5: optional u64 state_version = 0
}

/**
 * A fleet controller without records rebuilds them from the reports of nodes: the newest cluster state, the schemas and
 * the live configuration. It asks the nodes of its configuration file and those that they name. Documents stay as they
 * are.
 */
struct RecoverState {
  1: optional bool dry_run = false
  /** Do it although some nodes do not answer. */
  2: optional bool force = false
  3: optional string who = ""
}

struct RecoverStateReply {
  1: optional Status status
  /** Reasons why nothing was recovered; empty: it was, or would be (dry_run). */
  2: optional list<string> refusals = []
  3: optional list<string> warnings = []
  /** What each node reported, one line for each. */
  4: optional list<string> found = []
  /** Text of the cluster state from which the cluster continues. */
  5: optional string state = ""
  6: optional string distribution = ""
  7: optional u64 state_version = 0
  /** Version of the next published state, above every version that a node may know. */
  8: optional u64 next_version = 0
  /** Highest term that a node has seen. */
  9: optional u64 term = 0
  10: optional u64 schema_version = 0
  /** Number of schemas. */
  11: optional u64 schemas = 0
  12: optional u64 config_version = 0
  /** Number of live settings. */
  13: optional u64 settings = 0
}

/** The role of a replica for the distributor that owns the bucket. */
enum ReplicaRole {
  UNKNOWN = 0,
  /** Member of the replica set: has every acknowledged write and is read. */
  MEMBER = 1,
  /** Receives every write, is not read, and becomes a member after a merge. */
  CATCHING_UP = 2,
  /** Not needed any more: it is checked for entries that members lack, then deleted. */
  OBSOLETE = 3,
  /** The storage node has the replica, and the distributor does not know of it. */
  UNLISTED = 4,
}

/** One replica of a bucket, as its storage node describes it. */
struct BucketReplica {
  1: optional NodeIndex node = 0
  2: optional ReplicaRole role = ReplicaRole.UNKNOWN
  /** The replica has lost entries and is not repaired yet. */
  3: optional bool damaged = false
  /** Why the fields below are unknown: the node is not up, does not answer, or does not have the replica
   *  (NOT_FOUND). */
  4: optional Status status
  5: optional BucketInfo info
  /** The replica set as stored on the node. */
  6: optional ReplicaSet replica_set
  /** With ShowBucket.id: status of the get of the document on this replica. NOT_FOUND: the replica does not have it. */
  7: optional Status document
  /** Timestamp of the document; with NOT_FOUND, of its remove entry (0: none). */
  8: optional u64 timestamp_us = 0
  /** Checksum of the document's header and body part; equal for equal content. */
  9: optional u64 checksum = 0
  /** The bucket as split on the node; may have more or fewer bits than the owner's. */
  10: optional BucketId bucket = 0
}

struct BucketView {
  1: optional BucketId bucket = 0
  /** UNKNOWN: the bucket is healthy. */
  2: optional BucketProblem problem = BucketProblem.UNKNOWN
  /** Why the bucket is unhealthy. */
  3: optional string reason = ""
  /** Members, primary first. */
  4: optional ReplicaSet replica_set
  /** Members in their order, then by node. */
  5: optional list<BucketReplica> replicas = []
}

/**
 * Returns what the receiver and all storage nodes that are up have of a bucket, of its parts or of the bucket that
 * contains it. Errors: WRONG_DISTRIBUTION if another distributor owns it; NOT_READY if the receiver does not know its
 * buckets yet or they change meanwhile; NOT_FOUND if there is no such bucket.
 */
struct ShowBucket {
  1: optional BucketId bucket = 0
  /** In place of `bucket`: a document id. The reply shows its bucket, and the document on each replica. */
  2: optional string id = ""
}

struct ShowBucketReply {
  1: optional Status status
  /** Index of the distributor that answers. */
  2: optional NodeIndex distributor = 0
  3: optional u64 state_version = 0
  4: optional list<BucketView> buckets = []
}

// ---------------------------------------------------------------------------------------------------------------------

/** For clients. Every distributor answers. */
service DistributorService {
  /** The cluster state, the addresses of all nodes and the schemas. Ask once, then follow `newer_info`. */
  GetClusterInfoReply getClusterInfo(1: GetClusterInfo request)
  /** Gets, puts and removes documents. */
  ExecuteReply execute(1: Execute request)
  ExecuteStrictReply executeStrict(1: ExecuteStrict request)
  GetBucketNodesReply getBucketNodes(1: GetBucketNodes request)
  DeploySchemasReply deploySchemas(1: DeploySchemas request)
  GetStatusReply getStatus(1: GetStatus request)
  SubmitJobReply submitJob(1: SubmitJob request)
  ListJobsReply listJobs(1: ListJobs request)
  CancelJobReply cancelJob(1: CancelJob request)
  ControlJobReply controlJob(1: ControlJob request)
  ChangeNodesReply changeNodes(1: ChangeNodes request)
  GetConfigReply getConfig(1: GetConfig request)
  ChangeConfigReply changeConfig(1: ChangeConfig request)
  GetHistoryReply getHistory(1: GetHistory request)
  ListPluginsReply listPlugins(1: ListPlugins request)
  ListUnhealthyBucketsReply listTroubles(1: ListUnhealthyBuckets request)
  AcceptLossReply acceptLoss(1: AcceptLoss request)
  CheckWithoutReply checkWithout(1: CheckWithout request)
  RecoverStateReply recoverState(1: RecoverState request)
  ShowBucketReply showBucket(1: ShowBucket request)
  BalanceReply balance(1: Balance request)
  SearchReply search(1: Search request)
}

/** For distributors, other storage nodes, and clients that visit. */
service StorageService {
  ApplyReply apply(1: Apply request)
  GetBucketInfoReply getBucketInfo(1: GetBucketInfo request)
  SetReplicaSetsReply setReplicaSets(1: SetReplicaSets request)
  MergeBucketReply mergeBucket(1: MergeBucket request)
  DeleteBucketsReply deleteBuckets(1: DeleteBuckets request)
  SplitBucketReply splitBucket(1: SplitBucket request)
  JoinBucketsReply joinBuckets(1: JoinBuckets request)
  FindGarbageReply findGarbage(1: FindGarbage request)
  GetLoadsReply getLoads(1: GetLoads request)
  ListEntriesReply listEntries(1: ListEntries request)
  FetchEntriesReply fetchEntries(1: FetchEntries request)
  CreateVisitorReply createVisitor(1: CreateVisitor request)
  VisitorNextReply visitorNext(1: VisitorNext request)
  DestroyVisitorReply destroyVisitor(1: DestroyVisitor request)
  ReadChangesReply readChanges(1: ReadChanges request)
  ListPluginsReply listPlugins(1: ListPlugins request)
  SearchSlicesReply searchSlices(1: SearchSlices request)
}

/** Service of every node, for the fleet controller. */
service NodeService {
  PollReply poll(1: Poll request)
}
