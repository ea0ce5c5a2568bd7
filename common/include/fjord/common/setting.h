#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

/// Every numeric setting of Fjord, declared once with its unit, default, bounds and meaning. The configuration file,
/// the live configuration, the tunables of the processes, the tuner and the reference pages take them from this table.
namespace fjord {

/// The form of a value. A value is an integer: a count, bytes, milliseconds, percent, 0 and 1, or the index of a
/// choice.
enum class SettingType { Integer, Bytes, Time, Ratio, Boolean, Choice };

/// Default of a setting that each process derives from its machine.
inline constexpr std::int64_t kDefaultOfMachine = std::numeric_limits<std::int64_t>::min();

struct SettingDeclaration {
  std::string_view name;
  SettingType type = SettingType::Integer;
  std::int64_t default_value = 0;
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::string_view used_by;
  /// Key of the configuration file that gives the value at the start, as a plain integer. Empty: no key. For a setting
  /// with kDefaultOfMachine, 0 in the file stands for the default.
  std::string_view file_key;
  bool is_live = false;  ///< `fjord config set` can change the setting while the cluster runs.
  std::string_view meaning;
  /// For type Choice: the names of the values, "off|on", in the order of their integers. New names are only added at
  /// the end, because the cluster's record stores the integers.
  std::string_view choices = {};

