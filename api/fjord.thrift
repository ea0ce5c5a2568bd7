/**
 * What Fjord's processes and its clients in any language say to each other.
 *
 * Transport: framed TCP (a 4-byte big-endian length before each message), compact protocol; frames in the binary protocol
 * are understood too and answered in kind. A connection carries any number of calls at once; answers may come in another
 * order and are matched by sequence id. Frames above 64 MiB close the connection.
 *
 * Rules of change are in README.md: field numbers are never used again, fields are only added, every field is optional,
 * zero in an enum means unknown.
 *
 * Unsigned 64-bit numbers (bucket ids, checksums, client ids, ...) travel as i64 with the same bits: a value of 2^63 or
 * more looks negative to a language without unsigned numbers.
 */
namespace cpp fjord.api
namespace py fjord_api

// ---------------------------------------------------------------------------------------------------------------------
// Status

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
}

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
}

// ---------------------------------------------------------------------------------------------------------------------
// Cluster state

/** What a client or node needs to find its way. Empty strings mean "as you have it". */
struct ClusterInfo {
  1: optional i64 state_version = 0
  /** Cluster state string: "version:7 distributor:2 storage:4 .2.s:d". */
  2: optional string state = ""
  /** Text of the distribution configuration. */
  3: optional string distribution = ""
  /** By index, host:port. */
  4: optional list<string> distributor_addresses = []
  5: optional list<string> storage_addresses = []
  6: optional i64 schema_version = 0
  /** Schemas, each the text of a .sd file. */
  7: optional list<string> schemas = []
  /** Term of the fleet controller, which rises with every election. Nodes refuse messages of a lower term. */
  8: optional i64 term = 0
  /** A distributor that was polled within this time may believe its cluster state; 0: as you have it. */
  9: optional i64 lease_us = 0
  /** The cluster state that will be active next, and what goes with it; empty: none, or as you have it. */
  10: optional string pending_state = ""
  11: optional string pending_distribution = ""
  /** Empty: as now. */
  12: optional list<string> pending_distributor_addresses = []
  13: optional list<string> pending_storage_addresses = []
  /** Version of the live configuration in `config`, which is complete then; 0: unchanged. */
  14: optional i64 config_version = 0
  /** "name=value": the settings that are not at their defaults. */
  15: optional list<string> config = []
}

struct GetClusterInfo {
  /** Version that the sender has: the answer has state and addresses only if they are newer. */
  1: optional i64 known_state_version = 0
  2: optional i64 known_schema_version = 0
  /** All that the receiver knows, with the pending state, the live configuration and the term. */
  3: optional bool everything = false
}

struct GetClusterInfoReply {
  1: optional Status status
  2: optional ClusterInfo info
  /** With `everything`, from a distributor: the highest Poll.time_ceiling_us that it was told; 0: none. */
  3: optional i64 time_ceiling_us = 0
}

// ---------------------------------------------------------------------------------------------------------------------
// Document operations

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
  /** As the storage nodes are set. */
  DEFAULT = 0,
  /** The write survives a crash of the process. */
  PROCESS = 1,
  /** The write survives a loss of power. */
  SYNC = 2,
}

/** An overloaded node refuses operations of low priority first. */
enum Priority {
  /** Normal. */
  DEFAULT = 0,
  /** Refused last. */
  HIGH = 1,
  /** A user waits for the answer. */
  NORMAL = 2,
  /** No user waits: feeds in the background, output of jobs. */
  BACKGROUND = 3,
}

/** What a get may see. All see every write that was acknowledged before. */
enum Consistency {
  /** May also see a write in flight, which a crash can undo. */
  DEFAULT = 0,
  /** Sees only versions that all replicas have, so reads are linearizable. Waits for writes of the document in flight. */
  SESSION = 1,
}

struct Operation {
  1: optional OperationKind kind = OperationKind.UNKNOWN
  /** Document id, e.g. "id:music:album::42". */
  2: optional string id = ""
  /** Put: wire form of the header and body part (document/FORMAT.md). */
  3: optional binary header = ""
  4: optional binary body = ""
  /** Put instead of header and body: the document's fields as a JSON object. Update instead of `update`: the changes, what
   *  stands in "fields" of a feed (document/FEED.md). */
  5: optional string json = ""
  /** Number of the operation within its client, rising from 1; 0: duplicates are not recognised. */
  6: optional i64 sequence = 0
  /** Get: answer with json instead of header and body. */
  7: optional bool want_json = false
  /** Number of the attempt, rising with each repetition: a late duplicate of a refused attempt stays refused. */
  8: optional i64 attempt = 0
  /** Update: the changes in wire form (document/FORMAT.md). */
  9: optional binary update = ""
  /** Put, update, remove: a selection that must hold for the document as it is stored, else TEST_AND_SET_FAILED. Without a
   *  document no condition holds. */
  10: optional string condition = ""
  /** Put with a condition, update: go on if there is no document, whatever the condition. */
  11: optional bool create = false
  /** Put, update, remove: at most 64 bytes, the same for every repetition. An operation whose token is known was applied
   *  and is answered as it was then. */
  12: optional binary token = ""
  /** Get: fields of the answer, e.g. "[all]", "[id]", "song:title,year"; empty: all. */
  13: optional string field_set = ""
  14: optional Durability durability = Durability.DEFAULT
  15: optional Priority priority = Priority.DEFAULT
  /** From its arrival; after that no work is begun. 0, or more than that: the batch's. */
  16: optional i64 timeout_us = 0
  /** Get. */
  17: optional Consistency consistency = Consistency.DEFAULT
  /** Put, update, remove: the document's timestamp_us must be this one, else TEST_AND_SET_FAILED with the current one in
   *  version_us. 0: there must be no document. Not set: any version. A server of a version that does not know this field
   *  ignores it: use executeStrict if there may be one. */
  18: optional i64 required_version
  /** Get: the replica on this storage node answers for itself, whatever the others hold. Not set: an in-sync one. */
  19: optional i32 node
}

