#include "options/options.h"

namespace fjord::cli {
namespace {

constexpr const char* kSettingsHelp =
    "How the job runs: throttle (bytes a second), throttle_by (sent or delay), dead_letters_max (default 100), "
    "memory_max, disk_max, sent_max (bytes), cpu_max (seconds), visitors_per_node, weight (of its share of the "
    "storage nodes' time, default 10), priority (normal or background; default: normal for aggregations)";

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

void add_target(CLI::App& command, std::string& name_space, std::string& name) {
  command.add_option("--into-namespace", name_space, "Namespace of documents that rows are put as (default: results)")
      ->type_name("NAME");
  command
      .add_option("--name", name,
                  "Part of the ids of these documents (default: follows from the specification), so that the next run "
                  "replaces them and removes those that are not rows any more")
      ->type_name("NAME");
}

void add_settings(CLI::App& command, std::vector<std::string>& settings) {
  command.add_option("--set", settings, std::string(kSettingsHelp) + "; may be given several times")
      ->type_name("K=V")
      ->allow_extra_args(false);
}

void add_job_run(CLI::App& job, JobArgs& args, Action& action) {
  CLI::App* run = command(job, "run", "Starts a job and prints its id",
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
  run->add_option("--then", args.then,
                  "Another pass over the results so far, as JSON: an aggregation, or "
                  "{\"application\": NAME, \"parameters\": {...}, \"script\": FILE, \"selection\": CONDITION}. What an "
                  "application results in has the columns key and value. Can be repeated")
      ->type_name("JSON")
      ->allow_extra_args(false);
  add_target(*run, args.into_namespace, args.name);
  run->add_option("--output-namespace", args.output_namespace,
                  "Namespace of the result documents, id:NAMESPACE:fjord_result:n=NUMBER:JOB/KEY (default: results)")
      ->type_name("NAME");
  run->add_option("--visitors-per-node", args.visitors_per_node,
                  "Tasks at once on a storage node (default: chosen by the system)")
      ->check(whole_number(1, std::numeric_limits<unsigned>::max()));
  run->add_option("--output-buckets", args.output_buckets, "Reduce tasks (default: chosen by the system)")
      ->check(whole_number(1, std::numeric_limits<unsigned>::max()));
  add_shuffle(*run, args.shuffle);
  add_incremental(*run, args.incremental);
  add_settings(*run, args.settings);
  run->add_flag("--wait", args.wait, "Wait for the end of the job");
  add_progress(*run, args.progress);
  add_common(*run, args.common);
  run->callback([&] { action = [&] { return run_job_run(args); }; });
}

}  // namespace

void add_jobs(CLI::App& app, JobArgs& args, Action& action) {
  CLI::App* job = app.add_subcommand("job", "MapReduce jobs, which run inside the storage nodes");
  job->require_subcommand(1);
  job->footer("\nExample:\n  fjord job run citycount --type city --param field=country --wait\n" +
              std::string(kExitCodes));
  add_job_run(*job, args, action);
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
  CLI::App* results = add("results", "The results of a finished job by rising key",
                          "fjord job results job-0123456789abcdef -o json", run_job_results);
  results->add_flag("--remove", args.remove_results, "Print nothing, and remove them; the job stays in the list");
  add("remove", "Removes a finished job and its results; documents of types that it named (--into) stay",
      "fjord job remove job-0123456789abcdef", run_job_remove);
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
      "  fjord aggregate --type city --group-by name,population 'count()' --order-by 'population desc' --limit 10\n"
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
  made->add_option("--limit", args.limit, "Greatest number of rows, 1 or more (default: all)")
      ->check(whole_number(1))
      ->type_name("ROWS");
  list("--then", args.then,
       "Another pass over the rows so far, as JSON; what is printed and put is of the last one. Can be repeated",
       "JSON");
  made->add_option("--into", args.into, "Also put each row as a document of this type, with a field for each column")
      ->type_name("TYPE");
  add_target(*made, args.into_namespace, args.name);
  made->add_option("--spec", args.spec_file, "A file with all of that as JSON; other options go before it, - is stdin")
      ->type_name("FILE");
  add_shuffle(*made, args.shuffle);
  add_incremental(*made, args.incremental);
  add_settings(*made, args.settings);
  add_progress(*made, args.progress);
  add_common(*made, args.common);
  made->remove_option(made->get_option("--output"));
  made->add_option("-o,--output", args.common.output, "text, json, yaml or csv (default: text)")
      ->check(CLI::IsMember({"text", "json", "yaml", "csv"}))
      ->transform(yaml_as_json())
      ->type_name("FORMAT");
  made->callback([&] { action = [&] { return run_aggregate(args); }; });
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

}  // namespace fjord::cli
