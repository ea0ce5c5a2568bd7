// fjord: the command line. Only this file knows CLI11; what a command does is in cmd_*.cpp.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <string>

#include "commands.h"
#include "fjord/common/log.h"

namespace fjord::cli {
namespace {

constexpr const char* kExitCodes =
    "\nExit codes: 0 ok, 1 failed, 2 usage, 3 not found, 5 partly done, 6 timeout, 7 in doubt, 8 refused";

/// What to do once the command line is read.
using Action = std::function<int()>;

CLI::App* command(CLI::App& parent, const std::string& name, const std::string& what, const std::string& example) {
  CLI::App* made = parent.add_subcommand(name, what);
  made->footer("\nExample:\n  " + example + "\n" + kExitCodes);
  return made;
}

void add_output(CLI::App& app, std::string& output) {
  app.add_option("-o,--output", output, "text or json (default: text)")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("FORMAT");
}

void add_common(CLI::App& app, Common& common) {
  app.add_option("--cluster", common.cluster,
                 "Distributors, host:port,... (default: $FJORD_CLUSTER or 127.0.0.1:19100)")
      ->type_name("ADDRESSES");
  app.add_option("--timeout", common.timeout_s, "Seconds that one operation may take, retries included (default: 30)")
      ->check(CLI::Range(0.001, 86'400.0))
      ->type_name("SECONDS");
  add_output(app, common.output);
}

void add_progress(CLI::App& app, std::string& progress) {
  app.add_option("--progress", progress, "auto (on a terminal, after 2 s), always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");
}

void add_dev(CLI::App& app, DevArgs& args, Action& action) {
  CLI::App* dev = command(app, "dev", "A whole cluster in this process, until Ctrl-C", "fjord dev --dir ./fjord-data");
  dev->add_option("--dir", args.directory,
                  "Where the documents are kept (default: a temporary folder, removed at the end)")
      ->type_name("DIR");
  dev->callback([&] { action = [&] { return run_dev(args); }; });
}

void add_local(CLI::App& app, LocalArgs& args, Action& action) {
  CLI::App* local = app.add_subcommand("local", "A cluster of separate processes on this machine");
  local->require_subcommand(1);
  local->footer("\nExample:\n  fjord local start --dir ./cluster --storage 4 --redundancy 2\n" +
                std::string(kExitCodes));
  const auto add = [&](const std::string& name, const std::string& what, const std::string& example, auto run) {
    CLI::App* made = command(*local, name, what, example);
    made->add_option("--dir", args.directory, "Folder of the cluster")->required()->type_name("DIR");
    made->callback([&args, &action, run] { action = [&args, run] { return run(args); }; });
    return made;
  };
  const auto add_timeout = [&](CLI::App* made) {
    made->add_option("--timeout", args.timeout_s, "Seconds to wait until the cluster serves (default: 30)")
        ->check(CLI::Range(0.001, 86'400.0))
        ->type_name("SECONDS");
  };
  CLI::App* start = add("start", "Makes the cluster, or starts what does not run of it; ends with an export line",
                        "eval \"$(fjord local start --dir ./cluster --storage 4 --redundancy 2)\"", run_local_start);
  start->add_option("--storage", args.storage, "Storage nodes of a new cluster (default: 3)")->check(CLI::Range(1, 50));
  start->add_option("--distributors", args.distributors, "Distributors of a new cluster (default: 1)")
      ->check(CLI::Range(1, 49));
  start->add_option("--redundancy", args.redundancy, "Copies of each document (default: 2, or 1 with one storage node)")
      ->check(CLI::Range(1, 16));
  add_timeout(start);
  add("stop", "Ends all processes of the cluster", "fjord local stop --dir ./cluster", run_local_stop);
  CLI::App* status =
      add("status", "Which processes run", "fjord local status --dir ./cluster -o json", run_local_status);
  add_output(*status, args.output);
  CLI::App* kill = add("kill", "Ends one process at once (SIGKILL), to see what happens",
                       "fjord local kill --dir ./cluster storage.2", run_local_kill);
  CLI::App* restart = add("restart", "Ends one process if it runs, starts it and waits until it serves",
                          "fjord local restart --dir ./cluster storage.2", run_local_restart);
  add_timeout(restart);
  CLI::App* more = add("add-node", "Starts one more storage node and makes it part of the cluster",
                       "fjord local add-node --dir ./cluster", run_local_add_node);
  add_timeout(more);
  for (CLI::App* one : {kill, restart}) {
    one->add_option("NODE", args.node, "storage.N, distributor.N or fleetcontroller.0")->required();
  }
}

void add_schema(CLI::App& app, SchemaArgs& args, Action& action) {
  CLI::App* schema = app.add_subcommand("schema", "Document types");
  schema->require_subcommand(1);
  schema->footer("\nExample:\n  fjord schema deploy music.sd\n" + std::string(kExitCodes));
  CLI::App* deploy = command(
      *schema, "deploy", "Adds document types, or replaces those of the same name, if what is stored stays readable",
      "fjord schema deploy music.sd artist.sd");
  deploy->add_option("FILE", args.files, "Schemas (.sd)")->required();
  deploy
      ->add_option("--allow-drop", args.may_drop,
                   "A type or field whose stored values may be lost, TYPE.FIELD; may be given several times")
      ->type_name("PLACE")
      ->allow_extra_args(false);
  add_common(*deploy, args.common);
  deploy->callback([&] { action = [&] { return run_schema_deploy(args); }; });
  CLI::App* list = command(*schema, "list", "The document types and their fields", "fjord schema list -o json");
  add_common(*list, args.common);
  list->callback([&] { action = [&] { return run_schema_list(args); }; });
}

void add_feed_options(CLI::App& app, FeedArgs& args) {
  app.add_option("--errors-shown", args.errors_shown,
                 "Messages about single records; the rest is counted (default: 100)");
  app.add_option("--in-flight", args.in_flight, "Operations under way at once, at most (default: 2048)");
  app.add_flag("--background", args.background, "Give way to the operations of others when there is too much to do");
  add_progress(app, args.progress);
  add_common(app, args.common);
}

void add_feeds(CLI::App& app, FeedArgs& args, Action& action) {
  CLI::App* feed = command(
      app, "feed", "Puts, updates and removes documents: JSONL or a JSON array of operations, also in gzip format",
      "echo '{\"put\": \"id:shop:music::1\", \"fields\": {\"title\": \"Help!\"}}' | fjord feed -");
  feed->add_option("FILE", args.files, "Files, or - for standard input")->required();
  add_feed_options(*feed, args);
  feed->callback([&] { action = [&] { return run_feed(args); }; });

  CLI::App* import = command(
      app, "import", "Stores the rows of a table, or what `fjord export` wrote: CSV with a header row, JSONL, Parquet",
      "fjord import --type car --id-field vin cars.csv\n  fjord import music.jsonl.gz");
  import->add_option("FILE", args.files, "FILE.csv, FILE.jsonl or FILE.parquet, the first two also in gzip format")
      ->required();
  import->add_option("--type", args.type, "Document type of the rows; without, they are what `fjord export` wrote")
      ->type_name("TYPE");
  CLI::Option* id_field =
      import->add_option("--id-field", args.id_field, "Column whose value makes the id, id:NAMESPACE:TYPE::VALUE")
          ->type_name("FIELD");
  CLI::Option* id_row = import->add_flag("--id-row", args.id_row, "Make the id of the number of the row, from 1");
  id_row->excludes(id_field);
  import->add_option("--resume", args.resume_file, "Keep in this file how far it is, and go on from it if it is there")
      ->type_name("FILE");
  import->add_option("--namespace", args.namespace_, "Namespace of the ids (default: the type)")->type_name("NAME");
  add_feed_options(*import, args);
  import->callback([&, id_field, id_row] {
    const bool has_id = !id_field->empty() || !id_row->empty();
  if (args.type.empty() && has_id) throw CLI::RequiredError("--type");
  if (!args.type.empty() && !has_id) throw CLI::RequiredError("--id-field or --id-row");
  action = [&] { return run_import(args); };
});
}  // namespace

void add_write_options(CLI::App& app, DocumentArgs& args, bool may_create) {
  app.add_option("--condition", args.condition, "Only if this holds for the document as it is stored, else exit code 1")
      ->type_name("CONDITION");
  if (may_create) {
    app.add_flag("--create", args.create, "Go on if there is no document, whatever the condition");
  }
  app.add_option(
         "--durability", args.durability,
         "process: survives the end of the processes; sync: a loss of power too (default: as the cluster is set)")
      ->check(CLI::IsMember({"default", "process", "sync"}))
      ->type_name("LEVEL");
  app.add_option("--token", args.token,
                 "Text of at most 64 bytes: a repetition with the same one is applied once (default: none for a put or "
                 "remove without a condition, else random)")
      ->type_name("TOKEN");
}

/// Of update and remove, for all documents that match at once.
void add_bulk_options(CLI::App& app, BulkArgs& args) {
  app.add_option("--where", args.where, "All documents of --type that this condition holds for, instead of one")
      ->type_name("CONDITION");
  app.add_option("--type", args.type, "With --where: their document type")->type_name("TYPE");
  app.add_flag("--dry-run", args.dry_run, "With --where: only count them");
  app.add_flag("--yes", args.yes, "With --where: do it; without, they are counted");
  app.add_option("--progress", args.progress_file, "With --where: keep in this file how far it is")->type_name("FILE");
  app.add_option("--resume", args.resume, "With --where: go on from such a file; no document is changed twice")
      ->type_name("FILE");
  app.add_option("--in-flight", args.in_flight, "With --where: operations under way at once, at most (default: 2048)");
}

/// True if --where was given; checks what goes with it.
bool is_bulk(const CLI::App& app, const BulkArgs& args) {
  if (app.count("--where") == 0) {
    for (const char* other : {"--type", "--dry-run", "--yes", "--progress", "--resume", "--in-flight"}) {
      if (app.count(other) != 0) throw CLI::RequiresError(other, "--where");
    }
    return false;
  }
  for (const char* other : {"--condition", "--create", "--durability", "--token"}) {
    if (app.get_option_no_throw(other) != nullptr && app.count(other) != 0) throw CLI::ExcludesError(other, "--where");
  }
  if (args.type.empty()) throw CLI::RequiresError("--where", "--type");
  return true;
}

void add_documents(CLI::App& app, DocumentArgs& args, BulkArgs& bulk, Action& action) {
  CLI::App* put = command(app, "put", "Stores one document: a JSON object of its fields, or a line that `get` printed",
                          "echo '{\"title\": \"Help!\"}' | fjord put id:shop:music::1 -");
  put->add_option("ID", args.id, "Document id")->required();
  put->add_option("FILE", args.file, "JSON file, or - for standard input")->required();
  add_write_options(*put, args, true);
  add_common(*put, args.common);
  put->callback([&] { action = [&] { return run_put(args); }; });
  CLI::App* update = command(
      app, "update", "Changes fields of one document, or of all that match: a JSON object of paths and actions",
      "echo '{\"plays\": {\"increment\": 1}}' | fjord update id:shop:music::1 - --condition 'music.year > 1965'\n"
      "  fjord update --where 'music.year > 1965' --type music '{\"old\": {\"assign\": false}}' --yes");
  update->add_option("ID", args.id, "Document id; with --where: the changes, as JSON, a file, or -")->required();
  update->add_option("FILE", args.file, "JSON file, or - for standard input");
  add_write_options(*update, args, true);
  add_bulk_options(*update, bulk);
  add_common(*update, args.common);
  update->callback([&, update] {
    if (is_bulk(*update, bulk)) {
      if (!args.file.empty()) throw CLI::ExcludesError("--where", "FILE");
      bulk.changes = args.id;
      bulk.common = args.common;
      action = [&] { return run_bulk_update(bulk); };
    } else {
      if (args.file.empty()) throw CLI::RequiredError("FILE");
      action = [&] { return run_update(args); };
    }
  });
  CLI::App* get = command(app, "get", "Prints documents, one line of JSON each", "fjord get id:shop:music::1");
  get->add_option("ID", args.ids, "Document ids")->required();
  get->add_option("--fields", args.fields, "Only these fields: a,b or [id], [none], [all], TYPE:[document]")
      ->type_name("FIELDS");
  get->add_option("--consistency", args.consistency,
                  "session: only what no crash can undo; waits for writes of the document under way")
      ->check(CLI::IsMember({"default", "session"}))
      ->type_name("WHAT");
  add_common(*get, args.common);
  get->callback([&] { action = [&] { return run_get(args); }; });
  CLI::App* remove =
      command(app, "remove", "Removes documents, or all that match; one that is not there is no error",
              "fjord remove id:shop:music::1\n  fjord remove --where 'music.year < 1900' --type music --yes");
  remove->add_option("ID", args.ids, "Document ids");
  add_write_options(*remove, args, false);
  add_bulk_options(*remove, bulk);
  add_common(*remove, args.common);
  remove->callback([&, remove] {
    if (is_bulk(*remove, bulk)) {
      if (!args.ids.empty()) throw CLI::ExcludesError("--where", "ID");
      bulk.common = args.common;
      action = [&] { return run_bulk_remove(bulk); };
    } else {
      if (args.ids.empty()) throw CLI::RequiredError("ID");
      action = [&] { return run_remove(args); };
    }
  });
}

void add_visitor_options(CLI::App& app, std::uint32_t& visitors_per_node, std::uint32_t& buckets_per_visitor,
                         std::uint32_t& buckets_at_once, std::string& priority) {
  app.add_option("--visitors-per-node", visitors_per_node, "Visitors at once on each storage node (default: 4)")
      ->check(CLI::Range(1, 64));
  app.add_option("--buckets-per-visitor", buckets_per_visitor,
                 "Buckets that one visitor goes through (default: chosen by the system)")
      ->check(CLI::Range(0, 4096));
  app.add_option("--buckets-at-once", buckets_at_once, "Buckets that a visitor reads at the same time (default: 1)")
      ->check(CLI::Range(1, 64));
  app.add_option("--priority", priority,
                 "Which visitors begin first on a storage node that has many: high, normal or background (default)")
      ->check(CLI::IsMember({"high", "normal", "background"}))
      ->type_name("CLASS");
}

void add_visit(CLI::App& app, VisitArgs& args, Action& action) {
  CLI::App* visit = command(app, "visit", "Prints all documents that match, as JSONL",
                            "fjord visit --type music --selection 'music.year > 1965' --fields title,year");
  visit->add_option("--type", args.type, "Only documents of this type")->type_name("TYPE");
  visit->add_option("--selection", args.selection, "Only documents that this condition holds for")
      ->type_name("CONDITION");
  visit
      ->add_option("--fields", args.fields,
                   "Only these fields: a,b or TYPE:a,b or [id], [none], [all], TYPE:[document]")
      ->type_name("FIELDS");
  visit
      ->add_option("--from", args.from,
                   "Only versions written since: 2026-11-21T19:00:00Z, 15m, 2h, 3d (ago), or seconds since 1970")
      ->type_name("TIME");
  visit->add_option("--to", args.to, "Only versions written until then")->type_name("TIME");
  visit->add_option("--visitor", args.visitor, "What runs on the storage nodes: dump (default), or one of a plugin")
      ->type_name("NAME");
  visit->add_option("--param", args.parameters, "A parameter of the visitor, k=v; may be given several times")
      ->type_name("K=V")
      ->allow_extra_args(false);
  visit->add_flag("--removes", args.removes, "Removed documents too, as {\"remove\": ID}");
  visit->add_flag("--snapshot", args.snapshot,
                  "Each bucket as it was at one moment; printed when all of it has come, and in memory until then");
  visit->add_option("--limit", args.limit, "End after so many documents");
  visit->add_flag("--count", args.count,
                  "Only say how many there are; with --fields '[id]' their contents are not read");
  CLI::Option* slices =
      visit->add_option("--slices", args.slices, "Visit in so many slices at once")->check(CLI::Range(1, 1024));
  visit->add_option("--slice", args.slice, "Only one of several slices, 1/4 to 4/4, for clients that share the work")
      ->type_name("K/N")
      ->excludes(slices);
  visit->add_option("--progress", args.progress_file, "Keep in this file how far the visit is")->type_name("FILE");
  visit->add_option("--resume", args.resume, "Go on from such a file; what was printed after it was kept comes again")
      ->type_name("FILE");
  add_visitor_options(*visit, args.visitors_per_node, args.buckets_per_visitor, args.buckets_at_once, args.priority);
  visit->add_option("--show-progress", args.show_progress, "auto (on a terminal, after 2 s), always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");
  visit->add_flag("--explain", args.explain, "Say at the end which buckets were read and skipped, and why");
  add_common(*visit, args.common);
  visit->callback([&] { action = [&] { return run_visit(args); }; });
}

void add_export(CLI::App& app, ExportArgs& args, Action& action) {
  CLI::App* to = command(app, "export", "Writes all documents that match to a file, which `fjord feed` reads",
                         "fjord export music.jsonl.gz --type music --selection 'music.year > 1965'");
  to->add_option("FILE", args.file, "FILE.jsonl, FILE.jsonl.gz or FILE.parquet")->required();
  to->add_option("--type", args.type, "Only documents of this type")->type_name("TYPE");
  to->add_option("--selection", args.selection, "Only documents that this condition holds for")->type_name("CONDITION");
  to->add_option("--fields", args.fields, "Only these fields: a,b or TYPE:a,b")->type_name("FIELDS");
  to->add_option("--from", args.from, "Only versions written since, as in `fjord visit`")->type_name("TIME");
  to->add_option("--to", args.to, "Only versions written until then")->type_name("TIME");
  to->add_option("--slice", args.slice, "Only one of several slices, 1/4 to 4/4")->type_name("K/N");
  CLI::Option* resume = to->add_flag("--resume", args.resume, "Go on with a file that was interrupted");
  to->add_flag("--overwrite", args.overwrite, "Whatever is there")->excludes(resume);
  to->add_flag("--snapshot", args.snapshot, "Each bucket as it was at one moment");
  add_visitor_options(*to, args.visitors_per_node, args.buckets_per_visitor, args.buckets_at_once, args.priority);
  add_progress(*to, args.progress);
  add_common(*to, args.common);
  to->callback([&] { action = [&] { return run_export(args); }; });
}

void add_subscribe(CLI::App& app, SubscribeArgs& args, Action& action) {
  CLI::App* subscribe =
      command(app, "subscribe", "Prints documents that match, and from then on all that changes, as JSONL",
              "fjord subscribe --type music --token music.token | python3 search_index.py music.db");
  subscribe->add_option("--type", args.type, "Only documents of this type")->type_name("TYPE");
  subscribe
      ->add_option("--selection", args.selection,
                   "Only documents that this condition holds for; one that it no longer holds for is given as removed")
      ->type_name("CONDITION");
  subscribe->add_option("--fields", args.fields, "Only these fields: a,b or TYPE:a,b")->type_name("FIELDS");
  subscribe->add_option("--token", args.token, "Keep in this file what was printed, and go on from it if it is there")
      ->type_name("FILE");
  subscribe->add_option("--from", args.from, "Without a token: start, all documents first (default), or now")
      ->check(CLI::IsMember({"start", "now"}))
      ->type_name("WHERE");
  subscribe->add_option("--interval", args.interval_s, "Seconds between two looks at the cluster (default: 0.5)")
      ->check(CLI::Range(0.01, 3600.0))
      ->type_name("SECONDS");
  subscribe->add_flag("--print-tokens", args.print_tokens,
                      "Print {\"token\": TEXT} now and then: a subscriber that has all lines before it may keep it");
  subscribe->add_flag("--once", args.once, "End when everything up to now was printed");
  add_common(*subscribe, args.common);
  subscribe->callback([&] { action = [&] { return run_subscribe(args); }; });
}

void add_incremental(CLI::App& app, bool& incremental) {
  app.add_flag("--incremental", incremental,
               "Read only what changed since this was run with --incremental before; storage nodes keep what they made "
               "of each document in memory for that. Needs the shuffle direct");
}

void add_shuffle(CLI::App& app, std::string& shuffle) {
  app.add_option("--shuffle", shuffle,
                 "How partial results get to where they are added up: direct (with the answers of the storage nodes, "
                 "into the memory of a distributor), store (as documents) or auto (default)")
      ->check(CLI::IsMember({"auto", "store", "direct"}))
      ->type_name("HOW");
}

constexpr const char* kSettingsHelp =
    "How the job runs: throttle (bytes a second), throttle_by (sent or delay), dead_letters_max (default 100), "
    "memory_max, disk_max, sent_max (bytes), cpu_max (seconds), visitors_per_node";

void add_settings(CLI::App& command, std::vector<std::string>& settings) {
  command.add_option("--set", settings, std::string(kSettingsHelp) + "; may be given several times")
      ->type_name("K=V")
      ->allow_extra_args(false);
}

void add_jobs(CLI::App& app, JobArgs& args, Action& action) {
  CLI::App* job = app.add_subcommand("job", "MapReduce jobs, which run inside the storage nodes");
  job->require_subcommand(1);
  job->footer("\nExample:\n  fjord job run citycount --type city --param field=country --wait\n" +
              std::string(kExitCodes));
  CLI::App* run = command(*job, "run", "Starts a job and prints its id",
                          "fjord job run fieldstats --type car --param group=make --param value=price --wait");
  run->add_option("NAME", args.application,
                  "fieldstats, citycount, script, heavycity, heavycpu, noop, or one of a plugin")
      ->required();
  run->add_option("--type", args.type, "Document type to read")->required()->type_name("TYPE");
  run->add_option("--selection", args.selection, "Only documents that this condition holds for")
      ->type_name("CONDITION");
  run->add_option("--param", args.parameters, "A parameter of the job, k=v; may be given several times")
      ->type_name("K=V")
      ->allow_extra_args(false);
  run->add_option("--script", args.script, "The Lua program of the application script; - for standard input")
      ->type_name("FILE");
  run->add_option("--output-namespace", args.output_namespace, "Namespace of the result documents (default: results)")
      ->type_name("NAME");
  run->add_option("--visitors-per-node", args.visitors_per_node,
                  "Tasks at once on a storage node (default: chosen by the system)");
  run->add_option("--output-buckets", args.output_buckets, "Reduce tasks (default: chosen by the system)");
  add_shuffle(*run, args.shuffle);
  add_incremental(*run, args.incremental);
  add_settings(*run, args.settings);
  run->add_flag("--wait", args.wait, "Wait for the end of the job");
  add_progress(*run, args.progress);
  add_common(*run, args.common);
  run->callback([&] { action = [&] { return run_job_run(args); }; });
  CLI::App* list = command(*job, "list", "The jobs of the cluster", "fjord job list");
  add_common(*list, args.common);
  list->callback([&] { action = [&] { return run_job_list(args); }; });
  const auto add = [&](const std::string& name, const std::string& what, const std::string& example, auto function) {
    CLI::App* made = command(*job, name, what, example);
    made->add_option("JOB", args.job, "Id of the job")->required();
    add_common(*made, args.common);
    made->callback([&args, &action, function] { action = [&args, function] { return function(args); }; });
    return made;
  };
  add("show", "All that is known of a job", "fjord job show job-0123456789abcdef -o json", run_job_show);
  CLI::App* watch = add("watch", "Follows a job until it ends", "fjord job watch job-0123456789abcdef", run_job_watch);
  add_progress(*watch, args.progress);
  add("cancel", "Ends a job", "fjord job cancel job-0123456789abcdef", run_job_cancel);
  add("pause", "Gives up what a job is doing until it is resumed", "fjord job pause job-0123456789abcdef",
      run_job_pause);
  add("resume", "Goes on with a paused job where it was", "fjord job resume job-0123456789abcdef", run_job_resume);
  CLI::App* set = add("set", "Changes settings of a job, also while it runs",
                      "fjord job set job-0123456789abcdef throttle=10MB", run_job_set);
  set->add_option("SETTING", args.settings, kSettingsHelp)->required()->type_name("K=V");
  add("dead-letters", "Documents that the map function failed on, and why",
      "fjord job dead-letters job-0123456789abcdef -o json", run_job_dead_letters);
  add("results", "The results of a finished job by rising key", "fjord job results job-0123456789abcdef -o json",
      run_job_results);
}

void add_aggregate(CLI::App& app, AggregateArgs& args, Action& action) {
  CLI::App* made = app.add_subcommand("aggregate", "Groups documents and computes aggregates, next to the data");
  made->footer(
      "\nAggregates: count(), count(E), sum(E), avg(E), min(E), max(E), distinct(E), quantile(P,E), "
      "histogram(E,WIDTH), "
      "top(K,E); E is a field or an expression of the selection language, as in 'price * quantity'. 'AS name' gives a "
      "column another name.\n"
      "\nExamples:\n"
      "  fjord aggregate --type car --group-by make 'count()' 'avg(price) AS price' --order-by 'price desc' --limit "
      "10\n"
      "  fjord aggregate --type car --selection 'year >= 2020' 'quantile(0.5,price)' 'top(3,color)' -o json\n"
      "  fjord aggregate --type car --group-by 'make,year - year % 10 AS decade' 'sum(price)' --having 'sum_price > "
      "1000'\n"
      "  fjord aggregate --spec report.json --into car_report\n"
      "  fjord aggregate --type car --group-by make 'count() AS cars' --then '{\"group_by\": \"cars\", \"aggregates\": "
      "\"count()\"}'\n" +
      std::string(kExitCodes));
  const auto list = [&](const char* name, std::vector<std::string>& into, const char* help, const char* type) {
    made->add_option(name, into, help)->type_name(type)->allow_extra_args(false);
  };
  made->add_option("AGGREGATE", args.aggregates, "What is computed of each group");
  made->add_option("--type", args.type, "Document type to read")->type_name("TYPE");
  made->add_option("--selection", args.selection, "Only documents that this condition holds for")
      ->type_name("CONDITION");
  list("--group-by", args.group_by, "Expressions whose values make the groups (default: all documents are one)",
       "E[,E]");
  made->add_option("--having", args.having, "Only rows that this condition on columns holds for")
      ->type_name("CONDITION");
  list("--order-by", args.order_by, "Columns to sort by, as in 'count desc' (default: those of the groups)",
       "COLUMN[,COLUMN]");
  made->add_option("--limit", args.limit, "Only so many rows")->type_name("ROWS");
  list("--then", args.then,
       "Another pass over the rows so far, as JSON; what is printed and put is of the last one. Can be repeated",
       "JSON");
  made->add_option("--into", args.into, "Also put each row as a document of this type, with a field for each column")
      ->type_name("TYPE");
  made->add_option("--into-namespace", args.into_namespace, "Namespace of these documents (default: results)")
      ->type_name("NAME");
  made->add_option("--name", args.name,
                   "Part of the ids of these documents (default: follows from the specification), so that the next run "
                   "replaces them and removes those that are no rows any more")
      ->type_name("NAME");
  made->add_option("--spec", args.spec_file, "A file with all of that as JSON; other options go before it, - is stdin")
      ->type_name("FILE");
  add_shuffle(*made, args.shuffle);
  add_incremental(*made, args.incremental);
  add_settings(*made, args.settings);
  add_progress(*made, args.progress);
  add_common(*made, args.common);
  made->remove_option(made->get_option("--output"));
  made->add_option("-o,--output", args.common.output, "text, json or csv (default: text)")
      ->check(CLI::IsMember({"text", "json", "csv"}))
      ->type_name("FORMAT");
  made->callback([&] { action = [&] { return run_aggregate(args); }; });
}

void add_status(CLI::App& app, Common& common, Action& action) {
  CLI::App* status = app.add_subcommand("status", "Nodes, state version, buckets in and out of sync");
  status->footer(
      "\nExample:\n  fjord status -o json\n\n"
      "Exit codes: 0 all well; 1 degraded: a node is down or buckets are out of sync; 2 the cluster cannot be reached "
      "or has "
      "buckets that cannot be served");
  add_common(*status, common);
  status->callback([&] { action = [&] { return run_status(common); }; });
}

void add_plugins(CLI::App& app, Common& common, Action& action) {
  CLI::App* plugin = app.add_subcommand("plugin", "Visitors and MapReduce applications from shared libraries");
  plugin->require_subcommand(1);
  plugin->footer("\nExample:\n  fjord plugin list\n" + std::string(kExitCodes));
  CLI::App* list =
      command(*plugin, "list", "What the plugins of the cluster offer, in which version, and on which nodes",
              "fjord plugin list -o json");
  add_common(*list, common);
  list->callback([&] { action = [&] { return run_plugin_list(common); }; });
}

void add_placement(CLI::App& app, PlacementArgs& args, Action& action) {
  CLI::App* placement = app.add_subcommand("placement", "Where replicas belong");
  placement->require_subcommand(1);
  placement->footer("\nExample:\n  fjord placement compare --nodes 100 --buckets 65536\n" + std::string(kExitCodes));
  CLI::App* compare =
      command(*placement, "compare",
              "Compares the placement algorithms: balance, what a change moves, time of a mapping; needs no cluster",
              "fjord placement compare --nodes 100 --buckets 65536 --change reweight --plot placement.png");
  compare->add_option("--nodes", args.nodes, "Storage nodes, all of the same capacity")
      ->required()
      ->check(CLI::Range(2, 65'000));
  compare->add_option("--buckets", args.buckets, "Buckets")->required()->check(CLI::Range(1, 1 << 24));
  compare->add_option("--replicas", args.replicas, "Replicas of each bucket (default: 3)")->check(CLI::Range(1, 16));
  compare->add_option("--groups", args.groups, "Groups that the nodes are in (default: 1)")
      ->check(CLI::Range(1, 65'000));
  compare->add_option("--tokens", args.tokens, "Tokens of a node in consistent hashing (default: 200)")
      ->check(CLI::Range(1, 10'000));
  compare
      ->add_option("--change", args.change,
                   "add a node, remove the middle one, or reweight: double its capacity (default: add)")
      ->check(CLI::IsMember({"add", "remove", "reweight"}))
      ->type_name("CHANGE");
  compare->add_option("--plot", args.plot, "Also plot into this PNG file; needs python3-matplotlib")->type_name("FILE");
  add_output(*compare, args.output);
  compare->callback([&] { action = [&] { return run_placement_compare(args); }; });
}

void add_nodes(CLI::App& app, NodeArgs& args, Action& action) {
  CLI::App* node = app.add_subcommand("node", "The nodes of the cluster: add, retire, remove, take out for a while");
  node->require_subcommand(1);
  node->footer("\nExample:\n  fjord node retire storage.2 --dry-run\n" + std::string(kExitCodes));
  const auto add = [&](const std::string& name, rpc::NodeAction does, const std::string& what,
                       const std::string& example) {
    CLI::App* made = command(*node, name, what, example);
    if (does != rpc::NodeAction::Balance) {
      made->add_option("NODE", args.nodes, "storage.N or distributor.N")->required();
    }
    made->add_option("--reason", args.reason, "For the history of the cluster")->type_name("TEXT");
    made->add_flag("--dry-run", args.dry_run, "Only say whether it would be done, and what would move");
    made->add_flag("--force", args.force, "Although it is refused otherwise");
    made->add_option("--wait", args.wait_s, "Seconds to wait until it is in force and nothing is left to move")
        ->check(CLI::Range(0.0, 864'000.0))
        ->type_name("SECONDS");
    add_common(*made, args.common);
    made->callback([&args, &action, does] {
      args.action = does;
      action = [&args] { return run_node(args); };
    });
    return made;
  };
  using rpc::NodeAction;
  CLI::App* list = command(*node, "list", "The nodes, their groups, capacities and what is wanted of them",
                           "fjord node list -o json");
  add_common(*list, args.common);
  list->callback([&args, &action] { action = [&args] { return run_node_list(args.common); }; });
  add("stop-check", NodeAction::Stop, "Is it safe to stop these nodes now? Exit code 8 if not",
      "fjord node stop-check storage.2");
  add("maintenance", NodeAction::Maintenance, "Takes nodes out for a short time; nothing is copied meanwhile",
      "fjord node maintenance storage.2 --reason 'new disk'");
  add("up", NodeAction::Up, "Takes nodes back in", "fjord node up storage.2");
  add("retire", NodeAction::Retire, "Moves all data off storage nodes, which serve until then",
      "fjord node retire storage.2 --wait 600");
  add("remove", NodeAction::Remove, "Takes nodes out of the cluster that are retired and empty",
      "fjord node remove storage.2");
  CLI::App* more = add("add", NodeAction::Add, "Makes a process that runs part of the cluster; prints its name",
                       "fjord node add storage --address 10.0.0.7:19150");
  CLI::App* replace = add("replace", NodeAction::Replace, "Another process takes the place of a node that is gone",
                          "fjord node replace storage.2 --address 10.0.0.8:19150");
  for (CLI::App* one : {more, replace}) {
    one->add_option("--address", args.address, "Where the process listens")->required()->type_name("HOST:PORT");
  }
  more->add_option("--group", args.group, "Group of a storage node (default: the only one)")->type_name("NAME");
  more->add_option("--capacity", args.capacity, "Weight in the placement (default: 1)")->type_name("NUMBER");
  CLI::App* capacity = add("capacity", NodeAction::Capacity, "Changes the weight of storage nodes in the placement",
                           "fjord node capacity storage.2 --to 2.5");
  capacity->add_option("--to", args.capacity, "The new weight; others have 1")->required()->type_name("NUMBER");
  CLI::App* balance = add("balance", NodeAction::Balance,
                          "Keeps single buckets elsewhere than the algorithm says, so that all nodes are equally full",
                          "fjord node balance --dry-run");
  balance
      ->add_option("--to", args.balance_to,
                   "The fullest node may have so many times its fair share of bytes (default: 1.02); off: forget all "
                   "exceptions")
      ->type_name("NUMBER|off");
}

void add_state(CLI::App& app, StateArgs& args, Action& action) {
  CLI::App* state = app.add_subcommand("state", "The cluster state, and how it came about");
  state->require_subcommand(1);
  state->footer("\nExample:\n  fjord state log -n 5\n" + std::string(kExitCodes));
  CLI::App* show = command(*state, "show", "The state in force, the pending one, who leads", "fjord state show");
  add_common(*show, args.common);
  show->callback([&] { action = [&] { return run_state_show(args); }; });
  CLI::App* log = command(*state, "log", "What changed, when, why, and who caused it", "fjord state log -n 50 -o json");
  log->add_option("-n,--lines", args.lines, "The newest so many; 0: all that is kept (default: 20)");
  add_common(*log, args.common);
  log->callback([&] { action = [&] { return run_state_log(args); }; });
}

void add_config(CLI::App& app, ConfigArgs& args, Action& action) {
  CLI::App* config = app.add_subcommand("config", "Settings that change while the cluster runs, for all nodes at once");
  config->require_subcommand(1);
  config->footer("\nExample:\n  fjord config set cluster.redundancy=3\n" + std::string(kExitCodes));
  const auto add = [&](const std::string& name, const std::string& what, const std::string& example, auto run) {
    CLI::App* made = command(*config, name, what, example);
    add_common(*made, args.common);
    made->callback([&args, &action, run] { action = [&args, run] { return run(args); }; });
    return made;
  };
  add("list", "All settings; which nodes have not taken them yet, and why", "fjord config list", run_config_list);
  add("history", "The versions of the configuration", "fjord config history", run_config_history);
  CLI::App* get = add("get", "The value of settings", "fjord config get cluster.redundancy", run_config_get);
  CLI::App* explain = add("explain", "What settings mean, their bounds and defaults",
                          "fjord config explain storage.file_bytes_max", [](ConfigArgs one) {
                            one.explain = true;
                            return run_config_get(one);
                          });
  CLI::App* unset = add("unset", "Back to the default", "fjord config unset cluster.redundancy", run_config_unset);
  for (CLI::App* one : {get, explain, unset}) one->add_option("NAME", args.names, "Settings")->required();
  CLI::App* set = add("set", "Changes settings, all of them or none",
                      "fjord config set distributor.document_bytes_max=1MiB", run_config_set);
  set->add_option("NAME=VALUE", args.names, "Settings and their new values")->required();
  CLI::App* revert = add("revert", "Everything as in an earlier version, or as before the last change",
                         "fjord config revert 3", run_config_revert);
  revert->add_option("VERSION", args.version, "See history (default: the one before)");
  for (CLI::App* one : {set, unset, revert})
    one->add_flag("--dry-run", args.dry_run, "Only check, and say what changes");
  for (const bool paused : {true, false}) {
    CLI::App* made = command(
        app, paused ? "pause" : "resume",
        paused ? "Stops the movement of data; what is missing is still repaired" : "Goes on with the movement of data",
        paused ? "fjord pause" : "fjord resume");
    add_common(*made, args.common);
    made->callback([&args, &action, paused] { action = [&args, paused] { return run_maintenance(args, paused); }; });
  }
}

void add_tune_metrics(CLI::App& app, TuneArgs& args) {
  app.add_option("--metrics", args.metrics, "Where all nodes show their metrics, host:port,...")
      ->type_name("ADDRESSES");
  app.add_option("--cluster-config", args.cluster_config, "The same from the lines http of this file")
      ->type_name("FILE");
}

void add_tune_watch(CLI::App& apply, CLI::App& run, TuneArgs& args) {
  apply.add_option("--set", args.set, "This in place of the advice; may be given several times")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  apply.add_flag("--watch", args.watch,
                 "Looks at the metrics before and after, and takes the change back if the objective is 5 % worse for "
                 "three periods (exit code 8)");
  run.add_option("--controllers", args.controllers,
                 "LOOP=off|advise|on,... of visitors, maintenance, split, entries, cache (default: all advise)")
      ->type_name("MODES");
  run.add_option("--periods", args.periods, "Ends after so many (default: goes on)")->check(CLI::Range(1, 1 << 30));
  run.add_flag_callback(
      "--once", [&args] { args.periods = 1; }, "One period");
  run.add_option("--entries-quorum", args.entries_quorum,
                 "entries: so many nodes have to find their puts bound by the search (default: 2)")
      ->check(CLI::Range(1, 65535));
  run.add_option("--entries-share", args.entries_share,
                 "entries: share of a put's time in the search from which it counts as bound (default: 0.5)")
      ->check(CLI::Range(0.05, 0.95));
  for (CLI::App* one : {&apply, &run}) {
    one->add_option("--period", args.period_s, "Seconds between two readings of the metrics (default: 10)")
        ->check(CLI::Range(0.1, 3600.0))
        ->type_name("SECONDS");
    one->add_option("--target-ms", args.target_ms,
                    "p99 that reads and writes are to have (default: of the workload file, or 20)")
        ->check(CLI::Range(0.001, 3'600'000.0));
    one->add_flag("--show-periods", args.show_periods, "A line for each period");
  }
}

void add_tune(CLI::App& app, TuneArgs& args, Action& action) {
  CLI::App* tune = app.add_subcommand("tune", "Advice on settings: from a description of a workload, or of a cluster");
  tune->require_subcommand(1);
  tune->footer("\nExample:\n  fjord tune example > w.yaml && fjord tune advise --workload w.yaml\n" +
               std::string(kExitCodes));
  const auto add = [&](const std::string& name, const std::string& what, const std::string& example, auto run) {
    CLI::App* made = command(*tune, name, what, example);
    made->callback([&args, &action, run] { action = [&args, run] { return run(args); }; });
    return made;
  };
  add("example", "Prints a workload file with all keys", "fjord tune example > w.yaml",
      [](const TuneArgs&) { return run_tune_example(); });
  CLI::App* advise =
      add("advise", "What to set, why, and what it would do; of a workload file alone without any cluster",
          "fjord tune advise --workload w.yaml --profile fjord-profile.yaml", run_tune_advise);
  advise->add_flag(
      "--live", args.live,
      "Documents, nodes and settings from the cluster, rates from its metrics, only the rest from the file");
  CLI::App* plan = add("plan", "The advice for a running cluster as a change of its settings; changes nothing",
                       "fjord tune plan --workload w.yaml", run_tune_plan);
  CLI::App* apply = add("apply", "Sets what plan shows; the change has an id, for revert",
                        "fjord tune apply --workload w.yaml --reason 'more visits now'", run_tune_apply);
  apply->add_option("--reason", args.reason, "For the history")->required()->type_name("TEXT");
  CLI::App* run =
      add("run", "Drives the controllers of settings until it is ended; one process a cluster",
          "fjord tune run --cluster-config cluster.yaml --controllers visitors=on,maintenance=on", run_tune_run);
  add_tune_watch(*apply, *run, args);
  for (CLI::App* one : {advise, plan, apply, run}) add_tune_metrics(*one, args);
  for (CLI::App* one : {advise, plan, apply}) {
    one->add_option("--sample", args.sample_s, "Seconds between the two readings of the metrics (default: 10)")
        ->check(CLI::Range(0.1, 3600.0))
        ->type_name("SECONDS");
  }
  for (CLI::App* one : {plan, apply}) {
    one->add_option("--only", args.only, "Only this setting; may be given several times")
        ->type_name("NAME")
        ->allow_extra_args(false);
  }
  for (CLI::App* one : {advise, plan, apply, run}) {
    one->add_option("--workload", args.workload,
                    "File that says what the cluster is for (default: what the cluster says)")
        ->type_name("FILE");
    if (one == run) continue;
    one->add_option("--profile", args.profile, "Measured constants, from calibrate (default: an ordinary machine)")
        ->type_name("FILE");
  }
  CLI::App* history = add("history", "The changes that were applied", "fjord tune history", run_tune_history);
  CLI::App* revert =
      add("revert", "Takes one change back, others stay", "fjord tune revert tune-1a2b3c4d", run_tune_revert);
  revert->add_option("ID", args.id, "See history")->required();
  for (CLI::App* one : {advise, plan, apply, run, history, revert}) add_common(*one, args.common);
  CLI::App* calibrate =
      add("calibrate", "Measures disk, CPU and memory of this machine, and writes a profile",
          "fjord tune calibrate --dir /var/lib/fjord --output fjord-profile.yaml", run_tune_calibrate);
  calibrate->add_option("--dir", args.directory, "On the disk to be measured (default: here)")->type_name("DIR");
  calibrate->add_option("--output", args.output_file, "The profile (default: fjord-profile.yaml)")->type_name("FILE");
  calibrate->add_option("--seconds", args.seconds, "For all measurements (default: 20)")->check(CLI::Range(1.0, 60.0));
  calibrate->add_option("--file-mib", args.file_mib, "Size of the file that is written and read (default: 512)")
      ->check(CLI::Range(16, 65'536));
}

/// All commands with their arguments.
struct CommandLine {
  CLI::App app{"Stores documents in a cluster and computes on them where they are stored.", "fjord"};
  DevArgs dev;
  LocalArgs local;
  SchemaArgs schema;
  FeedArgs feed;
  DocumentArgs document;
  BulkArgs bulk;
  VisitArgs visit;
  ExportArgs export_;
  SubscribeArgs subscribe;
  JobArgs job;
  AggregateArgs aggregate;
  Common status;
  Common plugin;
  PlacementArgs placement;
  NodeArgs node;
  StateArgs state;
  ConfigArgs config;
  TuneArgs tune;
  Action action;

  CommandLine() {
    app.require_subcommand(1);
    app.footer("\nExample:\n  eval \"$(fjord local start --dir ./cluster)\" && fjord status\n" +
               std::string(kExitCodes));
    add_dev(app, dev, action);
    add_local(app, local, action);
    add_schema(app, schema, action);
    add_feeds(app, feed, action);
    add_documents(app, document, bulk, action);
    add_visit(app, visit, action);
    add_export(app, export_, action);
    add_subscribe(app, subscribe, action);
    add_jobs(app, job, action);
    add_aggregate(app, aggregate, action);
    add_status(app, status, action);
    add_plugins(app, plugin, action);
    add_placement(app, placement, action);
    add_nodes(app, node, action);
    add_state(app, state, action);
    add_config(app, config, action);
    add_tune(app, tune, action);
    const char* cluster = std::getenv("FJORD_CLUSTER");
    for (Common* common :
         {&schema.common, &feed.common, &document.common, &visit.common, &export_.common, &job.common, &status, &plugin,
          &node.common, &state.common, &config.common, &tune.common, &aggregate.common, &subscribe.common}) {
      common->cluster = cluster != nullptr && *cluster != 0 ? cluster : "127.0.0.1:19100";
    }
  }
};

}  // namespace fjord::cli
}  // namespace fjord::cli

int main(int argc, char** argv) {
  fjord::log::set_level(fjord::log::Level::Error);
  fjord::cli::CommandLine line;
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return line.app.exit(error) == 0 ? fjord::cli::kOk : fjord::cli::kUsage;
  }
  return line.action();
}