struct OperationResult {
  1: optional Status status
  /** Timestamp of the version that was written or read: microseconds since 1970. */
  2: optional i64 timestamp_us = 0
  /** Put, update, remove: the document existed before. */
  3: optional bool existed = false
  4: optional binary header = ""
  5: optional binary body = ""
  /** Get with want_json: {"put": id, "fields": {...}}. */
  6: optional string json = ""
  /** With TEST_AND_SET_FAILED: the timestamp of the document that was compared; 0 if there is none. */
  7: optional i64 version_us = 0
  /** Storage node, get with token_gid: id and timestamp of that entry. */
  8: optional string token_entry = ""
  9: optional i64 token_timestamp_us = 0
  /** With BUSY: milliseconds until a retry may succeed; 0: not known. */
  10: optional i64 retry_after_ms = 0
}

/** Operations on documents that one distributor owns; up to some hundred in one call is fast. */
struct Execute {
  /** State version under which the client chose the distributor; 0: chosen without a state. */
  1: optional i64 state_version = 0
  /** Random number of the client; 0: anonymous. */
  2: optional i64 client_id = 0
  /** All operations of this client with a smaller sequence have ended; a late duplicate of one is refused. */
  3: optional i64 first_unsettled = 0
  /** 0: the server's default. */
  4: optional i64 timeout_us = 0
  5: optional list<Operation> operations = []
  /** Microseconds after which the answer may have a part of the outcomes (ExecuteReply.rest). 0: one answer has all. */
  6: optional i64 part_after_us = 0
  /** Asks for the rest of a partial answer; the message has no operations then. */
  7: optional i64 rest = 0
}

struct ExecuteReply {
  /** Status of the batch as a whole; OK even if single operations failed. */
  1: optional Status status
  /** One an operation, in order. */
  2: optional list<OperationResult> results = []
  /** With WRONG_DISTRIBUTION results. */
  3: optional ClusterInfo newer_info
  /** With BUSY for the batch as a whole: as in OperationResult. */
  4: optional i64 retry_after_ms = 0
  /**
   * Not 0: a part of the answer, which only a sender with `part_after_us` gets. Results without a status code are of
   * operations that have not ended. An Execute with this number as `rest` is answered with the results of these.
   */
  5: optional i64 rest = 0
}

/** Execute for operations with fields that a server of an older version would ignore. Such a server does not know this
 *  call, or not all of `features`, and answers NOT_IMPLEMENTED (or Thrift's UNKNOWN_METHOD): nothing was done. */
struct ExecuteStrict {
  1: optional Execute batch
  /** Names of the fields of Operation that must be obeyed: "required_version", "node". */
  2: optional list<string> features = []
}

struct ExecuteStrictReply {
  1: optional Status status
  2: optional ExecuteReply batch
}

/** Asks for a storage node to visit for each bucket. */
struct GetBucketNodes {
  1: optional i64 state_version = 0
  /** Every bucket that this distributor owns and that holds something. */
  2: optional bool all = false
  3: optional list<i64> buckets = []
  /** The answer names the buckets as they are now, with `epoch` and `stable_us`. */
  4: optional bool for_changes = false
  /** Storage nodes to be named only for buckets without another in-sync replica. */
  5: optional list<i32> avoid = []
}

struct BucketNode {
  1: optional i64 bucket = 0
  2: optional Status status
  /** Index of a storage node with an in-sync replica. */
  3: optional i32 node = 0
  /** For changes: epoch of the replica set. */
  4: optional i64 epoch = 0
  /** For changes: all writes up to here have ended, and later ones have later timestamps. */
  5: optional i64 stable_us = 0
  /** No replica is intact: the remaining documents may be read on this node. */
  6: optional bool even_damaged = false
}

struct GetBucketNodesReply {
  1: optional Status status
  2: optional list<BucketNode> buckets = []
  3: optional ClusterInfo newer_info
}

// ---------------------------------------------------------------------------------------------------------------------
// Distributor to storage node

struct StorageOperation {
  1: optional OperationKind kind = OperationKind.UNKNOWN
  2: optional i64 bucket = 0
  3: optional i64 timestamp_us = 0
  4: optional string id = ""
  5: optional binary header = ""
  6: optional binary body = ""
  /** Epoch of the replica set that the sender uses; refused if the replica knows a newer one. */
  7: optional i64 epoch = 0
  /** Global id of `id`, 12 bytes. */
  8: optional binary gid = ""
  /** Get: leave the body out. */
  9: optional bool header_only = false
  /** 12 bytes. Put, remove: an entry that is written together with the document. Get: one that is looked up with it. */
  10: optional binary token_gid = ""
  /** Put, remove: that entry's id. */
  11: optional string token_entry = ""
  12: optional Durability durability = Durability.DEFAULT
  /** Put, remove: applied only if the newest version is the one of `read_us` (0: none), else TEST_AND_SET_FAILED. */
  13: optional bool compare = false
  14: optional i64 read_us = 0
  /** Get: what verifies is given even if the bucket is damaged here; otherwise the answer is CORRUPTION then. */
  15: optional bool even_damaged = false
  /** Put: another replica has applied it; refused for lack of space only where merges are refused, too. */
  16: optional bool is_elsewhere = false
}

/** Operations on one bucket are applied in order. */
struct Apply {
  1: optional i64 state_version = 0
  2: optional i32 distributor = 0
  3: optional list<StorageOperation> operations = []
  /** From its arrival; after that the answer to a get may be BUSY. 0: for ever. */
  4: optional i64 timeout_us = 0
  /** Number of the operations with priority BACKGROUND. */
  5: optional i64 in_background = 0
  /** Number that rises with each message of a distributor, so that duplicates are recognised. 0: not numbered. */
  6: optional i64 number = 0
}

struct ApplyReply {
  1: optional Status status
  2: optional list<OperationResult> results = []
  /** The storage node's, with WRONG_DISTRIBUTION. */
  3: optional i64 state_version = 0
}

/** Content of a replica of a bucket. */
struct BucketInfo {
  1: optional i64 entries = 0
  2: optional i64 documents = 0
  3: optional i64 bytes = 0
  4: optional i64 checksum = 0
  5: optional i64 max_timestamp_us = 0
}

/** The storage nodes that hold every acknowledged write of a bucket since `epoch`. */
struct ReplicaSet {
  /** A cluster state version and, in the low 20 bits, a step that counts the sets made under it. */
  1: optional i64 epoch = 0
  /** Primary first. */
  2: optional list<i32> nodes = []
}

