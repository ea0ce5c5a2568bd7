#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli.h"
#include "fjord/library/cluster_status.h"

/// One function for each command, with the options that main.cpp has parsed. Each returns the exit code.
namespace fjord::cli {

struct DevArgs {
  std::string directory;
  int gateways = -1;  ///< Number of gateways; -1: that of the folder, or the default.
};
int run_dev(const DevArgs& args);

struct LocalArgs {
  std::string directory;
  std::string node;
  int storage = 0;  ///< Number of storage nodes; 0: that of the folder, or the default.
  int distributors = 0;
  int redundancy = 0;
  int gateways = -1;  ///< Number of gateways; -1: that of the folder, or the default.
  std::string ports = "usual";
  double timeout_s = 30;
  std::string output = "text";
  bool json() const { return output == "json"; }
};
int run_local_create(const LocalArgs& args);
int run_local_start(const LocalArgs& args);
int run_local_stop(const LocalArgs& args);
int run_local_status(const LocalArgs& args);
int run_local_kill(const LocalArgs& args);
int run_local_restart(const LocalArgs& args);
int run_local_add_node(const LocalArgs& args);

struct SchemaArgs {
  Common common;
  std::vector<std::string> files;
  std::vector<std::string> may_drop;
};
int run_schema_deploy(const SchemaArgs& args);
int run_schema_list(const SchemaArgs& args);

struct FeedArgs {
  Common common;
  std::vector<std::string> files;
  std::uint64_t errors_shown = 100;
  std::size_t in_flight = 0;
  bool background = false;
  std::string progress = "auto";
  // For import only.
  std::string type;
  std::string id_field;
  bool id_row = false;
  bool ignore_unknown = false;
  bool create_only = false;
  bool convert_values = false;
  std::string namespace_;
  std::string cursor_file;
};
int run_feed(const FeedArgs& args);
int run_import(const FeedArgs& args);

struct DocumentArgs {
  Common common;
  std::vector<std::string> ids;  ///< Used by get and remove.
  std::string id;                ///< Used by put and update.
  std::string type;              ///< Type for ids without one; empty: each id names its type.
  std::string json;              ///< Used by put and update: fields or changes, or the file that has them, or "-".
  std::string condition;         ///< Used by put, update and remove.
  bool create = false;           ///< Used by put and update.
  std::string durability = "default";
  std::string token;
  std::string fields;  ///< Used by get.
  std::string consistency = "default";
  std::optional<std::uint64_t> if_version;  ///< Used by put, update and remove; 0: only if there is no document.
  bool versions = false;                    ///< Used by get: prints the version with each document.
  std::string node;                         ///< Used by get: "storage.2", or empty.
};
int run_put(const DocumentArgs& args);
int run_update(const DocumentArgs& args);
int run_get(const DocumentArgs& args);
int run_remove(const DocumentArgs& args);

/// The file that keeps how far a visit or a change of many documents is: its cursor.
struct CursorArgs {
  std::string file;          ///< Is kept up to date, and read first if it is there. Empty: none.
  std::string kept_file;     ///< Former --progress FILE: is kept up to date, and not read.
  std::string resumed_file;  ///< Former --resume FILE: is read, and has to be there.

