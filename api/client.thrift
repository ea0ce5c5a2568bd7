/**
 * Calls for programs in any language: documents as JSON, visits and subscriptions in chunks, aggregations and jobs.
 *
 * A program needs this file, fjord.thrift beside it, and the address of one distributor. Every distributor answers every
 * call, whichever distributor owns the documents. Transport and protocols are those of fjord.thrift, on the same port;
 * the rules of change are those of README.md. docs/clients/thrift.md has examples.
 *
 * Every request has `timeout_ms`; every reply has `status`. A missing status is an error. An error that a limit causes names
 * the setting. `status.node` is the node that reported the error, or else the distributor that answers.
 */
include "fjord.thrift"

namespace cpp fjord.api.client
namespace py fjord_client

// ---------------------------------------------------------------------------------------------------------------------
// Documents

struct ReadDocument {
  /** Longest time until the answer, at most 10 minutes; 0: 30 seconds. */
  1: optional i64 timeout_ms = 0
  2: optional string id = ""
  /** "title,year", or a field set such as "[id]"; empty: all. */
  3: optional string fields = ""
  /** SESSION: linearizable. */
  4: optional fjord.Consistency consistency = fjord.Consistency.DEFAULT
}

struct ReadDocumentReply {
  /** NOT_FOUND if there is no such document. */
  1: optional fjord.Status status
  /** {"put": id, "fields": {...}} */
  2: optional string json = ""
  /** Version: microseconds since 1970. */
  3: optional i64 timestamp_us = 0
}

struct WriteDocument {
  1: optional i64 timeout_ms = 0
  /** PUT, UPDATE or REMOVE. */
  2: optional fjord.OperationKind kind = fjord.OperationKind.UNKNOWN
  3: optional string id = ""
  /** Put: the fields as a JSON object. Update: the changes, {"sold": {"increment": 1}} (document/FEED.md). */
  4: optional string json = ""
  /** A selection that must hold for the stored document, else TEST_AND_SET_FAILED. */
  5: optional string condition = ""
  /** The stored document must have this version, else TEST_AND_SET_FAILED. 0: there must be no document. Not set: any. */
  6: optional i64 required_version
  /** Update, and put with a condition: create the document if it does not exist. */
  7: optional bool create = false
  8: optional fjord.Durability durability = fjord.Durability.DEFAULT
  /** Of an earlier attempt whose outcome is in doubt: both together are applied at most once. */
  9: optional binary token = ""
}

struct WriteDocumentReply {
  1: optional fjord.Status status
  /** Version of the written document. */
  2: optional i64 timestamp_us = 0
  /** The document existed before. */
  3: optional bool existed = false
  /** With TEST_AND_SET_FAILED: version of the stored document; 0: there is none. */
  4: optional i64 version_us = 0
  /** The write may have been applied. Repeat it with this token. */
  5: optional bool in_doubt = false
  6: optional binary token = ""
}

// ---------------------------------------------------------------------------------------------------------------------
// Visits

/** Begins to read all documents that a selection matches. The distributor reads ahead, within bounds. */
struct OpenVisit {
  1: optional i64 timeout_ms = 0
  /** "music.year > 1990"; empty: all. */
  2: optional string selection = ""
  /** Only documents of this type; empty: all types but those of jobs. */
  3: optional string type = ""
  /** Only these fields; none: all. */
  4: optional list<string> fields = []
  5: optional bool ids_only = false
  /** Gives removed documents, too. */
  6: optional bool include_removed = false
  /** Only versions written in this time, microseconds since 1970; 0: no limit. */
  7: optional i64 from_us = 0
  8: optional i64 to_us = 0
  /** Each bucket as it was at one moment. */
  9: optional bool snapshot = false
  /** Number of slices that are read in parallel. */
  10: optional i32 slices = 1
  /** With slice_count: only this slice, counted from 0, for one of several programs. */
  11: optional i64 slice_index = 0
  12: optional i64 slice_count = 0
  /** NextVisitReply.cursor of an earlier visit of the same documents, at any distributor. */
  13: optional string resume = ""
  14: optional fjord.Priority priority = fjord.Priority.DEFAULT
}