/** After the answer, no write of another distributor or of an older cluster state reaches these buckets. */
struct GetBucketInfo {
  1: optional i64 state_version = 0
  2: optional i32 distributor = 0
  /** Every bucket that this distributor owns under `state_version`; otherwise those of `buckets` that exist, with
   *  more or fewer bits if need be. */
  3: optional bool all = false
  4: optional list<i64> buckets = []
  /** Of these buckets, only damaged ones and those above one of the limits below. */
  5: optional bool only_damaged = false
  /** 0: no limit. */
  6: optional i64 entries_limit = 0
  7: optional i64 bytes_limit = 0
  /** Question of the fleet controller: all buckets of any owner; the replica sets stay as they are. */
  8: optional bool census = false
  /** With only_damaged: also buckets with removed entries that are older (0: none), or more tokens (0: any number). */
  9: optional i64 removes_before_us = 0
  10: optional i64 tokens_before_us = 0
  11: optional i64 tokens_max = 0
}

struct BucketReport {
  1: optional i64 bucket = 0
  2: optional BucketInfo info
  3: optional ReplicaSet replica_set
  /** The replica has lost documents and is not repaired yet. */
  4: optional bool damaged = false
  /** Removed entries, and tokens, before these times are dropped; 0: none are. */
  5: optional i64 forgotten_removes_us = 0
  6: optional i64 forgotten_tokens_us = 0
  /** There are removed entries older than was asked about, or too many tokens: all that are older than the next. */
  7: optional bool may_forget = false
  8: optional i64 surplus_tokens_us = 0
}

struct GetBucketInfoReply {
  1: optional Status status
  2: optional list<BucketReport> reports = []
  3: optional i64 state_version = 0
  /** Stage of the disk. 0: not reported; 1: normal; 2: warn; 3: throttle; 4: no writes of clients; 5: only removes. */
  4: optional i32 space_stage = 0
  /** What was measured, the limit, and the setting. */
  5: optional string space_reason = ""
  /** The node knows BucketReplicaSet.forget_removes_before_us. */
  6: optional bool can_forget = false
}

struct BucketReplicaSet {
  1: optional i64 bucket = 0
  2: optional ReplicaSet replica_set
  /** The replica was merged from an intact one with the content `intact`: if its content is equal, it is repaired. */
  3: optional bool repaired = false
  4: optional BucketInfo intact
  /** All members hold the same, and from now on none of the removed entries (of the tokens) that are older. */
  5: optional i64 forget_removes_before_us = 0
  6: optional i64 forget_tokens_before_us = 0
}

/** Creates the buckets that are not there and stores the replica sets. */
struct SetReplicaSets {
  1: optional i64 state_version = 0
  2: optional i32 distributor = 0
  3: optional list<BucketReplicaSet> buckets = []
}

struct SetReplicaSetsReply {
  1: optional Status status
  2: optional list<Status> statuses = []
  3: optional i64 state_version = 0
  /** What each bucket held when it had its set: nothing lands after that that was sent under an older one. */
  4: optional list<BucketInfo> contents = []
}

/** The receiver fetches from each source the entries that are newer there. */
struct MergeBucket {
  1: optional i64 state_version = 0
  2: optional i32 distributor = 0
  3: optional i64 bucket = 0
  4: optional list<i32> sources = []
  /** Members of `sources` that are not in the replica set. */
  5: optional list<i32> outsiders = []
  /** The receiver's content becomes what all members have: tokens of writes that lose are cancelled. */
  6: optional bool decides = false
  /** After so long the receiver answers BUSY with what it has done so far, and may be asked again; 0: no limit. */
  7: optional i64 time_limit_ms = 0
  /** Nothing is missing or differs: the bucket only gets other places. */
  8: optional bool only_moves = false
  /** Epoch of the replica set; 0: unknown. A receiver with a newer one refuses. */
  9: optional i64 epoch = 0
}

struct MergeBucketReply {
  1: optional Status status
  2: optional i64 entries_copied = 0
  3: optional i64 bytes_copied = 0
  /** Content of the receiver afterwards. */
  4: optional BucketInfo info
  5: optional i64 state_version = 0
  /** Sources whose replicas have lost something. */
  6: optional list<i32> damaged_sources = []
}

/** Surplus replicas whose bucket is complete elsewhere. */
struct DeleteBuckets {
  1: optional i64 state_version = 0
  2: optional i32 distributor = 0
  3: optional list<i64> buckets = []
}

struct DeleteBucketsReply {
  1: optional Status status
  2: optional list<Status> statuses = []
  3: optional i64 state_version = 0
}

/** Replaces a bucket by its two halves, which get its replica set; OK if that happened before. */
struct SplitBucket {
  1: optional i64 state_version = 0
  2: optional i32 distributor = 0
  3: optional i64 bucket = 0
  /** Epoch of the replica set that the sender knows; refused if the replica knows a newer one. */
  4: optional i64 epoch = 0
}

struct SplitBucketReply {
  1: optional Status status
  /** Contents of the halves. */
  2: optional list<BucketReport> reports = []
  3: optional i64 state_version = 0
}

/** The reverse: replaces the two halves, which have the same replica set, by `parent`; OK if that happened before. */
struct JoinBuckets {
  1: optional i64 state_version = 0
  2: optional i32 distributor = 0
  3: optional i64 parent = 0
  4: optional i64 epoch = 0
}

struct JoinBucketsReply {
  1: optional Status status
  2: optional BucketReport report
  3: optional i64 state_version = 0
}

/** Asks for the documents of a bucket that their types do not keep, by the receiver's clock. */
struct FindGarbage {
  1: optional i64 state_version = 0
  2: optional i32 distributor = 0
  3: optional i64 bucket = 0
  4: optional i64 max_ids = 0
}

struct FindGarbageReply {
  1: optional Status status
  2: optional list<string> ids = []
  /** Timestamps of the documents, in the order of `ids`. */
  3: optional list<string> types = []
  /** There may be more than these. */
  4: optional bool more = false
  /** Documents looked at. */
  5: optional i64 scanned = 0
  6: optional i64 state_version = 0
}

// ---------------------------------------------------------------------------------------------------------------------
// Storage node to storage node

struct EntryKey {
  /** 12 bytes. */
  1: optional binary gid = ""
  2: optional i64 timestamp_us = 0
  3: optional bool removed = false
}

