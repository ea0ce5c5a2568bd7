// fjord: the command line.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "cli.h"
#include "fjord/common/fatal_signals.h"
#include "fjord/common/log.h"
#include "fjord/version/version.h"
#include "options/help_topics.h"
#include "options/options.h"
#include "options/options_reference.h"
#include "options/usage.h"

namespace fjord::cli {
namespace {

/// The parser of all commands, with their arguments.
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
  SearchArgs search;
  AffinityArgs affinity;
  SynonymArgs synonyms;
  SubscribeArgs subscribe;
  JobArgs job;
  AggregateArgs aggregate;
  Common status;
  Common plugin;
  BucketArgs bucket;
  PlacementArgs placement;
  BalanceArgs balance;
  NodeArgs node;
  StateArgs state;
  ConfigArgs config;
  TuneArgs tune;
  ReferenceArgs reference;
  Action action;

  CommandLine() {
    app.formatter(std::make_shared<HelpFormatter>());
    app.require_subcommand(1);
    app.set_version_flag("--version", version_text("fjord"), "Prints the version and exits");
    app.footer("\nExample:\n  eval \"$(fjord local start --dir ./cluster)\" && fjord status\n" +
               std::string(kExitCodes) +
               "\n\nfjord help COMMAND and fjord help TOPIC say more; topics: " + topic_names());
    add_dev(app, dev, action);
    add_local(app, local, action);
    add_schema(app, schema, action);
    add_feeds(app, feed, action);
    add_documents(app, document, bulk, action);
    add_visit(app, visit, action);
    add_export(app, export_, action);
    add_search(app, search, affinity, synonyms, action);
    add_subscribe(app, subscribe, action);
    add_jobs(app, job, action);
    add_aggregate(app, aggregate, action);
    add_status(app, status, action);
    add_plugins(app, plugin, action);
    add_buckets(app, bucket, action);
    add_placement(app, placement, action);
    add_balance(app, balance, action);
    add_nodes(app, node, action);
    add_state(app, state, action);
    add_config(app, config, action);
    add_tune(app, tune, action);
    add_reference(app, reference, action);
    const char* cluster = std::getenv("FJORD_CLUSTER");
    for (Common* common :
         {&schema.common, &feed.common, &document.common, &visit.common, &export_.common, &job.common, &status, &plugin,
          &node.common, &state.common, &config.common, &tune.common, &aggregate.common, &search.common,
          &affinity.common, &synonyms.common, &subscribe.common, &bucket.common, &balance.common}) {
      common->cluster = cluster != nullptr && *cluster != 0 ? cluster : kDefaultCluster;
    }
  }
};

}  // namespace
}  // namespace fjord::cli

int main(int argc, char** argv) {
  fjord::report_fatal_signals("fjord");
  fjord::log::set_level(fjord::log::Level::Error);
  fjord::cli::CommandLine line;
  try {
    auto words = fjord::cli::with_options_behind_command(line.app, std::vector<std::string>(argv + 1, argv + argc));
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the end.
    line.app.parse(words);
  } catch (const CLI::Success& help_or_version) {
    return fjord::cli::exit_code_after_output(line.app.exit(help_or_version));
  } catch (const CLI::ParseError& error) {
    std::fputs(fjord::cli::usage_message(line.app, error).c_str(), stderr);
    return fjord::cli::kUsage;
  }
  return fjord::cli::exit_code_after_output(line.action());
}