struct OpenVisitReply {
  /** BUSY with `setting` if too many visits are open. */
  1: optional fjord.Status status
  /** Names the visit in later calls, all to the same distributor. */
  2: optional string visit = ""
}

struct NextVisit {
  /** An answer without documents comes if none has arrived in this time; 0: 30 seconds. */
  1: optional i64 timeout_ms = 0
  2: optional string visit = ""
  /** Limits of the answer; 0: the server's. At least one document is returned, however large. */
  3: optional i32 documents_max = 0
  4: optional i32 bytes_max = 0
}

struct VisitedDocument {
  1: optional string id = ""
  /** {"put": id, "fields": {...}}; empty for a removed document. */
  2: optional string json = ""
  3: optional i64 timestamp_us = 0
  4: optional bool removed = false
}

struct VisitProgress {
  /** 0: not known yet. */
  1: optional i64 buckets_total = 0
  2: optional i64 buckets_done = 0
  /** In completed buckets. */
  3: optional i64 documents_read = 0
  4: optional i64 documents_matched = 0
  /** 0 to 1. */
  5: optional double fraction_done = 0
}

struct NextVisitReply {
  /** NOT_FOUND if the visit has ended or was opened elsewhere; its message says why. */
  1: optional fjord.Status status
  2: optional list<VisitedDocument> documents = []
  /** Names all documents given so far. A visit with this in `resume` gives the others. */
  3: optional string cursor = ""
  /** All documents were given. The visit is closed. */
  4: optional bool is_over = false
  5: optional VisitProgress progress
}

struct CloseVisit {
  1: optional i64 timeout_ms = 0
  2: optional string visit = ""
}

struct CloseVisitReply {
  1: optional fjord.Status status
}

// ---------------------------------------------------------------------------------------------------------------------
// Subscriptions

/** Begins to follow the changes of the documents that a selection matches, at first with those that are there. */
struct OpenSubscription {
  1: optional i64 timeout_ms = 0
  2: optional string selection = ""
  /** Only documents of this type; empty: all types but those of jobs. */
  3: optional string type = ""
  /** Only these fields; none: all. */
  4: optional list<string> fields = []
  /** NextChangesReply.cursor of an earlier subscription with equal selection, type and fields, at any distributor. */
  5: optional string resume = ""
  /** Skips the documents that are there. Without effect with `resume`. */
  6: optional bool from_now = false
  /** Time between two questions to the storage nodes while nothing changes; 0: 500. */
  7: optional i64 poll_interval_ms = 0
}

struct OpenSubscriptionReply {
  /** BUSY with `setting` if too many subscriptions are open. */
  1: optional fjord.Status status
  /** Names the subscription in later calls, all to the same distributor. */
  2: optional string subscription = ""
}

struct NextChanges {
  /** An answer without changes comes if none has arrived in this time; 0: 30 seconds. */
  1: optional i64 timeout_ms = 0
  2: optional string subscription = ""
  /** Limits of the answer; 0: the server's. At least one change is returned, however large. */
  3: optional i32 changes_max = 0
  4: optional i32 bytes_max = 0
}

struct DocumentChange {
  1: optional string id = ""
  /** {"put": id, "fields": {...}}; empty if removed. */
  2: optional string json = ""
  3: optional i64 timestamp_us = 0
  /** The document was removed, or no longer matches. It may never have been given. */
  4: optional bool removed = false
}

enum SubscriptionState {
  UNKNOWN = 0,
  /** There may be more. */
  FOLLOWING = 1,
  /** With these changes, all that were made before the last look at the storage nodes have been given. */
  CAUGHT_UP = 2,
  /** The cluster has dropped removes newer than the cursor: discard all and begin without a cursor. The subscription is
   *  closed. */
  RESYNC = 3,
}

struct NextChangesReply {
  /** NOT_FOUND if the subscription has ended or was opened elsewhere; its message says why. */
  1: optional fjord.Status status
  /** Each at least once, in order for each document. */
  2: optional list<DocumentChange> changes = []
  /** A subscription with this in `resume` gives all later changes, and perhaps some of these again. */
  3: optional string cursor = ""
  4: optional SubscriptionState state = SubscriptionState.UNKNOWN
  /** With RESYNC: removes before this time were dropped. */
  5: optional i64 horizon_us = 0
}