struct ListEntries {
  1: optional i64 bucket = 0
  /** Start behind this gid (12 bytes). */
  2: optional binary after = ""
  /** Ignore `after` and `after_group`. */
  3: optional bool from_start = true
  4: optional i64 max_entries = 0
  /** Start behind this group: the order key of the narrowest bucket of an entry. */
  5: optional i64 after_group = 0
  /** And end with this one; all bits set: no end. */
  6: optional i64 last_group = -1
  /** Whole groups by rising group, instead of entries by rising gid. */
  7: optional bool by_group = false
}

struct ListEntriesReply {
  1: optional Status status
  /** By rising gid, or by rising (group, gid). */
  2: optional list<EntryKey> entries = []
  3: optional bool more = false
  /** There may have been more. */
  4: optional bool damaged = false
  /** They are as the request wanted them by group. */
  5: optional bool by_group = false
  /** Entries that the replica has dropped, and the epoch of its replica set. */
  6: optional i64 forgotten_removes_us = 0
  7: optional i64 forgotten_tokens_us = 0
  8: optional i64 forgotten_checksum = 0
  9: optional i64 epoch = 0
}

struct FetchEntries {
  1: optional i64 bucket = 0
  /** 12 bytes each. */
  2: optional list<binary> gids = []
  3: optional i64 max_bytes = 0
  /** MergeBucket's. */
  4: optional bool only_moves = false
}

struct FetchEntriesReply {
  1: optional Status status
  /** Number of `gids` that the answer covers; ask again for the rest. */
  2: optional i64 done = 0
  3: optional binary docblock = ""
  /** Some of `gids` may have been lost. */
  4: optional bool damaged = false
  /** With BUSY: time until this node may send data of merges again. */
  5: optional i64 wait_us = 0
}

// ---------------------------------------------------------------------------------------------------------------------
// Fleet controller to nodes, and administration

/** Asks a node how it is; the current cluster state travels along if the node's is older. */
struct Poll {
  1: optional ClusterInfo info
  /** The sender has made sure that it leads. */
  2: optional bool renews_lease = false
  /** Echo of the newest PollReply.clock_us that the sender has got, and of the incarnation that it came from. */
  3: optional i64 heard_us = 0
  4: optional i64 heard_incarnation = 0
  /** Storage nodes that most distributors find slow: read from others where there are others. Complete each time. */
  5: optional list<i32> slow_storage = []
  /** To distributors: timestamps up to this one may be given, in microseconds since 1970; 0: no limit is known. */
  6: optional i64 time_ceiling_us = 0
  /** What the cluster calls the receiver, "storage.2"; another node answers INVALID_ARGUMENT. */
  7: optional string node = ""
  /** The answer lists the node's settings. */
  8: optional bool wants_settings = false
}

/** How fast a storage node has answered one distributor lately. 0: not measured. */
struct NodeLatency {
  1: optional i32 node = 0
  2: optional i64 read_us = 0
  3: optional i64 write_us = 0
  /** Medians over the other storage nodes. */
  4: optional i64 peers_read_us = 0
  5: optional i64 peers_write_us = 0
  /** Much slower than its peers. */
  6: optional bool suspect = false
}

struct PollReply {
  1: optional Status status
  /** As in the cluster state string: "s:u t:123". */
  2: optional string node_state = ""
  /** Changes with every start of the process. */
  3: optional i64 incarnation = 0
  4: optional i64 state_version = 0
  5: optional i64 schema_version = 0
  6: optional i64 buckets = 0
  7: optional i64 documents = 0
  8: optional i64 bytes = 0
  /** Distributor: buckets that wait for a merge. */
  9: optional i64 buckets_out_of_sync = 0
  /** Distributor: buckets that cannot be served now. */
  10: optional i64 buckets_unavailable = 0
  /** Buckets that have lost documents on this node; distributor: on one of their replicas. */
  11: optional i64 buckets_damaged = 0
  /** The highest pending cluster state that the node is prepared for. */
  12: optional i64 pending_version = 0
  /** The highest that the node has seen; also told with a refusal. */
  13: optional i64 term = 0
  /** The fewest bits that a bucket here has; 0: no buckets, or not known. */
  14: optional i64 min_bucket_bits = 0
  15: optional i64 config_version = 0
  /** "name: why it was refused". */
  16: optional list<string> config_errors = []
  /** The node's monotonic clock when it answered. */
  17: optional i64 clock_us = 0
  /** Distributor: latencies of the storage nodes that it has sent requests lately. */
  18: optional list<NodeLatency> latencies = []
  /** What the process was started as, "storage.2"; also told with a refusal. */
  19: optional string node = ""
  /** "name=value=source" of each setting without the live configuration; source is "file" or empty: built in. */
  20: optional list<string> settings = []
  /** Storage node: 0 normal, 1 warns, 2 throttles, 3 refuses puts, 4 refuses all writes but removes. */
  21: optional i64 space_stage = 0
  /** What was measured and the limit; empty in the normal stage. */
  22: optional string space = ""
  /** Distributor: buckets whose merges have failed several times in a row, and the newest failure. */
  23: optional i64 buckets_failing = 0
  24: optional string failing = ""
  /** Distributor: buckets for which the cluster state names no storage node. */
  25: optional i64 buckets_unplaced = 0
  /** Distributor: buckets that are served with fewer current replicas than they should have. */
  26: optional i64 buckets_under_replicated = 0
}

/** Adds document types or replaces them by name. Any distributor takes it. */
struct DeploySchemas {
  /** Each the text of a .sd file. */
  1: optional list<string> schemas = []
  /** Fields and members whose stored values may be lost: "song.title". */
  2: optional list<string> may_drop = []
}

struct DeploySchemasReply {
  1: optional Status status
  2: optional i64 schema_version = 0
  3: optional list<string> warnings = []
}

struct GetStatus {
}

struct NodeStatus {
  /** "storage.2". */
  1: optional string node = ""
  2: optional string address = ""
  /** "up", "down", ... */
  3: optional string state = ""
  4: optional string reason = ""
  /** The last answer to a poll. */
  5: optional PollReply last
  /** -1: never. */
  6: optional i64 answered_us_ago = -1
  /** State wanted by an operator: "retired: reason (who)". */
  7: optional string wanted = ""
  /** Storage nodes: in the distribution; empty: in none. */
  8: optional string group = ""
  9: optional string capacity = ""
  /** Storage nodes: why it is marked as slow; empty: it is not. */
  10: optional string slow = ""
  /** Storage nodes in maintenance: for how long they have been; -1: not in maintenance. */
  11: optional i64 maintenance_us = -1
  /** And when they count as down; -1: there is no limit. */
  12: optional i64 maintenance_left_us = -1
}

