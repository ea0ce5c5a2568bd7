#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "commands/commands.h"

// The arguments of the commands; cmd_*.cpp executes the commands. In this folder only main.cpp and options*.cpp use
// CLI11. Each add_...() adds its commands to `app`. Parsing fills `args` and sets `action`; all three must outlive the
// parsing.

namespace fjord::cli {

inline constexpr const char* kExitCodes =
    "\nExit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 condition false, 5 partly done, 6 timeout, 7 in doubt, 8 "
    "refused";

/// The group of options that are accepted and not shown in help texts: former names that take other values.
inline constexpr const char* kHidden = "";
inline constexpr const char* kProgressHelp = "auto (on a terminal, after 2 s), always or never";

/// The function to call after the command line has been parsed.
using Action = std::function<int()>;

/// Prints the help texts. The first long name of an option is its name; further long names are former ones, which are
/// accepted and not shown.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
};
/// Returns the names of an option that help texts show, such as "-o" and "--output".
std::vector<std::string> shown_names(const CLI::Option& option);

// Helpers that the add_...() functions share.
CLI::App* command(CLI::App& parent, const std::string& name, const std::string& what, const std::string& example);
/// Accepts only a decimal number from `min` to `max`. Without it, CLI11 turns a negative number into a huge one.
CLI::Validator whole_number(std::uint64_t min = 0, std::uint64_t max = std::numeric_limits<std::uint64_t>::max());
/// Accepts a duration from `min` to `max` seconds and passes it on in seconds, for transform(): "1.5", "500ms", "2m".
CLI::Validator duration(double min, double max);
/// Makes an option with the value yaml one with the value json, whose output is printed as YAML; for transform().
CLI::Validator yaml_as_json();
void add_output(CLI::App& app, std::string& output);
void add_common(CLI::App& app, Common& common);
void add_progress(CLI::App& app, std::string& progress);

// options_cluster.cpp: commands that administer a cluster.
void add_dev(CLI::App& app, DevArgs& args, Action& action);
void add_local(CLI::App& app, LocalArgs& args, Action& action);
void add_schema(CLI::App& app, SchemaArgs& args, Action& action);
void add_status(CLI::App& app, Common& common, Action& action);
void add_buckets(CLI::App& app, BucketArgs& args, Action& action);
void add_placement(CLI::App& app, PlacementArgs& args, Action& action);
void add_nodes(CLI::App& app, NodeArgs& args, Action& action);
void add_state(CLI::App& app, StateArgs& args, Action& action);
void add_config(CLI::App& app, ConfigArgs& args, Action& action);

// options_balance.cpp: balancing by load.
void add_balance(CLI::App& app, BalanceArgs& args, Action& action);

// options_documents.cpp: commands that put, get and visit documents.
void add_feeds(CLI::App& app, FeedArgs& args, Action& action);
void add_documents(CLI::App& app, DocumentArgs& args, BulkArgs& bulk, Action& action);
void add_visit(CLI::App& app, VisitArgs& args, Action& action);
void add_export(CLI::App& app, ExportArgs& args, Action& action);
void add_subscribe(CLI::App& app, SubscribeArgs& args, Action& action);

// options_search.cpp: searches, and which replica answers them.
void add_search(CLI::App& app, SearchArgs& args, AffinityArgs& affinity, SynonymArgs& synonyms, Action& action);

// options_jobs.cpp: jobs, aggregations and plugins.
void add_jobs(CLI::App& app, JobArgs& args, Action& action);
void add_aggregate(CLI::App& app, AggregateArgs& args, Action& action);
void add_plugins(CLI::App& app, Common& common, Action& action);

// options_reference.cpp: completion scripts and manual pages of all commands of `app`.
struct ReferenceArgs;
void add_reference(CLI::App& app, ReferenceArgs& args, Action& action);

// options_tune.cpp: the tuner.
void add_tune(CLI::App& app, TuneArgs& args, Action& action);

}  // namespace fjord::cli