struct CloseSubscription {
  1: optional i64 timeout_ms = 0
  2: optional string subscription = ""
}

struct CloseSubscriptionReply {
  1: optional fjord.Status status
}

// ---------------------------------------------------------------------------------------------------------------------
// Aggregations and jobs

/** The words of `fjord aggregate` (docs/reference/aggregate.md). */
struct AggregateWords {
  /** Documents of this type are read. As a later pass of a job: empty, it reads the rows of the pass before it. */
  1: optional string type = ""
  2: optional string selection = ""
  /** "city", "price / 100 AS hundred"; none: all documents are one group. */
  3: optional list<string> group_by = []
  /** "count()", "avg(price) AS mean" */
  4: optional list<string> aggregates = []
  /** "count > 5" */
  5: optional string having = ""
  /** "mean desc" */
  6: optional list<string> order_by = []
  /** 0: no limit. */
  7: optional i64 limit = 0
  /** Type of the documents that rows are stored as; empty: they are not stored. */
  8: optional string into = ""
  /** Namespace of these documents; empty: "results". */
  9: optional string into_namespace = ""
  /** Part of their ids: runs with equal names replace each other's documents. */
  10: optional string into_name = ""
}

/** Starts an aggregation, or asks for one that was started, and for its rows. */
struct Aggregate {
  /** If it has not ended in this time, the answer has `job` and no rows; 0: 30 seconds. */
  1: optional i64 timeout_ms = 0
  2: optional AggregateWords words
  /** Instead of `words`: AggregateReply.job of an earlier call, at any distributor. */
  3: optional string job = ""
  /** Number of the first row to return, and limit of the answer; 0: the server's. At least one row is returned. */
  4: optional i64 rows_from = 0
  5: optional i32 bytes_max = 0
  /** Reads only what changed since the last run of the same words. */
  6: optional bool incremental = false
  /** Settings of the job: "cpu_max": "2". */
  7: optional map<string, string> settings = {}
}

/** Without a member: no value, such as the average of no documents. */
struct Cell {
  1: optional i64 integer
  2: optional double number
  3: optional string text
  4: optional bool truth
  /** A value that is a JSON array or object, or the digits of an integer of more than 64 bits. */
  5: optional string json
}

struct Row {
  1: optional list<Cell> cells = []
}

struct AggregateReply {
  /** TOO_LARGE with `setting` if there are too many rows to be read here. */
  1: optional fjord.Status status
  /** For later calls, also if it has ended: with `rows_from` for further rows. */
  2: optional string job = ""
  3: optional bool has_ended = false
  /** Groups first, then aggregates. */
  4: optional list<string> columns = []
  5: optional list<Row> rows = []
  6: optional bool more_rows = false
  7: optional i64 documents_read = 0
  8: optional i64 documents_put = 0
  9: optional double fraction_done = 0
}

struct JobPassWords {
  /** "wordcount", or an application of a plugin. */
  1: optional string application = ""
  /** Document type that the first pass reads; a later pass reads the rows of the pass before it. */
  2: optional string type = ""
  3: optional string selection = ""
  4: optional map<string, string> parameters = {}
  /** Instead of `application`: text of a Lua program (docs/operating/scripts.md). */
  5: optional string script = ""
  /** Instead of all above: an aggregation. */
  6: optional AggregateWords aggregate
  /** Type, namespace and name of the documents that rows are stored as; empty type: they are not stored. */
  7: optional string into = ""
  8: optional string into_namespace = ""
  9: optional string into_name = ""
}

struct StartJob {
  1: optional i64 timeout_ms = 0
  /** One for each MapReduce. */
  2: optional list<JobPassWords> passes = []
  /** Limits: "cpu_max": "2", "priority": "background". */
  3: optional map<string, string> settings = {}
  /** Reads only what changed since the last equal job. */
  4: optional bool incremental = false
  /** Namespace of result documents; empty: "results". */
  5: optional string output_namespace = ""
  /** Chosen by the client, so that a repeated call starts one job only; empty: the server chooses. */
  6: optional string job = ""
}

