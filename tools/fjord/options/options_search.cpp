#include "options/options.h"

namespace fjord::cli {
namespace {

/// Adds the options of the commands that replay queries.
void add_replay(CLI::App& app, AffinityArgs& args) {
  auto* queries =
      app.add_option(
             "QUERIES", args.queries,
             "File with one query a line, or number, tab and query; - for standard input; may be in gzip format")
          ->type_name("FILE");
  app.add_flag("--recorded", args.recorded, "In place of a file, the queries that the cluster has recorded")
      ->excludes(queries);
  auto* sizes = app.add_option("--sizes", args.sizes,
                               "File with lines WORD<tab>PAGES: pages of the list of keywords that begin with the word")
                    ->type_name("FILE");
  app.add_flag(
         "--from-index", args.from_index,
         "Ask the cluster for the pages of each word; without both each list has as many pages as queries have its "
         "word")
      ->excludes(sizes);
  app.add_option("--replicas", args.replicas, "Classes of replicas: as a rule the redundancy of the cluster")
      ->required()
      ->check(CLI::Range(2, 64));
  app.add_option("--cache-pages", args.cache_pages, "Pages of 4 KiB that the cache of each replica holds")
      ->check(whole_number(1))
      ->type_name("PAGES");
  app.add_option("--miss-percent", args.miss_percent,
                 "Without --cache-pages: a cache of which one replica alone would miss so much (default: 10)")
      ->check(CLI::Range(0.1, 99.0))
      ->type_name("PERCENT");
  app.add_option("--eviction", args.eviction, "As search.cache_eviction: lru (default) or lfu")
      ->check(CLI::IsMember({"lru", "lfu"}))
      ->type_name("NAME");
  app.add_option("--method", args.method,
                 "bp: words that are searched together prefer the same replica, by METIS (default); rnd: at random")
      ->check(CLI::IsMember({"bp", "rnd"}))
      ->type_name("NAME");
  app.add_option("--rounds", args.rounds, "Rounds of refinement by replay (default: 20)")->check(CLI::Range(0, 1000));
  app.add_option("--seed", args.seed, "Seed (default: 1)")->check(whole_number());
}

void add_affinity(CLI::App& search, AffinityArgs& args, Action& action) {
  CLI::App* affinity = search.add_subcommand(
      "affinity", "Voting tables: which replica answers a search, so that caches hold different lists");
  affinity->require_subcommand(1);
  affinity->footer("\nExample:\n  fjord search affinity show\n" + std::string(kExitCodes));
  const auto add = [&](const std::string& name, const std::string& what, const std::string& example, auto run) {
    CLI::App* made = command(*affinity, name, what, example);
    made->callback([&args, &action, run, replays = name == "train" || name == "simulate"] {
      if (replays && args.queries.empty() && !args.recorded) throw CLI::RequiredError("QUERIES");
      action = [&args, run] { return run(args); };
    });
    add_common(*made, args.common);
    return made;
  };
  CLI::App* train =
      add("train", "Makes a voting table from a log of queries, and says what it would save",
          "fjord search affinity train queries.tsv --replicas 3 --from-index --table t.ftbl", run_affinity_train);
  add_replay(*train, args);
  train->add_option("--table", args.table, "Where the table is written; without, it is only tried")->type_name("FILE");
  train
      ->add_option("--corpus", args.corpus,
                   "What is searched: \"keyword.text\" (default with --from-index: the types of the cluster)")
      ->type_name("TEXT");
  CLI::App* simulate = add("simulate", "Ways to choose replicas side by side, on a log of queries; needs no cluster",
                           "fjord search affinity simulate queries.tsv --replicas 5", run_affinity_simulate);
  add_replay(*simulate, args);
  simulate
      ->add_option("--table", args.table,
                   "This table; without, one is trained on the first half of the queries and tried on the second")
      ->type_name("FILE");
  CLI::App* show = add("show", "The voting tables of the cluster, or one of them, or a file",
                       "fjord search affinity show 3", run_affinity_show);
  show->add_option("TABLE", args.table, "Number of a table, or a file")->type_name("TABLE");
  CLI::App* deploy =
      add("deploy", "Stores a voting table in the cluster and lets searches use it; back by fjord config revert",
          "fjord search affinity deploy t.ftbl --yes", run_affinity_deploy);
  deploy->add_option("TABLE", args.table, "File that train has written")->required()->type_name("FILE");
  deploy->add_option("--number", args.number, "Number of the table (default: the next free one)")
      ->check(whole_number(1, 1u << 30));
  deploy->add_flag("--foreign", args.foreign, "Use it even if it was trained on another corpus");
  deploy->add_flag("--yes", args.yes, "Do it; without, only say what would change");
}

void add_synonyms(CLI::App& search, SynonymArgs& args, Action& action) {
  CLI::App* synonyms = search.add_subcommand("synonyms", "Lists of terms that stand for each other in queries");
  synonyms->require_subcommand(1);
  synonyms->footer("\nExample:\n  fjord search synonyms show\n" + std::string(kExitCodes));
  CLI::App* deploy = command(*synonyms, "deploy", "Stores a list and lets searches use it; back by fjord config revert",
                             "fjord search synonyms deploy synonyms.txt --yes");
  deploy->add_option("FILE", args.file, "Lines \"TERM, TERM, ...\"; a term has one to four words; # begins a comment")
      ->required()
      ->type_name("FILE");
  deploy->add_option("--number", args.number, "Number of the list (default: the next free one)")
      ->check(whole_number(1, 1u << 30));
  deploy->add_flag("--yes", args.yes, "Do it; without, only say what would change");
  add_common(*deploy, args.common);
  deploy->callback([&] { action = [&] { return run_synonyms_deploy(args); }; });
  CLI::App* show =
      command(*synonyms, "show", "Prints the list in force, or another one", "fjord search synonyms show 3");
  show->add_option("LIST", args.number, "Number of a list")->check(whole_number(1, 1u << 30))->type_name("LIST");
  add_common(*show, args.common);
  show->callback([&] { action = [&] { return run_synonyms_show(args); }; });
}

}  // namespace

void add_search(CLI::App& app, SearchArgs& args, AffinityArgs& affinity, SynonymArgs& synonyms, Action& action) {
  CLI::App* search = command(app, "search", "Prints the ads that win the auction for a query, the best first",
                             "fjord search 'cheap hotel' --context device=phone --context language=en\n"
                             "  fjord search 'cheap hotel' --limit 10 --explain -o json");
  search->add_option("QUERY", args.query, "Words to search for");
  search
      ->add_option("--context", args.context,
                   "Who searches, k=v: device (phone, desktop, tablet), language, region, hour, age, interests; may be "
                   "given several times")
      ->type_name("K=V")
      ->allow_extra_args(false);
  search->add_option("--limit", args.limit, "Places, at most 100 (default: 4)")
      ->check(CLI::Range(1, 100))
      ->type_name("PLACES");
  search
      ->add_option("--within", args.within_ms,
                   "Milliseconds; what is not searched by then is missing, which is exit code 5 (default: the setting "
                   "search.timeout)")
      ->check(CLI::Range(1, 3'600'000))
      ->type_name("MS");
  search->add_flag("--session", args.session,
                   "Find all that was written before; otherwise what was written 50 ms before");
  search->add_flag("--explain", args.explain, "Say what each storage node did");
  add_common(*search, args.common);
  search->callback([&args, &action, search] {
    if (!search->get_subcommands().empty()) return;
    if (args.query.empty()) throw CLI::RequiredError("QUERY");
    action = [&args] { return run_search(args); };
  });
  add_affinity(*search, affinity, action);
  add_synonyms(*search, synonyms, action);
}

}  // namespace fjord::cli