struct GetStatusReply {
  1: optional Status status
  2: optional ClusterInfo info
  3: optional list<NodeStatus> nodes = []
  /** Time of the newest line of the cluster's history; 0: there is none. */
  4: optional i64 changed_unix_us = 0
}

// ---------------------------------------------------------------------------------------------------------------------
// Operation of a cluster

enum NodeAction {
  UNKNOWN = 0,
  /** Takes back what an operator wanted before. */
  UP = 1,
  /** Away for a short time: nothing is copied. */
  MAINTENANCE = 2,
  /** Its buckets move to others while it serves. */
  RETIRE = 3,
  DOWN = 4,
  ADD = 5,
  /** Only when it is retired and empty. */
  REMOVE = 6,
  /** Another process takes the index over. */
  REPLACE = 7,
  CAPACITY = 8,
  /** Nothing but the question whether it could be stopped. */
  STOP = 9,
  /** Changes the whole cluster: single buckets are kept elsewhere, so that all nodes are equally full. */
  BALANCE = 10,
}

/** What a change of nodes would move; bytes and duration are estimates. */
struct MovementPlan {
  1: optional i64 buckets_total = 0
  2: optional i64 buckets_moved = 0
  3: optional i64 replicas_moved = 0
  4: optional i64 bytes = 0
  5: optional i64 duration_s = 0
  6: optional list<string> notes = []
}

/** A change of nodes by an operator. Any distributor accepts it; the fleet controller decides. */
struct ChangeNodes {
  1: optional NodeAction action = NodeAction.UNKNOWN
  /** "storage.2"; to add one: "storage" or "distributor". */
  2: optional list<string> nodes = []
  /** Address of a node that is added, or that replaces another. */
  3: optional string address = ""
  /** Group of a storage node that is added; empty: the only group. */
  4: optional string group = ""
  /** Relative weight in the placement; empty: 1. */
  5: optional string capacity = ""
  6: optional string reason = ""
  7: optional string who = ""
  8: optional bool dry_run = false
  /** Although it is refused otherwise. */
  9: optional bool force = false
  /** Balance: the largest max/mean of bytes, empty: 1.02; "off": no exceptions. */
  10: optional string balance_to = ""
  /** Carried out only if changed_unix_us of GetStatusReply is still unchanged_since_us, else TEST_AND_SET_FAILED. */
  11: optional bool if_unchanged = false
  12: optional i64 unchanged_since_us = 0
}

struct ChangeNodesReply {
  1: optional Status status
  /** Why it was not done; empty: it was done, or would be. */
  2: optional list<string> refusals = []
  3: optional list<string> warnings = []
  /** That were changed. */
  4: optional list<string> nodes = []
  5: optional i64 state_version = 0
  6: optional MovementPlan plan
}

/** One setting of the live configuration. */
struct Setting {
  1: optional string name = ""
  2: optional string type = ""
  3: optional string default_value = ""
  4: optional string min = ""
  5: optional string max = ""
  6: optional string value = ""
  7: optional string used_by = ""
  8: optional string meaning = ""
  /** Value that most nodes of its users have; empty: no node has reported it. */
  9: optional string in_force = ""
  /** "live configuration", "configuration file" or "built in". */
  10: optional string source = ""
  /** Nodes where another value is in force: "storage.1: 32MiB (configuration file)". */
  11: optional list<string> elsewhere = []
}

struct ConfigChange {
  1: optional i64 version = 0
  2: optional i64 unix_us = 0
  3: optional string who = ""
  4: optional list<string> values = []
}

/** The settings, what they are and were. */
struct GetConfig {
}

struct GetConfigReply {
  1: optional Status status
  2: optional i64 config_version = 0
  3: optional list<Setting> settings = []
  4: optional list<ConfigChange> versions = []
  /** Nodes that do not have config_version yet. */
  5: optional list<string> waiting = []
  /** "storage.1: name: why". */
  6: optional list<string> errors = []
}

/** Changes settings of the live configuration, all of them or none. */
struct ChangeConfig {
  /** "name=value". */
  1: optional list<string> assignments = []
  /** Back to the default. */
  2: optional list<string> unset = []
  /** Everything as in that version. */
  3: optional i64 revert_to = 0
  /** Everything as before the last change. */
  4: optional bool revert = false
  5: optional string who = ""
  6: optional bool dry_run = false
  /** Carried out only if the configuration still has `version`, else TEST_AND_SET_FAILED. */
  7: optional bool if_version = false
  8: optional i64 version = 0
}

struct ChangeConfigReply {
  1: optional Status status
  2: optional i64 config_version = 0
  3: optional list<string> changes = []
}

/** One line of the history of the cluster. */
struct StateChange {
  1: optional i64 version = 0
  2: optional i64 term = 0
  3: optional i64 unix_us = 0
  /** 0: it did not become active, or is no state. */
  4: optional i64 active_unix_us = 0
  5: optional string what = ""
  6: optional string why = ""
  7: optional string who = ""
}

/** The newest `max` lines of the history (0: all that is kept), and the state of the publication. */
struct GetHistory {
  1: optional i64 max = 0
}

struct GetHistoryReply {
  1: optional Status status
  2: optional list<StateChange> changes = []
  3: optional i64 term = 0
  4: optional string leader = ""
  5: optional ClusterInfo info
  /** Why the pending state is not active yet. */
  6: optional string waits_for = ""
}

// ---------------------------------------------------------------------------------------------------------------------
// Visitors

struct Parameter {
  1: optional string name = ""
  2: optional string value = ""
}