  constexpr bool has_default() const { return default_value != kDefaultOfMachine; }
};

/// Two settings that bound each other: `lower` <= `upper`; with `is_strict`, `lower` < `upper`.
struct SettingRule {
  std::string_view lower;
  std::string_view upper;
  bool is_strict = false;
  std::string_view why;  ///< Reason for the rule; an error message appends it after "or".
};

namespace settings_table {

inline constexpr std::int64_t kKiB = 1024;
inline constexpr std::int64_t kMiB = 1024 * kKiB;
inline constexpr std::int64_t kGiB = 1024 * kMiB;
inline constexpr std::int64_t kTiB = 1024 * kGiB;
inline constexpr std::int64_t kSecond = 1000;
inline constexpr std::int64_t kMinute = 60 * kSecond;
inline constexpr std::int64_t kHour = 60 * kMinute;
inline constexpr std::int64_t kDay = 24 * kHour;
inline constexpr std::int64_t kMany = std::int64_t{1} << 30;
inline constexpr bool kLive = true;
inline constexpr bool kStart = false;  ///< Value of `is_live`: the setting takes effect at the start of the process.
inline constexpr std::string_view kController = "fleet controller";
inline constexpr std::string_view kDistributor = "distributors";
inline constexpr std::string_view kStorage = "storage nodes";
inline constexpr std::string_view kTasks = "storage nodes, distributors";
inline constexpr std::string_view kAll = "all processes";

using enum SettingType;

// clang-format off
inline constexpr SettingDeclaration kSettings[] = {
    {"balancer.algorithm", Choice, 0, 0, 5, kController, "", kLive,
     "Decides which buckets are moved. After a change the memory of the former one is dropped.",
     "descent|weighted-move|two-tier|autoplacer|diffusion|local-search"},
    {"balancer.bytes_part", Ratio, 1, 0, 100, kController, "", kLive,
     "Share of the bytes of all replicas that one step of the balancer may move."},
    {"balancer.load", Choice, 2, 0, 2, kController, "", kLive,
     "What counts as load of a storage node. work: the number of its operations, where a write, a large document and a "
     "search count more than a read, by the processor time that they take. time: the time for which it executes them. "
     "operations: their number.",
     "time|operations|work"},
    {"balancer.mode", Choice, 1, 0, 2, kController, "", kLive,
     "off: loads are not collected. advise: the balancer shows what it would move. on: it moves buckets from hot storage "
     "nodes to cool ones.",
     "off|advise|on"},
    {"balancer.operations_min", Integer, 1000, 1, kMany, kController, "", kLive,
     "Rounds in which a storage node executes fewer operations of users on average say too little to move anything."},
    {"balancer.reads", Choice, 0, 0, 2, kDistributor, "", kLive,
     "Which replica serves a get, among those that may. random: any. least-loaded: nodes with less load more often. "
     "affinity: each replica serves a part of the documents, so that its page cache holds those.",
     "random|least-loaded|affinity"},
    {"balancer.round", Time, 10 * kSecond, 100, kHour, kController, "", kLive,
     "Interval at which the fleet controller collects the loads of buckets and may move some."},
    {"cluster.distribution_bits", Integer, 8, 1, 32, kController, "cluster.distribution_bits", kLive,
     "A new cluster begins with 2 to the power of this many buckets. A higher value takes effect when no bucket has fewer "
     "bits."},
    {"cluster.redundancy", Integer, 2, 1, 16, kController, "cluster.redundancy", kLive,
     "Replicas of each document, on different storage nodes."},
    {"controller.crash_period", Time, 10 * kMinute, kSecond, kDay, kController, "", kLive,
     "Crashes of a node are counted over this time."},
    {"controller.crashes_max", Integer, 10, 0, 1'000'000, kController, "", kLive,
     "A node that crashed more often within controller.crash_period stays down until it is stable."},
    {"controller.distributors_up_ratio_min", Ratio, 0, 0, 100, kController, "", kLive,
     "With a lower share of the distributors available the cluster is down: operations are refused with the reason."},
    {"controller.down_after", Time, 1800, 50, kHour, kController, "fleetcontroller.down_after_ms", kLive,
     "A node that has not answered for this time counts as down. It must be longer than controller.lease and than the "
     "interval at which the fleet controller polls."},
    {"controller.group_up_ratio_min", Ratio, 0, 0, 100, kController, "", kLive,
     "A group with a lower share of its storage nodes available is taken down as a whole; 0: never. Nodes that retire or "
     "are in maintenance count as available."},
    {"controller.groups_out_max", Integer, 1, 1, 1000, kController, "", kLive,
     "At most this many groups below the root may have nodes away for an operator's stop or maintenance to be safe. "
     "Without groups each node counts as one. Every bucket must keep a replica as well."},
    {"controller.lease", Time, 1500, 10, kHour, kController, "", kLive,
     "A distributor that was polled within this time may read from one replica without asking the others. It must be "
     "shorter than controller.down_after, and is never more than 5/6 of it."},
    {"controller.maintenance_max", Time, kHour, 0, 365 * kDay, kController, "", kLive,
     "A storage node that an operator has put in maintenance for longer counts as down: its data is replicated to other "
     "nodes. 0ms: it never does."},
    {"controller.pending_max", Time, 20 * kSecond, 100, kHour, kController, "", kLive,
     "How long a node that answers, and is to be taken down, may delay a new state by not acknowledging it."},
    {"controller.refused_after", Time, 400, 0, kHour, kController, "", kLive,
     "A node whose machine has refused connections for this time, because its process has ended, counts as down before "
     "controller.down_after is over; 0ms: it does not."},
    {"controller.stable_period", Time, kMinute, 0, kDay, kController, "", kLive,
     "A node that has answered without a break for this time is stable: its crashes are forgotten."},
    {"controller.storage_up_ratio_min", Ratio, 0, 0, 100, kController, "", kLive,
     "With a lower share of the storage nodes available the cluster is down: operations are refused with the reason, and "
     "data is not moved."},
    {"controller.transition_time", Time, 0, 0, kDay, kController, "", kLive,
     "A storage node that fell silent or stops is in maintenance for this time before it is down: no data is moved."},
    {"distributor.bucket_bytes_max", Bytes, 64 * kMiB, 1, kTiB, kDistributor, "", kLive,
     "A bucket with more bytes of documents is split in two."},
    {"distributor.bucket_entries_max", Integer, 200'000, 1, kMany, kDistributor, "", kLive,
     "A bucket with more documents and removes is split in two."},
    {"distributor.depth_max", Integer, 32, 1, 32, kDistributor, "", kLive,
     "Documents with collections and structs nested deeper are refused."},
    {"distributor.depth_warn", Integer, 16, 0, 32, kDistributor, "", kLive,
     "Documents with collections and structs nested deeper are counted and reported; 0: never."},
    {"distributor.document_bytes_max", Bytes, 64 * kMiB, 1, kGiB, kDistributor, "distributor_options.document_bytes_max", kLive,
     "Larger documents are refused."},
    {"distributor.document_bytes_warn", Bytes, 8 * kMiB, 0, kGiB, kDistributor, "", kLive,
     "Larger documents are counted and reported; 0: never."},
    {"distributor.fields_max", Integer, 1'000'000, 1, kMany, kDistributor, "", kLive,
     "Documents with more fields set are refused."},
    {"distributor.fields_warn", Integer, 10'000, 0, kMany, kDistributor, "", kLive,
     "Documents with more fields set are counted and reported; 0: never."},
    {"distributor.id_bytes_max", Bytes, 64 * kKiB, 1, 64 * kKiB, kDistributor, "", kLive,
     "Documents with longer ids are refused."},
    {"distributor.id_bytes_warn", Bytes, kKiB, 0, 64 * kKiB, kDistributor, "", kLive,
     "Documents with longer ids are counted and reported; 0: never."},
    {"distributor.merges_max", Integer, 8, 1, 1024, kDistributor, "distributor_options.merges_max", kLive,
     "Merges at once over all buckets of a distributor."},
    {"distributor.pending_bytes_max", Bytes, 256 * kMiB, 1, kTiB, kDistributor, "distributor_options.pending_bytes_max", kLive,
     "Bytes of operations in flight. More are refused with BUSY, operations of low priority earlier; clients wait."},
    {"distributor.pending_operations_max", Integer, 16'384, 1, kMany, kDistributor, "distributor_options.pending_operations_max",
     kLive, "Operations in flight. More are refused with BUSY, operations of low priority earlier; clients wait."},
    {"distributor.reads_when_cluster_down", Boolean, 1, 0, 1, kDistributor, "", kLive,
     "While the cluster is down (controller.storage_up_ratio_min, controller.distributors_up_ratio_min) writes are "
     "refused; false: reads and visits are refused, too."},
    {"distributor_options.operation_timeout_ms", Time, 30 * kSecond, 10, kHour, kDistributor,
     "distributor_options.operation_timeout_ms", kStart, "Time limit of an operation whose client gives none."},
    {"distributor_options.storage_timeout_ms", Time, 10 * kSecond, 10, kHour, kDistributor,
     "distributor_options.storage_timeout_ms", kStart,
     "Time after which a storage node that has not answered is asked again."},
    {"documents.bucket_tokens_max", Integer, 100'000, 0, kMany, kDistributor, "", kLive,
     "A bucket that keeps more idempotency keys drops the oldest before documents.token_retention is over, but none of "
     "the last minute; 0: no limit."},
    {"documents.remove_retention", Time, 14 * kDay, 0, 3650 * kDay, kDistributor, "", kLive,
     "How long a remove is remembered. A subscriber that was away for longer has to fetch everything again. A storage node "
     "may be away for any time. 0s: for good."},
    {"documents.token_retention", Time, kDay, 0, 3650 * kDay, kDistributor, "", kLive,
     "How long an operation is recognised by its idempotency key. One that is repeated later is done again. 0s: for good."},
    {"fleetcontroller.poll_interval_ms", Time, 300, 10, kMinute, kController, "fleetcontroller.poll_interval_ms", kStart,
     "Interval at which the fleet controller polls each node."},
    {"fleetcontroller.poll_timeout_ms", Time, 1500, 10, kMinute, kController, "fleetcontroller.poll_timeout_ms", kStart,
     "Time that a node has for its answer to a poll."},
    {"fleetcontroller.session_timeout_ms", Time, 6 * kSecond, 100, 10 * kMinute, kController,
     "fleetcontroller.session_timeout_ms", kStart,
     "ZooKeeper: a fleet controller that was silent for this time is leader no more."},
    {"fleetcontroller.start_grace_ms", Time, 2500, 0, 10 * kMinute, kController, "fleetcontroller.start_grace_ms", kStart,
     "Time after its own start for which the fleet controller waits for nodes that were up before it calls them down."},
    {"gateway.buffer_bytes", Bytes, 4 * kMiB, 64 * kKiB, kGiB, kDistributor, "", kLive,
     "Documents that a distributor reads ahead for one visit or subscription of a Thrift client. Storage nodes stop "
     "reading while more wait."},
    {"gateway.calls_max", Integer, 1024, 1, 1'000'000, kDistributor, "", kLive,
     "Calls of Thrift clients (api/client.thrift) in progress on a distributor. More are refused with BUSY."},
    {"gateway.chunk_bytes_max", Bytes, 4 * kMiB, kKiB, 64 * kMiB, kDistributor, "", kLive,
     "Bytes of documents or rows in one answer to a Thrift client; one document or row may be larger."},
    {"gateway.idle_timeout", Time, kMinute, 100, kDay, kDistributor, "", kLive,
     "A visit or subscription of a Thrift client that has not been asked for more for this time is closed."},
    {"gateway.results_bytes_max", Bytes, 64 * kMiB, kKiB, 64 * kGiB, kDistributor, "", kLive,
     "Bytes of results of one job or aggregation that a Thrift client can read; more are refused with TOO_LARGE. A "
     "distributor keeps up to as many for the next pages, and reads one job at a time."},
    {"gateway.subscriptions_max", Integer, 64, 0, 100'000, kDistributor, "", kLive,
     "Subscriptions of Thrift clients that are open on a distributor. More are refused with BUSY."},
    {"gateway.visits_max", Integer, 64, 0, 100'000, kDistributor, "", kLive,
     "Visits of Thrift clients that are open on a distributor. More are refused with BUSY."},
    {"log.file_bytes_max", Bytes, 64 * kMiB, 64 * kKiB, kTiB, kAll, "log.file_bytes_max", kStart,
     "Size of a file of the log, in log.directory, at which the process begins a new one."},
    {"log.files_max", Integer, 8, 1, 1000, kAll, "log.files_max", kStart,
     "Files of the log of a process: NODE.log, and earlier ones as NODE.log.1, NODE.log.2 and so on. 1: the file is emptied."},
    {"maintenance.bytes_per_s", Bytes, 128 * kMiB, kKiB, kTiB, kStorage, "", kLive,
     "Bytes that a storage node moves for merges each second at most, sent and received together. It moves less while "
     "users wait longer than without merges."},
    {"maintenance.bytes_per_s_min", Bytes, 4 * kMiB, kKiB, kTiB, kStorage, "", kLive,
     "Bytes that a storage node may always move for merges each second, however long users wait."},
    {"maintenance.gc_interval", Time, kHour, 100, 365 * kDay, kDistributor, "", kLive,
     "Interval at which each bucket is searched for documents that the keep_while of their type does not keep."},
    {"maintenance.moves_bytes_per_s", Bytes, 16 * kMiB, kKiB, kTiB, kStorage, "", kLive,
     "The same limit for data that only changes its place (a node was added, retires, or has another capacity), while 20 "
     "or more operations of users arrive each second. Replicas that are missing or differ are made as fast as "
     "maintenance.bytes_per_s allows."},
    {"maintenance.paused", Boolean, 0, 0, 1, kDistributor, "", kLive,
     "Nothing is moved, split, joined or collected. Replicas that are missing or differ are still repaired."},
    {"mapreduce.foreground_p99_target_ms", Integer, 0, 0, 60'000, kDistributor, "", kLive,
     "Jobs run fewer tasks while the 99th percentile of the latency of users' operations is above this many milliseconds; "
     "0: jobs ignore the latency."},
    {"mapreduce.incremental_bytes", Bytes, 256 * kMiB, 0, kTiB, kStorage, "", kLive,
     "Memory of a storage node for the partial results that incremental jobs keep for their next run, and for columns of "
     "values that jobs have read, which take a quarter of it at most."},
    {"mapreduce.job_memory_bytes", Bytes, 256 * kMiB, 4 * kKiB, 64 * kGiB, kDistributor, "", kLive,
     "Memory for the groups and results of one job in the distributor that runs it. A job that needs more goes through the "
     "store."},
    {"mapreduce.results_retention", Time, 7 * kDay, 0, 3650 * kDay, kDistributor, "", kLive,
     "Time after the end of a job after which its results are removed, whether they are documents or kept beside its "
     "record; 0: never."},
    {"mapreduce.script_memory_bytes", Bytes, kGiB, 0, 64 * kGiB, kTasks, "", kLive,
     "Memory of all scripts that run on a node at the same time: the memory_mb of each, and 16 MiB for its process. A task "
     "that does not fit waits; a job whose memory_mb does not fit alone is refused; 0: no scripts run here."},
    {"mapreduce.task_memory_bytes", Bytes, 64 * kMiB, 4 * kKiB, 64 * kGiB, kTasks, "", kLive,
     "Memory for the groups of one map or reduce task. More groups go to disk, or to the distributor that runs the job."},
    {"mapreduce.task_spill_bytes", Bytes, 16 * kGiB, 0, kTiB, kStorage, "", kLive,
     "Bytes that one map or reduce task writes to disk for groups beyond mapreduce.task_memory_bytes. A task that needs "
     "more fails with TOO_LARGE."},
    {"rpc.connections_max", Integer, 10'000, 16, 1'000'000, kAll, "rpc.connections_max", kStart,
     "Connections of clients to the port for calls, at most a quarter of the files that the process may open. A sixteenth as "
     "many more are kept for nodes of the cluster. Beyond them the connection ends that has been without a call for longest."},
    {"rpc.frame_bytes_max", Bytes, 64 * kMiB, 64 * kKiB, kGiB, kAll, "rpc.frame_bytes_max", kStart,
     "A connection that sends a longer frame is closed."},
    {"rpc.frame_timeout_ms", Time, 10 * kSecond, 50, kHour, kAll, "rpc.frame_timeout_ms", kStart,
     "A connection is closed that sends a part of a message and then nothing for this time, or less than 64 KiB each second "
     "beyond it."},
    {"rpc.idle_timeout_ms", Time, 15 * kMinute, 50, kDay, kAll, "rpc.idle_timeout_ms", kStart,
     "A client without a call for this time is told goodbye and its connection closed, after a minute at most before its "
     "first call. It connects again for the next call. Nodes of the cluster stay connected."},
    {"rpc.io_threads", Integer, 1, 1, 64, kAll, "rpc.io_threads", kStart,
     "Threads of a process for sockets, for each direction of calls."},
    {"rpc.poll_us", Integer, 60, 0, 10'000, kAll, "rpc.poll_us", kStart,
     "Microseconds for which a thread for sockets looks for messages before it sleeps, while most of its waits are short. "
     "It takes processor time that no other thread wants, but which counts against the limit of a container; 0: it sleeps "
     "at once."},
    {"rpc.received_bytes_max", Bytes, 512 * kMiB, kMiB, kTiB, kAll, "rpc.received_bytes_max", kStart,
     "Memory of a process for received messages and their answers, of all connections to the port for calls. While it is used "
     "up, no more is read. A quarter of it may be messages that have not arrived whole; beyond it the largest is given up."},
    {"search.affinity_multipliers", Boolean, 1, 0, 1, kDistributor, "", kLive,
     "Replicas with more load than others are searched less often, by what they say of their load."},
    {"search.affinity_shadow", Boolean, 0, 0, 1, kDistributor, "", kLive,
     "A broker keeps a model of the cache of each storage node and searches a replica that has the lists of the query."},
    {"search.affinity_table", Integer, 0, 0, kMany, kDistributor, "", kLive,
     "Number of the voting table by which replicas are chosen for searches (`fjord search affinity deploy`); 0: none."},
    {"search.cache_bytes", Bytes, 64 * kMiB, 0, kTiB, kStorage, "", kLive,
     "Memory of a storage node for what searches read from the files of its keyword index."},
    {"search.cache_eviction", Choice, 0, 0, 1, kStorage, "", kLive,
     "Which lists leave the cache of the keyword index: the least recently used ones, or those least used since they entered.",
     "lru|lfu"},
    {"search.log_part", Ratio, 0, 0, 100, kDistributor, "", kLive,
     "Part of the queries of searches that a distributor records, so that voting tables can be trained from them; 0: none."},
    {"search.log_queries_max", Integer, 100'000, 1000, 10'000'000, kDistributor, "", kLive,
     "Recorded queries that are kept for each distributor; new ones replace the oldest."},
    {"search.reserve_micros", Integer, 10'000, 0, 1'000'000'000'000, kDistributor, "", kLive,
     "Keywords that bid less take no part in searches, and no click costs less. In millionths of a unit of money."},
    {"search.searches_max", Integer, 1000, 1, 1'000'000, kDistributor, "", kLive,
     "Searches that a distributor does at the same time; more are refused with BUSY."},
    {"search.synonyms", Integer, 0, 0, kMany, kDistributor, "", kLive,
     "Number of the list of synonyms by which queries are searched in more forms (`fjord search synonyms deploy`); 0: none."},
    {"search.timeout", Time, 500, 1, kMinute, kDistributor, "", kLive,
     "Time limit of a search that names none. What is not searched by then is missing in the answer."},
    {"storage.dead_percent_max", Ratio, 30, 1, 99, kStorage, "", kLive,
     "Share of a slotfile that replaced and removed documents may take before the file is rewritten."},
    {"storage.entries_max", Integer, 8192, 4, 1 << 24, kStorage, "storage_options.entries_max", kLive,
     "Entries of a slotfile above which the slotfiles of its bucket are split in two."},
    {"storage.file_bytes_max", Bytes, 16 * kMiB, 4 * kKiB, 2 * kGiB, kStorage, "storage_options.slotfile_bytes_max", kLive,
     "Bytes of a slotfile above which the slotfiles of its bucket are split in two."},
    {"storage.foreground_cpu_percent", Integer, 25, 0, 100, kStorage, "", kLive,
     "Processors of the machine, in percent and rounded up, that visitors and jobs do not use while 20 or more operations "
     "of users arrive each second. Visitors and jobs have at least one processor. 0: none is kept free."},
    {"storage.held_bytes_max", Bytes, 64 * kMiB, 1, kTiB, kStorage, "", kLive,
     "Memory for writes that are in the journal and not yet in slotfiles."},
    {"storage.index_bytes_max", Bytes, kGiB, 1, kTiB, kStorage, "", kLive, "Memory for the indexes of slotfiles."},
    {"storage.journal_bytes_max", Bytes, 256 * kMiB, 1, kTiB, kStorage, "", kLive,
     "Approximate size of the journal that is replayed after a crash."},
    {"storage.scrub_bytes_per_second", Bytes, 4 * kMiB, 0, kTiB, kStorage, "", kLive,
     "Rate at which all stored data is read and verified; 0: not at all."},
    {"storage.slotfiles_max", Integer, 64, 1, 64, kStorage, "storage_options.slotfiles_max", kLive,
     "Slotfiles of a bucket; the next power of two below counts."},
    {"storage.space_hysteresis_percent", Integer, 2, 0, 101, kStorage, "storage_options.space_hysteresis_percent", kLive,
     "How far used space must fall below the beginning of a stage for the stage to end, in percent."},
    {"storage.space_refuse_all_percent", Integer, 98, 0, 101, kStorage, "storage_options.space_refuse_all_percent", kLive,
     "Used space from which only removes are written, and what other replicas have, down to half of the space left then, in percent."},
    {"storage.space_refuse_external_percent", Integer, 95, 0, 101, kStorage, "storage_options.space_refuse_external_percent",
     kLive, "Used space from which puts are refused with NO_SPACE, in percent. Reads, removes and repair go on."},
    {"storage.space_reserve_bytes", Bytes, 256 * kMiB, 0, kTiB, kStorage, "storage_options.space_reserve_bytes", kLive,
     "With less free space only removes are written, and what other replicas have, down to half of it; with less than twice this, puts are refused."},
    {"storage.space_throttle_percent", Integer, 92, 0, 101, kStorage, "storage_options.space_throttle_percent", kLive,
     "Used space from which a growing share of puts is answered BUSY, in percent. Clients try again."},
    {"storage.space_warn_percent", Integer, 85, 0, 101, kStorage, "storage_options.space_warn_percent", kLive,
     "Used space of the file system from which a storage node warns, in percent."},
    {"storage.visitors_max", Integer, kDefaultOfMachine, 1, 1024, kStorage, "storage_options.visitors_max", kLive,
     "Threads of a storage node for interactive visitors, and as many for visitors in the background. About as many "
     "visitors of each kind run at once; others wait. Default: 2.5 for each processor."},
    {"storage.visitors_queued_max", Integer, 256, 1, 65'536, kStorage, "", kLive,
     "Visitors that wait on a storage node. More are refused with BUSY, visitors in the background from half of it on."},
    {"storage_options.docblock_bytes", Bytes, 512 * kKiB, 4 * kKiB, 16 * kMiB, kStorage, "storage_options.docblock_bytes", kStart,
     "Bytes of documents that a visit reads and sends as one block."},
    {"storage_options.open_files_max", Integer, 1024, 16, 1'000'000, kStorage, "storage_options.open_files_max", kStart,
     "Files that a stripe keeps open."},
    {"storage_options.plugin_call_timeout_ms", Time, kMinute, 10, kHour, kTasks, "storage_options.plugin_call_timeout_ms",
     kStart,
     "A visitor of a plugin that spends longer on a block of documents, or an application on a document, is ended. On "
     "distributors it is 10 s at most."},
    {"storage_options.plugin_memory_bytes", Bytes, kGiB, 64 * kMiB, kTiB, kTasks, "storage_options.plugin_memory_bytes", kStart,
     "Address space of the process in which a visitor or a task of a plugin runs."},
    {"storage_options.stripes", Integer, 0, 0, 64, kStorage, "storage_options.stripes", kStart,
     "Threads that share the buckets, a power of two; 0: one, or two with two processors and more. A folder keeps the number "
     "that it was made with."},
    {"storage_options.visitor_idle_ms", Time, kMinute, kSecond, kHour, kStorage, "storage_options.visitor_idle_ms", kStart,
     "A visitor whose client has been silent for this time is ended."},
};

inline constexpr SettingRule kRules[] = {
    {"controller.lease", "controller.down_after", true,
     "a distributor would read from one replica when others may already count the distributor as down"},
    {"fleetcontroller.poll_interval_ms", "controller.down_after", true,
     "every node would count as down between two polls"},
    {"maintenance.bytes_per_s_min", "maintenance.bytes_per_s", false, "the minimum would exceed the maximum"},
    {"distributor.document_bytes_warn", "distributor.document_bytes_max", false,
     "documents would be refused before anything is reported"},
    {"distributor.document_bytes_max", "rpc.frame_bytes_max", false, "a document of that size could not be sent"},
    {"storage.space_warn_percent", "storage.space_throttle_percent", false, "a stage would begin before the one below it"},
    {"storage.space_throttle_percent", "storage.space_refuse_external_percent", false,
     "a stage would begin before the one below it"},
    {"storage.space_refuse_external_percent", "storage.space_refuse_all_percent", false,
     "a stage would begin before the one below it"},
};
// clang-format on

}  // namespace settings_table

/// Returns all settings, ordered by name.
constexpr std::span<const SettingDeclaration> settings() { return settings_table::kSettings; }
/// Returns the rules between settings.
constexpr std::span<const SettingRule> setting_rules() { return settings_table::kRules; }

/// Returns the setting with that name; null if there is none.
constexpr const SettingDeclaration* find_setting(std::string_view name) {
  for (const SettingDeclaration& setting : settings()) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

/// Returns the setting that the configuration file has under `key`; null if there is none.
constexpr const SettingDeclaration* find_setting_of_key(std::string_view key) {
  for (const SettingDeclaration& setting : settings()) {
    if (!key.empty() && setting.file_key == key) return &setting;
  }
  return nullptr;
}

/// Returns the default of a setting. An unknown name, or a setting without a fixed default, does not compile.
consteval std::int64_t setting_default(std::string_view name) {
  // Without find_setting(): with -fsanitize=undefined, g++ 12 refuses to compare a pointer with null in a constant.
  for (const SettingDeclaration& setting : settings_table::kSettings) {
    if (setting.name == name && setting.has_default()) return setting.default_value;
  }
  throw "no setting with a default has this name";
}

}  // namespace fjord