  /// Returns the path of the file to keep up to date; empty without one.
  const std::string& file_to_keep() const;
  /// Returns the path of the file that read() reads; empty without one.
  const std::string& file_to_read() const;
  /// Returns the cursor to go on from; empty to begin. Errors: those of read_cursor_file().
  Result<std::string> read() const;
};

/// Returns the content of a file with a cursor. Errors: NotFound, IoError; InvalidArgument if it is empty.
Result<std::string> read_cursor_file(const std::string& file);
/// Returns an error of the library about a cursor, "resume: ...", with the name of its file and what to do. Returns
/// any other status as it is.
Status name_cursor_file(const Status& status, const std::string& file);

struct VisitArgs {
  Common common;
  std::string type;
  std::string selection;
  std::string fields;
  std::string visitor = "dump";
  std::vector<std::string> parameters;  ///< Parameters of the visitor, "name=value".
  std::string from;
  std::string to;
  bool removes = false;
  bool snapshot = false;
  std::uint64_t slices = 1;
  std::string slice;  ///< "k/n": part k of n.
  CursorArgs cursor;
  std::uint64_t limit = 0;  ///< Number of documents; 0: no limit.
  bool count = false;
  std::uint32_t visitors_per_node = 4;
  std::uint32_t buckets_per_visitor = 0;
  std::uint32_t buckets_at_once = 1;
  std::string priority;  ///< Empty: normal if the visit has a limit, else background.
  std::string progress = "auto";
  bool explain = false;
};
int run_visit(const VisitArgs& args);

struct SearchArgs {
  Common common;
  std::string query;
  std::vector<std::string> context;  ///< Each is "name=value".
  std::uint32_t limit = 4;
  std::uint32_t within_ms = 0;  ///< 0: the value of the cluster's setting.
  bool session = false;
  bool explain = false;
};
int run_search(const SearchArgs& args);

/// Arguments of search affinity.
struct AffinityArgs {
  Common common;
  std::string queries;    ///< File with the queries; empty with `recorded`.
  bool recorded = false;  ///< The queries that the cluster has recorded.
  std::string table;      ///< File of a table, or the number of a table in the cluster.
  std::string sizes;      ///< File with the number of pages of each word's list.
  bool from_index = false;
  unsigned replicas = 0;
  std::uint64_t cache_pages = 0;  ///< 0: computed from miss_percent.
  double miss_percent = 10;
  std::string eviction = "lru";
  std::string method = "bp";
  unsigned rounds = 20;
  std::string corpus;
  std::uint64_t seed = 1;
  std::uint64_t number = 0;  ///< Used by deploy; 0: the next free number.
  bool foreign = false;
  bool yes = false;
};
int run_affinity_train(const AffinityArgs& args);
int run_affinity_simulate(const AffinityArgs& args);
int run_affinity_show(const AffinityArgs& args);
int run_affinity_deploy(const AffinityArgs& args);

struct SynonymArgs {
  Common common;
  std::string file;
  std::uint64_t number = 0;  ///< deploy: 0 is the next free number; show: 0 is the list in force.
  bool yes = false;
};
int run_synonyms_deploy(const SynonymArgs& args);
int run_synonyms_show(const SynonymArgs& args);

/// Arguments of remove and update with --selection.
struct BulkArgs {
  Common common;
  std::string type;
  std::string selection;
  std::string changes;  ///< For update: JSON, a file, or - for standard input.
  CursorArgs cursor;
  std::string progress = "auto";
  std::size_t in_flight = 0;
  bool dry_run = false;
  bool yes = false;
};
int run_bulk_remove(const BulkArgs& args);
int run_bulk_update(const BulkArgs& args);

struct ExportArgs {
  Common common;
  std::string file;
  std::string type;
  std::string selection;
  std::string fields;
  std::string from;
  std::string to;
  std::string slice;
  bool resume = false;
  bool overwrite = false;
  bool snapshot = false;
  std::uint32_t visitors_per_node = 4;
  std::uint32_t buckets_per_visitor = 0;
  std::uint32_t buckets_at_once = 1;
  std::string priority = "background";
  std::string progress = "auto";
};
int run_export(const ExportArgs& args);

struct SubscribeArgs {
  Common common;
  std::string type;
  std::string selection;
  std::string fields;
  std::string cursor_file;     ///< Empty: none.
  std::string from = "start";  ///< Starting point without a cursor: "start" or "now".
  double interval_s = 0.5;
  bool print_cursors = false;
  bool print_tokens = false;  ///< The former form of print_cursors, whose lines name the cursor "token".
  bool once = false;
};
int run_subscribe(const SubscribeArgs& args);

struct JobArgs {
  Common common;
  std::string job;
  std::string application;
  std::string type;
  std::string selection;
  std::vector<std::string> parameters;
  std::string script;             ///< File of a Lua program.
  std::vector<std::string> then;  ///< Later passes, as JSON.
  std::string into_namespace;
  std::string name;
  std::string output_namespace;
  unsigned visitors_per_node = 0;
  unsigned output_buckets = 0;
  std::string shuffle = "auto";
  bool incremental = false;
  std::vector<std::string> settings;
  bool wait = false;
  bool remove_results = false;
  std::string progress = "auto";
};
int run_job_run(const JobArgs& args);
int run_job_list(const JobArgs& args);
int run_job_show(const JobArgs& args);
int run_job_watch(const JobArgs& args);
int run_job_cancel(const JobArgs& args);
int run_job_pause(const JobArgs& args);
int run_job_resume(const JobArgs& args);
int run_job_set(const JobArgs& args);
int run_job_dead_letters(const JobArgs& args);
int run_job_results(const JobArgs& args);
int run_job_remove(const JobArgs& args);

struct AggregateArgs {
  Common common;
  std::string spec_file;
  std::string type;
  std::string selection;
  std::vector<std::string> group_by;
  std::vector<std::string> aggregates;
  std::string having;
  std::vector<std::string> order_by;
  std::uint64_t limit = 0;
  std::vector<std::string> then;  ///< Later passes, as JSON.
  std::string into;
  std::string into_namespace;
  std::string name;  ///< Name of the results, part of the ids of the stored rows.
  std::string shuffle = "auto";
  bool incremental = false;
  std::vector<std::string> settings;
  std::string progress = "auto";
};
int run_aggregate(const AggregateArgs& args);

int run_status(const Common& common);

int run_plugin_list(const Common& common);

struct BucketArgs {
  Common common;
  std::uint64_t lines = 100;
  std::vector<std::string> buckets;
  std::string id;  ///< For show: id of a bucket or of a document.
  bool all = false;
  bool yes = false;
};
int run_bucket_list(const BucketArgs& args);
int run_bucket_show(const BucketArgs& args);
int run_bucket_accept_loss(const BucketArgs& args);

struct PlacementArgs {
  unsigned nodes = 0;
  unsigned groups = 1;
  std::uint64_t buckets = 0;
  unsigned replicas = 3;
  unsigned tokens = 200;
  std::string change = "add";
  std::string plot;  ///< Output file of the plot, or empty.
  std::string output = "text";
  bool json() const { return output == "json"; }
};
int run_placement_compare(const PlacementArgs& args);

struct BalanceArgs {
  Common common;
  std::string algorithm;  ///< Empty: the one in force.
  std::string sample;     ///< Feed file with a sample of the documents that are to be put; empty: plan by loads.
  std::string reason;
  bool yes = false;
  std::uint64_t lines = 10;
  std::uint64_t limit = 0;     ///< Used by slices; 0: all buckets.
  std::uint64_t step = 0;      ///< Used by revert: number of the step.
  std::string file;            ///< Used by record; by simulate and compare: recorded loads, or empty.
  std::uint64_t rounds = 300;  ///< Used by record, simulate and compare.
  std::string trace = "moving-hotspot";
  std::size_t nodes = 20;
  std::uint64_t buckets = 16'384;
  std::uint64_t seed = 1;
};
int run_balance_plan(const BalanceArgs& args);
int run_balance_apply(const BalanceArgs& args);
int run_balance_status(const BalanceArgs& args);
int run_balance_slices(const BalanceArgs& args);
int run_balance_history(const BalanceArgs& args);
int run_balance_revert(const BalanceArgs& args);
int run_balance_record(const BalanceArgs& args);
int run_balance_simulate(const BalanceArgs& args);
int run_balance_compare(const BalanceArgs& args);

struct NodeArgs {
  Common common;
  NodeAction action = NodeAction::StopCheck;
  std::vector<std::string> nodes;
  std::string address;
  std::string group;
  std::string capacity;
  std::string balance_to;
  std::string reason;
  bool dry_run = false;
  bool force = false;
  double wait_s = 0;  ///< Longest wait in seconds; 0: no wait.
};
int run_node(const NodeArgs& args);
int run_node_list(const Common& common);

struct StateArgs {
  Common common;
  unsigned lines = 20;
  std::vector<std::string> about;   ///< For log: only entries with one of these texts. Empty: all.
  std::vector<std::string> except;  ///< For log: no entry with one of these texts.
  // Used by recover only.
  bool from_nodes = false;
  bool dry_run = false;
  bool force = false;
  std::string controller;  ///< Address of the fleet controller; empty: the one that a distributor uses.
};
int run_state_log(const StateArgs& args);
int run_state_recover(const StateArgs& args);
int run_state_show(const StateArgs& args);

struct ConfigArgs {
  Common common;
  std::vector<std::string> names;  ///< NAME, or NAME=VALUE for set.
  std::uint64_t version = 0;
  bool explain = false;
  bool dry_run = false;
  std::string reason;
};
int run_config_list(const ConfigArgs& args);
int run_config_get(const ConfigArgs& args);
int run_config_set(const ConfigArgs& args);
int run_config_unset(const ConfigArgs& args);
int run_config_revert(const ConfigArgs& args);
int run_config_history(const ConfigArgs& args);
/// Pauses or resumes the movement of data between nodes.
int run_maintenance(const ConfigArgs& args, bool paused);

struct TuneArgs {
  Common common;
  std::string workload;  ///< File of the workload; empty: the running cluster.
  std::string profile;   ///< File of the hardware profile, or empty.
  bool live = false;
  std::string directory = ".";  ///< For calibrate: folder to measure.
  std::string output_file = "fjord-profile.yaml";
  double seconds = 20;
  std::uint64_t file_mib = 512;
  std::vector<std::string> only;  ///< For plan, apply: names of settings.
  std::string reason;
  std::string id;                ///< For revert: id of the change.
  std::string metrics;           ///< For advise, plan, apply, run: host:port,... of the nodes.
  std::string cluster_config;    ///< Configuration file with the addresses, instead of `metrics`.
  double sample_s = 10;          ///< For advise, plan, apply: seconds between two readings of the metrics.
  std::vector<std::string> set;  ///< For apply: NAME=VALUE instead of the advice.
  bool watch = false;            ///< For apply: watch the change in periods, and judge it.
  double period_s = 10;          ///< For apply --watch, run: seconds of a period.
  double target_ms = 0;          ///< Target p99 latency in ms; 0: that of the workload file.
  bool show_periods = false;
  std::string controllers;  ///< For run: "visitors=on,split=advise".
  int periods = 0;          ///< For run: number of periods; 0: no end.
  int entries_quorum = 2;   ///< For run: number of nodes whose puts must be limited by the search.
  double entries_share = 0.5;
  double cache_share = 0.01;  ///< For run: smallest share of wait time at which the index memory is changed.
};
int run_tune_example();
int run_tune_advise(const TuneArgs& args);
int run_tune_calibrate(const TuneArgs& args);
int run_tune_plan(const TuneArgs& args);
int run_tune_apply(const TuneArgs& args);
int run_tune_history(const TuneArgs& args);
int run_tune_revert(const TuneArgs& args);
int run_tune_run(const TuneArgs& args);

}  // namespace fjord::cli