struct CreateVisitor {
  /** Chosen by the client, random; creating the same id again is fine. */
  1: optional i64 visitor_id = 0
  /** Name of the server-side visitor, e.g. "dump". */
  2: optional string library = ""
  3: optional list<Parameter> parameters = []
  4: optional list<i64> buckets = []
  5: optional string selection = ""
  6: optional bool ids_only = false
  /** 0: the server's default. */
  7: optional i64 docblock_bytes = 0
  8: optional i64 buckets_at_once = 0
  /** The visitor needs at least this schema version. */
  9: optional i64 schema_version = 0
  /** Fields that the visitor gets, as in Operation.field_set; empty: all. */
  10: optional string field_set = ""
  /** Only versions written at or after this time. */
  11: optional i64 from_us = 0
  /** And not after this one; 0: no limit. */
  12: optional i64 to_us = 0
  /** Removed documents too, as entries without content. */
  13: optional bool include_removed = false
  /** With too many visitors, those of higher priority begin first. */
  14: optional Priority priority = Priority.DEFAULT
  /** Only documents in this part of the bucket tree, both ends included; 0 and 0: all of it. */
  15: optional i64 first_position = 0
  16: optional i64 last_position = 0
  /** The visitor is given header parts as they are stored, and no bodies. */
  20: optional bool header_only = false
  /** Each bucket as it was when the visitor began with it. */
  21: optional bool snapshot = false
  /** Buckets that have lost documents on the node are refused (NOT_READY), except those of even_damaged. */
  22: optional bool refuses_damaged = false
  23: optional list<i64> even_damaged = []
  /** Number that all visitors of one visit or job have: they share its part of the node's time. 0: none. */
  24: optional i64 group = 0
  /** Weight of the group: its share of time beside other groups of its priority. 0: the default, 10. */
  25: optional i64 weight = 0
}

struct CreateVisitorReply {
  1: optional Status status
}

struct VisitorEvent {
  /** From 1, without gaps. */
  1: optional i64 sequence = 0
  2: optional i64 bucket = 0
  /** Documents of that bucket. */
  3: optional binary docblock = ""
  /** The bucket was read to its end, or `status` says why not. */
  4: optional bool bucket_done = false
  5: optional Status status
  /** With bucket_done: result of the visitor for the bucket. */
  6: optional binary result = ""
  /** With bucket_done: documents there were in the bucket. */
  7: optional i64 documents_read = 0
  /** With bucket_done: documents and removes that the visitor was given. */
  8: optional i64 documents_matched = 0
}

/** Waits for events. Later events than `acknowledged` that were sent before are sent again. */
struct VisitorNext {
  1: optional i64 visitor_id = 0
  2: optional i64 acknowledged = 0
  3: optional i64 max_bytes = 0
  4: optional i64 wait_us = 0
}

struct VisitorNextReply {
  /** NOT_FOUND: the node does not know the visitor (any more). */
  1: optional Status status
  2: optional list<VisitorEvent> events = []
  /** No event will follow these. */
  3: optional bool finished = false
  /** How long processors have worked for the visitor so far, in buckets that are not done, too; 0: not measured. */
  4: optional i64 processor_us = 0
}

struct DestroyVisitor {
  1: optional i64 visitor_id = 0
}

struct DestroyVisitorReply {
  1: optional Status status
}

// ---------------------------------------------------------------------------------------------------------------------
// Subscriptions: client to storage node

/** How far a subscriber is in one bucket, and how far it may read. */
struct ChangesWanted {
  1: optional i64 bucket = 0
  /** As BucketNode has it. */
  2: optional i64 epoch = 0
  /** BucketNode.stable_us */
  3: optional i64 until_us = 0
  /** Changes up to here were given. */
  4: optional i64 after_us = 0
  /** What the answer said when they were given; if it is no longer so, they are given again. */
  5: optional i64 seen_epoch = 0
  6: optional i64 seen_checksum = 0
  /** BucketChanges.horizon_us of that answer. */
  7: optional i64 seen_horizon_us = 0
}

struct BucketChanges {
  1: optional i64 bucket = 0
  2: optional Status status
  /** By rising timestamp. */
  3: optional binary docblock = ""
  /** The new position. */
  4: optional i64 after_us = 0
  /** Checksum of all entries up to the position. */
  5: optional i64 checksum = 0
  /** There is more up to `until_us`. */
  6: optional bool more = false
  /** The answer begins again from the start, as earlier answers may have had gaps. */
  7: optional bool again = false
  /** Removes that the subscriber has not been given are forgotten. */
  8: optional bool resync = false
  /** Removes before this time may be forgotten; 0: none are. */
  9: optional i64 horizon_us = 0
}

struct ReadChanges {
  1: optional list<ChangesWanted> buckets = []
  2: optional string selection = ""
  3: optional string field_set = ""
  /** 0: the server's default. */
  4: optional i64 max_bytes = 0
  5: optional i64 schema_version = 0
}

struct ReadChangesReply {
  1: optional Status status
  /** Those that were read, in order; the rest is for another call. */
  2: optional list<BucketChanges> buckets = []
}

// ---------------------------------------------------------------------------------------------------------------------
// Jobs

/** Way of the tuples from map tasks to reduce tasks. */
enum Shuffle {
  /** Chosen by the system. */
  AUTO = 0,
  /** As documents in the store; the results are documents, too. */
  STORE = 1,
  /** With the answers of the visitors, to the process that runs the job, which holds the results. */
  DIRECT = 2,
}

/** Where a pass puts its rows as documents that stay. */
struct RowTarget {
  /** Document type; empty: nowhere. */
  1: optional string type = ""
  /** Empty: "results". */
  2: optional string name_space = ""
  /** Jobs with the same one overwrite each other's documents; empty: the id of the job. */
  3: optional string name = ""
}

/** One MapReduce of a job with several passes, or of a job that puts documents. */
struct JobPass {
  1: optional string application = ""
  /** Type of the first pass's documents; in later passes the type of the pass before, or empty. */
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
  /** Empty: "results". */
  5: optional string output_namespace = ""
  /** 0: chosen by the system. */
  6: optional i64 output_buckets = 0
  7: optional i64 visitors_per_node = 0
  8: optional Shuffle shuffle = Shuffle.AUTO
  /** How it runs, not what it computes: limits and throttle. What is not named is at its default. */
  9: optional list<Parameter> settings = []
  /** Reads only documents that changed since the last equal job, where that is still known. */
  10: optional bool incremental = false
  /** Each but the first reads what the one before put. If there are any, 1 to 4 are empty. */
  11: optional list<JobPass> passes = []
}

/** A document on which the map function of a job failed, and the error. */
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
  /** After REDUCE, if rows become documents. */
  PUT = 8,
}