struct StartJobReply {
  1: optional fjord.Status status
  2: optional string job = ""
}

enum JobState {
  UNKNOWN = 0,
  QUEUED = 1,
  RUNNING = 2,
  PAUSED = 3,
  /** The process that ran it is gone. Another one goes on with it. */
  ORPHANED = 4,
  DONE = 5,
  FAILED = 6,
  CANCELLED = 7,
}

struct JobInfo {
  1: optional string job = ""
  2: optional JobState state = JobState.UNKNOWN
  /** "map", "reduce", ... */
  3: optional string phase = ""
  /** Of a failed job. */
  4: optional fjord.Status error
  /** Of the first pass. */
  5: optional string application = ""
  6: optional string type = ""
  7: optional string selection = ""
  8: optional i32 passes = 1
  9: optional i32 passes_done = 0
  /** 0 to 1. */
  10: optional double fraction_done = 0
  11: optional i64 documents_read = 0
  /** Documents on which the map function failed. */
  12: optional i64 dead_letters = 0
  13: optional i64 results = 0
  /** "distributor.1" */
  14: optional string owner = ""
  15: optional i64 submitted_unix_us = 0
  /** 0: it has not ended. */
  16: optional i64 finished_unix_us = 0
}

/** Asks for jobs of the whole cluster. */
struct GetJobs {
  1: optional i64 timeout_ms = 0
  /** Empty: all. */
  2: optional string job = ""
}

struct GetJobsReply {
  /** NOT_FOUND if there is no such job. */
  1: optional fjord.Status status
  /** Oldest first. */
  2: optional list<JobInfo> jobs = []
}

/** Waits for the end of a job. */
struct AwaitJob {
  /** The answer comes when the job has ended, or after this time with the job as it is; 0: 30 seconds. */
  1: optional i64 timeout_ms = 0
  2: optional string job = ""
}

struct AwaitJobReply {
  1: optional fjord.Status status
  2: optional JobInfo job
}

struct ChangeJob {
  1: optional i64 timeout_ms = 0
  2: optional string job = ""
  3: optional fjord.JobAction action = fjord.JobAction.UNKNOWN
  /** With SET: those that change. */
  4: optional map<string, string> settings = {}
}

struct ChangeJobReply {
  1: optional fjord.Status status
}

struct GetJobResults {
  1: optional i64 timeout_ms = 0
  2: optional string job = ""
  /** Number of the first result to return, and limit of the answer; 0: the server's. At least one is returned. */
  3: optional i64 results_from = 0
  4: optional i32 bytes_max = 0
}

struct JobResult {
  1: optional string key = ""
  /** JSON. */
  2: optional string value = ""
}

struct GetJobResultsReply {
  /** INVALID_ARGUMENT if the job is not done; TOO_LARGE with `setting` if there are too many results to be read here. */
  1: optional fjord.Status status
  /** By rising key. */
  2: optional list<JobResult> results = []
  3: optional bool more_results = false
}

// ---------------------------------------------------------------------------------------------------------------------

service ClientService {
  ReadDocumentReply readDocument(1: ReadDocument request)
  WriteDocumentReply writeDocument(1: WriteDocument request)
  OpenVisitReply openVisit(1: OpenVisit request)
  NextVisitReply nextVisit(1: NextVisit request)
  CloseVisitReply closeVisit(1: CloseVisit request)
  OpenSubscriptionReply openSubscription(1: OpenSubscription request)
  NextChangesReply nextChanges(1: NextChanges request)
  CloseSubscriptionReply closeSubscription(1: CloseSubscription request)
  AggregateReply aggregate(1: Aggregate request)
  StartJobReply startJob(1: StartJob request)
  GetJobsReply getJobs(1: GetJobs request)
  AwaitJobReply awaitJob(1: AwaitJob request)
  ChangeJobReply changeJob(1: ChangeJob request)
  GetJobResultsReply getJobResults(1: GetJobResults request)
  /** The ads whose keywords match a query (docs/operating/search.md). `timeout_ms` 0: the setting search.timeout. */
  fjord.SearchReply search(1: fjord.Search request)
}