/** What a pass came to. */
struct PassStatus {
  1: optional i64 map_tasks = 0
  2: optional i64 map_tasks_done = 0
  3: optional i64 reduce_tasks = 0
  4: optional i64 reduce_tasks_done = 0
  5: optional i64 documents_read = 0
  6: optional i64 bytes_read = 0
  7: optional i64 tuples = 0
  8: optional i64 tuple_documents = 0
  9: optional i64 results = 0
  10: optional i64 tasks_repeated = 0
  11: optional i64 spilled_bytes = 0
  12: optional i64 sent_bytes = 0
  13: optional i64 dead_letters = 0
  14: optional i64 documents_put = 0
  15: optional i64 documents_removed = 0
  16: optional i64 documents_reused = 0
  17: optional Shuffle shuffle = Shuffle.AUTO
}

struct JobStatus {
  1: optional string job_id = ""
  2: optional JobSpec spec
  3: optional JobPhase phase = JobPhase.UNKNOWN
  4: optional Status error
  5: optional i64 map_tasks = 0
  6: optional i64 map_tasks_done = 0
  7: optional i64 reduce_tasks = 0
  8: optional i64 reduce_tasks_done = 0
  /** Input documents that matched, each counted once. */
  9: optional i64 documents_read = 0
  10: optional i64 bytes_read = 0
  /** Emitted by map. */
  11: optional i64 tuples = 0
  /** Put between map and reduce. */
  12: optional i64 tuple_documents = 0
  /** Result documents. */
  13: optional i64 results = 0
  14: optional i64 tasks_repeated = 0
  15: optional i64 submitted_unix_us = 0
  /** 0: not finished. */
  16: optional i64 finished_unix_us = 0
  17: optional i64 output_buckets = 0
  /** Location of output bucket 0. */
  18: optional i64 output_base = 0
  /** The one that is used; AUTO until the job has begun. */
  19: optional Shuffle shuffle = Shuffle.AUTO
  /** Written to disk by tasks whose groups did not fit into memory. */
  20: optional i64 spilled_bytes = 0
  21: optional bool paused = false
  /** Process that runs or ran it, as "distributor.1". */
  22: optional string owner = ""
  /** Rises when another process takes the job over; 0: the job has no record (yet). */
  23: optional i64 epoch = 0
  /** Said by the process that runs it, and not read from its record. */
  24: optional bool live = false
  /** Documents on which the map function failed; part of documents_read. */
  25: optional i64 dead_letters = 0
  /** If they were asked for. */
  26: optional list<DeadLetter> dead_letter_list = []
  /** In force. */
  27: optional list<Parameter> settings = []
  /** What it waits for most. */
  28: optional string bound_by = ""
  /** Estimate of the remaining time, and its error; 0: none. */
  29: optional i64 left_us = 0
  30: optional i64 left_error_us = 0
  /** Tuples that tasks put or sent, without repeated tasks. */
  31: optional i64 sent_bytes = 0
  /** Time that tasks spent in map and reduce. */
  32: optional i64 busy_us = 0
  /** Times that another process has gone on with it. */
  34: optional i64 taken_over = 0
  // From here on for distributors that may have to go on with the job.
  /** Version of the record, which rises with every change. */
  35: optional i64 revision = 0
  36: optional i64 owner_id = 0
  37: optional i64 run = 0
  38: optional i64 bits = 0
  39: optional JobPhase outcome = JobPhase.UNKNOWN
  40: optional bool cancel_wanted = false
  41: optional string resume = ""
  42: optional string expected = ""
  /** Part of documents_read that an earlier job had read and this one did not. */
  43: optional i64 documents_reused = 0
  /** Number of passes that are done. All numbers above except times, dead letters and busy_us belong to the next pass. */
  44: optional list<PassStatus> passes_done = []
  /** Rows that became documents of the pass's type. */
  45: optional i64 documents_put = 0
  /** Documents of that name without a row, which were removed. */
  46: optional i64 documents_removed = 0
  /** `run` when the pass began. */
  47: optional i64 pass_run = 0
  /** Version of an application of a plugin; all tasks of the job have the same. */
  48: optional string application_version = ""
  /** Part of busy_us in which processors worked for tasks; 0: the job has no cpu_max. */
  49: optional i64 processor_us = 0
  /** Job with several passes: one version for each pass, in place of application_version. */
  50: optional list<string> application_versions = []
  /** When the results are removed; 0: never, or there are none. */
  51: optional i64 results_until_unix_us = 0
  /** The results have been removed, or are being removed. */
  52: optional bool results_removed = false
}

struct SubmitJob {
  /** Chosen by the client, so that sending again is fine. */
  1: optional string job_id = ""
  2: optional JobSpec spec
}

struct SubmitJobReply {
  1: optional Status status
  2: optional string job_id = ""
}

struct ListJobs {
  /** Empty: all that this distributor runs or ran. */
  1: optional string job_id = ""
  /** With an id: the answer comes when the job has ended, or after so long. */
  2: optional i64 wait_us = 0
  /** With an id: number of the first result to return; at least one result is returned. */
  3: optional i64 results_from = 0
  /** Approximate maximum bytes of results; 0: none. */
  4: optional i64 results_bytes_max = 0
  /** Also returns the records of jobs that this process does not run. */
  5: optional bool records = false
  /** With an id: returns the documents on which the map function failed, too. */
  6: optional bool dead_letters = false
}

struct ListJobsReply {
  1: optional Status status
  2: optional list<JobStatus> jobs = []
  /** Key and value, by rising key. */
  3: optional list<Parameter> results = []
  4: optional bool more_results = false
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
  /** For a job that has ended: removes its record, its results and all its other documents. */
  REMOVE = 5,
  /** The job has ended: its results are removed. */
  REMOVE_RESULTS = 6,
}

struct ControlJob {
  1: optional string job_id = ""
  2: optional JobAction action = JobAction.UNKNOWN
  /** Set: those that change. */
  3: optional list<Parameter> settings = []
  /** Change the record if this process does not run the job. */
  4: optional bool records = false
}

struct ControlJobReply {
  /** NOT_FOUND if this process does not run the job and `records` was not asked for. */
  1: optional Status status
}

struct PluginFunction {
  1: optional string name = ""
  2: optional string help = ""
  /** Else a visitor. */
  3: optional bool is_application = false
  /** Version of an application. */
  4: optional string version = ""
}

struct PluginLibrary {
  1: optional string file = ""
  /** Why it is not used; empty: it is. */
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

enum BucketTroubleKind {
  UNKNOWN = 0,
  /** There are too few replicas, or they are being merged or moved. No action is needed. */
  OUT_OF_SYNC = 1,
  /** A replica has lost documents and is restored from an intact one. */
  DAMAGED = 2,
  /** All replicas have lost documents. */
  LOST = 3,
  /** Cannot be served: its newest documents may be on a node that is down. */
  UNAVAILABLE = 4,
}

struct BucketTrouble {
  1: optional i64 bucket = 0
  2: optional BucketTroubleKind kind = BucketTroubleKind.UNKNOWN
  3: optional string reason = ""
  4: optional list<i32> members = []
  5: optional list<i32> damaged = []
  6: optional list<i32> filling = []
}

/** Asks for the unhealthy buckets of the receiver. NOT_READY if it does not know them yet. */
struct ListTroubles {
  /** UNKNOWN: all. */
  1: optional BucketTroubleKind at_least = BucketTroubleKind.UNKNOWN
  2: optional i64 from_key = 0
  /** 0: as many as the receiver finds good. */
  3: optional i64 max = 0
}

struct ListTroublesReply {
  1: optional Status status
  2: optional list<BucketTrouble> troubles = []
  /** Where to go on; 0: that was all. */
  3: optional i64 next_key = 0
}

/**
 * What is left of these buckets, all replicas of which have lost something, is from now on all that there is. Begins it;
 * to be asked for again if the cluster state changes before they are gone from an answer to listTroubles.
 */
struct AcceptLoss {
  1: optional list<i64> buckets = []
}

struct AcceptLossReply {
  1: optional Status status
  /** One for each bucket: NOT_FOUND if the receiver does not own it, INVALID_ARGUMENT if there is an intact replica. */
  2: optional list<Status> statuses = []
}

/**
 * The fleet controller asks a distributor which of its buckets could be served without these storage nodes. The receiver
 * asks the replicas that would be left what they hold.
 */
struct CheckWithout {
  1: optional i64 state_version = 0
  2: optional list<i32> nodes = []
}

struct CheckWithoutReply {
  1: optional Status status
  2: optional i64 buckets = 0
  3: optional i64 unavailable = 0
  /** Some of them: "bucket: reason". */
  4: optional list<string> reasons = []
  5: optional i64 state_version = 0
}

/** A fleet controller without records takes over what nodes report. Documents are not touched. */
struct RecoverState {
  1: optional bool dry_run = false
  /** Although nodes do not answer. */
  2: optional bool force = false
  3: optional string who = ""
}

struct RecoverStateReply {
  1: optional Status status
  /** Why nothing was recovered; empty: it was, or would be. */
  2: optional list<string> refusals = []
  3: optional list<string> warnings = []
  /** What the nodes know, one line a node. */
  4: optional list<string> found = []
  5: optional string state = ""
  6: optional string distribution = ""
  7: optional i64 state_version = 0
  /** Version of the state that is published next: above all versions that any node may know. */
  8: optional i64 next_version = 0
  9: optional i64 term = 0
  10: optional i64 schema_version = 0
  11: optional i64 schemas = 0
  12: optional i64 config_version = 0
  13: optional i64 settings = 0
}

/** What a storage node's replica is to the bucket's distributor. */
enum ReplicaRole {
  UNKNOWN = 0,
  /** Has every acknowledged write and is read. */
  MEMBER = 1,
  /** Gets every write, is not read, and becomes a member after a merge. */
  CATCHING_UP = 2,
  /** Not needed any more: to be looked through and deleted. */
  OBSOLETE = 3,
  /** On that node, and not known to the distributor. */
  UNLISTED = 4,
}

struct BucketReplica {
  1: optional i32 node = 0
  2: optional ReplicaRole role = ReplicaRole.UNKNOWN
  /** The replica has lost documents and is not repaired yet. */
  3: optional bool damaged = false
  /** Why the rest is not known: the node is not up, does not answer, or does not have the replica (NOT_FOUND). */
  4: optional Status status
  5: optional BucketInfo info
  /** As it is written down on the node. */
  6: optional ReplicaSet replica_set
  /** With ShowBucket.id: status of the document on this replica. NOT_FOUND: there is none; the timestamp is that of its removal. */
  7: optional Status document
  8: optional i64 timestamp_us = 0
  /** Checksum of the document's header and body part: equal for equal content. */
  9: optional i64 checksum = 0
  /** As it is on the node: now and then with more or fewer bits than BucketView.bucket. */
  10: optional i64 bucket = 0
}

struct BucketView {
  1: optional i64 bucket = 0
  /** UNKNOWN: none. */
  2: optional BucketTroubleKind trouble = BucketTroubleKind.UNKNOWN
  3: optional string reason = ""
  4: optional ReplicaSet replica_set
  /** Members in their order, then by node. */
  5: optional list<BucketReplica> replicas = []
}

/** What the receiver and all storage nodes that are up know of a bucket. WRONG_DISTRIBUTION if another distributor owns it,
 *  NOT_FOUND if nothing is known of it. */
struct ShowBucket {
  1: optional i64 bucket = 0
  /** Alternative to `bucket`: the bucket of this document, and the document on each replica. */
  2: optional string id = ""
}

struct ShowBucketReply {
  1: optional Status status
  /** Index of the distributor that answers. */
  2: optional i32 distributor = 0
  3: optional i64 state_version = 0
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
  ListTroublesReply listTroubles(1: ListTroubles request)
  AcceptLossReply acceptLoss(1: AcceptLoss request)
  CheckWithoutReply checkWithout(1: CheckWithout request)
  RecoverStateReply recoverState(1: RecoverState request)
  ShowBucketReply showBucket(1: ShowBucket request)
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
  ListEntriesReply listEntries(1: ListEntries request)
  FetchEntriesReply fetchEntries(1: FetchEntries request)
  CreateVisitorReply createVisitor(1: CreateVisitor request)
  VisitorNextReply visitorNext(1: VisitorNext request)
  DestroyVisitorReply destroyVisitor(1: DestroyVisitor request)
  ReadChangesReply readChanges(1: ReadChanges request)
  ListPluginsReply listPlugins(1: ListPlugins request)
}

/** Service of every node, for the fleet controller. */
service NodeService {
  PollReply poll(1: Poll request)
}
