// Repeats the experiments of [CALB 2019, 5] on generated logs. Tables go to standard output, CSV files to a folder.

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <set>

#include "csv_file.h"
#include "fjord/common/check.h"
#include "tars_paper.h"
#include "tars_world.h"

namespace fjord::affinity {
namespace {

struct Options {
  std::string queries;
  std::string output;
  std::size_t log_queries = 150'000;
  std::size_t clusterings = 1000;
  std::uint64_t seed = 1;
  std::string split;  ///< Split of the queries to measure; empty: both.
  bool quick = false;
  bool regions_only = false;
  bool clusterings_only = false;
};

double percent(double part) { return 100.0 * part; }

/// A claim of docs/experiments/tars-simulated.md. A claim of order ("A is better than B") must hold for any log, one
/// with a number need not.
struct Goal {
  std::string text;
  double value = 0.0;
  double limit = 0.0;
  bool at_least = false;
  bool is_order = false;

  bool holds() const { return at_least ? value >= limit : value <= limit; }
};

class Experiment {
 public:
  Experiment(const QuerySource& source, const Options& options) : source_(source), options_(options) {}

  /// Runs the experiment. Returns whether all claims of order hold.
  bool run() {
    if (options_.regions_only) {
      table_4();
      return print_goals();
    }
    if (options_.clusterings_only) {
      for (const ListSizes sizes : {ListSizes::GrowWithUse, ListSizes::UnlikeUse}) clusterings(sizes);
      fmt::print("\n### Figure 3\n\n{}", notes_);
      return print_goals();
    }
    for (const Split split : splits()) {
      for (const ListSizes sizes : {ListSizes::GrowWithUse, ListSizes::UnlikeUse}) world(split, sizes);
    }
    print_tables_1_and_2();
    print_table_3();
    fmt::print("\n### Figures 3, 6 and 7\n\n{}", notes_);
    if (options_.split.empty()) table_4();
    return print_goals();
  }

 private:
  std::vector<Split> splits() const {
    if (options_.quick || options_.split == "resample") return {Split::Resample};
    if (options_.split == "disjoint") return {Split::Disjoint};
    return {Split::Resample, Split::Disjoint};
  }
  std::vector<Eviction> evictions() const {
    if (options_.quick) return {Eviction::LeastFrequentlyUsed};
    return {Eviction::LeastFrequentlyUsed, Eviction::LeastRecentlyUsed};
  }
  std::vector<unsigned> replicas() const {
    return options_.quick ? std::vector<unsigned>{2, 5} : std::vector<unsigned>{2, 3, 4, 5};
  }

  Corpus make_corpus(Split split, ListSizes sizes, std::size_t regions) const {
    GeneratorOptions options;
    options.queries = options_.log_queries;
    options.split = split;
    options.sizes = sizes;
    options.regions = regions;
    options.seed = options_.seed;
    return generate_logs(source_, options);
  }

  void world(Split split, ListSizes sizes) {
    const Corpus corpus = make_corpus(split, sizes, 1);
    const LogSet& logs = corpus.regions[0];
    for (const Eviction eviction : evictions()) {
      const WorldOptions options{split, sizes, eviction};
      fmt::print(stderr, "{}\n", options.name());
      const std::uint64_t s10 = cache_pages_for(logs.test, corpus.pages, 0.1, eviction);
      for (const unsigned count : replicas()) {
        rows_.push_back(compare(logs, corpus, options, count, s10, options_.seed));
        add_to_csv(rows_.back());
      }
      if (eviction != Eviction::LeastFrequentlyUsed) continue;
      tables_1_and_2(options, logs, corpus, s10);
      if (split != Split::Resample) continue;
      figure_5(options, logs, corpus, s10);
      figure_3(options, logs, corpus, s10);
      figures_6_and_7(options, logs, corpus, s10);
    }
  }

  void clusterings(ListSizes sizes) {
    const WorldOptions options{Split::Resample, sizes, Eviction::LeastFrequentlyUsed};
    const Corpus corpus = make_corpus(options.split, sizes, 1);
    const LogSet& logs = corpus.regions[0];
    figure_3(options, logs, corpus, cache_pages_for(logs.test, corpus.pages, 0.1, options.eviction));
  }

  // ---- tables 1 and 2

  void tables_1_and_2(const WorldOptions& world, const LogSet& logs, const Corpus& corpus, std::uint64_t s10) {
    std::map<int, double> size{{10, static_cast<double>(s10)}};
    for (const int rate : {20, 15, 5}) {
      size[rate] = static_cast<double>(cache_pages_for(logs.test, corpus.pages, rate / 100.0, world.eviction));
    }
    for (const auto& [name, log] : {std::pair{"train", &logs.train}, {"valid", &logs.valid}, {"test", &logs.test}}) {
      table_1_ += table_1_row(fmt::format("{} {}", world.name(), name), *log, corpus.pages, size[5]);
    }
    table_2_ += fmt::format("| {} | 1 | {:.2f} | {:.2f} | {:.2f} |\n", world.name(), size[15] / size[20],
                            size[10] / size[20], size[5] / size[20]);
  }

  static std::string table_1_row(const std::string& name, const QueryLog& log, const ListPages& pages, double s5) {
    const std::vector<std::uint32_t> occurrences = count_occurrences(log, pages.size());
    std::set<std::uint64_t> distinct;
    for (std::size_t query = 0; query < log.size(); ++query) distinct.insert(log.fingerprint(query));
    double words = 0.0;
    double once = 0.0;
    double pages_once = 0.0;
    double all_pages = 0.0;
    for (std::size_t word = 0; word < pages.size(); ++word) {
      words += occurrences[word] > 0 ? 1.0 : 0.0;
      once += occurrences[word] == 1 ? 1.0 : 0.0;
      pages_once += occurrences[word] == 1 ? pages[word] : 0.0;
      all_pages += static_cast<double>(occurrences[word]) * pages[word];
    }
    return fmt::format("| {} | {:.2f} M | {:.1f} % | {:.1f} % | {:.1f} % | {:.2f} % | {:.0f} |\n", name,
                       static_cast<double>(log.size()) / 1e6,
                       percent(static_cast<double>(distinct.size()) / static_cast<double>(log.size())),
                       percent(once / words), percent(once / static_cast<double>(log.accesses().size())),
                       percent(pages_once / all_pages), all_pages / s5);
  }

  void print_tables_1_and_2() const {
    fmt::print(
        "\n### The logs [CALB 2019, tables 1 and 2]\n\n"
        "| log | queries | distinct | words that occur once | their accesses | their pages | pages accessed / S5 |\n"
        "|---|---:|---:|---:|---:|---:|---:|\n{}{}",
        paper::kTable1, table_1_);
    fmt::print(
        "\nSizes of one cache that misses 20, 15, 10 and 5 % of the pages, over the first:\n\n"
        "| log | S20 | S15 | S10 | S5 |\n|---|---:|---:|---:|---:|\n{}{}",
        paper::kTable2, table_2_);
  }

  // ---- table 3

  static std::string misses_header() {
    std::string header = "log,replicas";
    for (std::string way : ways()) {
      std::erase(way, ',');
      header += fmt::format(",miss {0},load {0}", way);
    }
    return header;
  }

  void add_to_csv(const Comparison& row) {
    std::string line = fmt::format("{},{}", row.world.name(), row.replicas);
    for (const std::string& way : ways()) {
      line += fmt::format(",{:.6f},{:.4f}", row.outcomes.at(way).miss_rate, row.outcomes.at(way).load);
    }
    table_3_csv_.add(line);
  }

  void print_table_3() const {
    fmt::print(
        "\n### Misses in % of the pages, at S10 [CALB 2019, table 3]\n\n"
        "| log | R | FPT | RND | BP | RND+IR | BP+IR | Unif | gap closed "
        "|\n|---|---|---:|---:|---:|---:|---:|---:|---:|\n{}",
        paper::kTable3);
    const auto miss = [](const Comparison& row, const char* way) { return percent(row.miss_rate(way)); };
    for (const Comparison& row : rows_) {
      fmt::print("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.3f} |\n", row.world.name(),
                 row.replicas, miss(row, "FPT"), miss(row, "RND"), miss(row, "BP"), miss(row, "RND+IR"),
                 miss(row, "BP+IR"), miss(row, "Unif"), row.gap_closed("BP+IR"));
    }
    fmt::print("\n### Misses in %, and pages accessed on the busiest replica over the mean\n\n| log | R |");
    const std::vector<std::string> shown{
        "FPT", "BP", "BP+IR", "BP+IR+m", "BPL+IR", "BPL+IR+m", "shadow", "shadow+m", "shadow+m, 8 brokers"};
    for (const std::string& way : shown) fmt::print(" {} |", way);
    fmt::print("\n|---|---|");
    for (std::size_t i = 0; i < shown.size(); ++i) fmt::print("---:|");
    fmt::print("\n");
    for (const Comparison& row : rows_) {
      fmt::print("| {} | {} |", row.world.name(), row.replicas);
      for (const std::string& way : shown) {
        fmt::print(" {:.2f} ({:.2f}) |", percent(row.miss_rate(way)), row.outcomes.at(way).load);
      }
      fmt::print("\n");
    }
  }

  // ---- figures

  void figure_5(const WorldOptions& world, const LogSet& logs, const Corpus& corpus, std::uint64_t s10) {
    FingerprintChooser chooser(1);
    for (int step = 1; step <= (options_.quick ? 4 : 24); ++step) {
      const double part = 0.1 * step * (options_.quick ? 6 : 1);
      const SimulationOptions options{.replicas = 1,
                                      .cache_pages = static_cast<std::uint64_t>(part * static_cast<double>(s10)),
                                      .eviction = world.eviction};
      const double missed = simulate(logs.test, corpus.pages, options, chooser).miss_rate();
      figure_5_csv_.add(fmt::format("{},{:.2f},{:.6f}", world.name(), part, missed));
    }
  }

  /// Compares cut and misses of the clustering by balanced partitioning and of ones made worse by random changes. The
  /// paper takes the cut of the train log, and each clustering by itself. The cut of the test log, and means over
  /// clusterings, show what else decides about misses.
  void figure_3(const WorldOptions& world, const LogSet& logs, const Corpus& corpus, std::uint64_t s10) {
    const std::size_t count = options_.quick ? 30 : options_.clusterings;
    const SimulationOptions options{.replicas = 5, .cache_pages = s10, .eviction = world.eviction};
    const Clustering best = partition_of(logs, corpus, options.replicas, options_.seed);
    Random random(options_.seed ^ 0xf3);
    std::vector<std::pair<double, double>> by_train;
    std::vector<std::pair<double, double>> by_test;
    for (std::size_t i = 0; i < count; ++i) {
      const double part = static_cast<double>(i) / static_cast<double>(count);
      const Clustering clustering = degrade(best, options.replicas, part, random);
      const VotingTable table = binary_table(clustering, corpus.pages, options.replicas);
      const double missed = run_table(table, logs.test, corpus, options).miss_rate;
      by_train.emplace_back(cut_part(logs.train, corpus.pages, clustering, options.replicas), missed);
      by_test.emplace_back(cut_part(logs.test, corpus.pages, clustering, options.replicas), missed);
      figure_3_csv_.add(fmt::format("{},{:.4f},{:.6f},{:.6f},{:.6f}", world.name(), part, by_train.back().first,
                                    by_test.back().first, missed));
    }
    notes_ += fmt::format("- {}: over {} clusterings, cut {:.3f} to {:.3f} and misses {:.2f} to {:.2f} %\n",
                          world.name(), count, by_train.front().first, by_train.back().first,
                          percent(by_train.front().second), percent(by_train.back().second));
    const std::string name = fmt::format("{}: r(cut, misses)", letter(world));
    goals_.push_back({name, correlation(by_train), 0.95, true});
    goals_.push_back({name + ", cut of the test log", correlation(by_test), 0.95, true});
    goals_.push_back({name + ", means of ten clusterings", correlation(means_of_ten(by_train)), 0.95, true});
  }

  static std::vector<std::pair<double, double>> means_of_ten(const std::vector<std::pair<double, double>>& points) {
    std::vector<std::pair<double, double>> means;
    for (std::size_t begin = 0; begin + 10 <= points.size(); begin += 10) {
      auto& [x, y] = means.emplace_back();
      for (std::size_t i = begin; i < begin + 10; ++i) {
        x += points[i].first / 10;
        y += points[i].second / 10;
      }
    }
    return means;
  }

  /// Records the misses after each round of refinement, on the train log and on the validation log.
  void figures_6_and_7(const WorldOptions& world, const LogSet& logs, const Corpus& corpus, std::uint64_t s10) {
    const SimulationOptions options{.replicas = 3, .cache_pages = s10, .eviction = world.eviction};
    const VotingTable start =
        binary_table(partition_of(logs, corpus, options.replicas, options_.seed), corpus.pages, options.replicas);
    const unsigned rounds = options_.quick ? 4 : 30;
    for (const double step : options_.quick ? std::vector<double>{0.5} : std::vector<double>{0.25, 0.5, 1.0}) {
      std::vector<std::pair<double, double>> rates;
      refine(start, logs.train, corpus.pages, options, {.rounds = rounds, .step = step},
             [&](unsigned round, const VotingTable& table, double train) {
               // The last table comes with the train rate of the table before it, which was counted already.
               if (round == rounds) return;
               const double valid = run_table(table, logs.valid, corpus, options).miss_rate;
               rates.emplace_back(train, valid);
               refinement_csv_.add(fmt::format("{},{},{},{:.6f},{:.6f}", world.name(), step, round, train, valid));
             });
      const auto& [train, valid] = rates[rates.size() / 3];
      notes_ += fmt::format(
          "- {}, tau {}: train {:.2f}, {:.2f}, {:.2f} % before round 1, {} and {}; validation {:.2f}, "
          "{:.2f}, {:.2f} %\n",
          world.name(), step, percent(rates.front().first), percent(train), percent(rates.back().first),
          rates.size() / 3 + 1, rates.size(), percent(rates.front().second), percent(valid),
          percent(rates.back().second));
    }
  }

  // ---- table 4

  /// How the tables of the regions are made.
  enum class ForeignDesign : std::uint8_t { Partitioned, CompletedByHash, RefinedAndCompleted };
  static std::string name_of(ForeignDesign design) {
    switch (design) {
      case ForeignDesign::Partitioned:
        return "BP";
      case ForeignDesign::CompletedByHash:
        return "BP, unknown words by hash";
      case ForeignDesign::RefinedAndCompleted:
        return "BP+IR, unknown words by hash";
    }
    return "";
  }

  void table_4() {
    fmt::print(
        "\n### Tables that were trained in another region, R = 5 [CALB 2019, table 4]\n\n"
        "Misses over those of the region's own table, in parentheses misses in %, and similarity of the logs:\n\n"
        "| test | AS | EU | NA | Jaccard AS | EU | NA |\n|---|---:|---:|---:|---:|---:|---:|\n{}",
        paper::kTable4);
    for (const ListSizes sizes : {ListSizes::GrowWithUse, ListSizes::UnlikeUse}) regions(sizes);
  }

  void regions(ListSizes sizes) {
    const WorldOptions world{Split::Resample, sizes, Eviction::LeastFrequentlyUsed};
    const Corpus corpus = make_corpus(Split::Resample, sizes, 3);
    for (const auto design :
         {ForeignDesign::Partitioned, ForeignDesign::CompletedByHash, ForeignDesign::RefinedAndCompleted}) {
      std::vector<VotingTable> tables;
      for (const LogSet& logs : corpus.regions) tables.push_back(regional_table(logs, corpus, design));
      const double worst = foreign_rows(world, corpus, design, tables);
      goals_.push_back(
          {fmt::format("{}: worst foreign table over the own one, {}", letter(world), name_of(design)), worst, 1.161});
    }
  }

  VotingTable regional_table(const LogSet& logs, const Corpus& corpus, ForeignDesign design) const {
    VotingTable table = binary_table(partition_of(logs, corpus, 5, options_.seed), corpus.pages, 5);
    if (design == ForeignDesign::Partitioned) return table;
    if (design == ForeignDesign::RefinedAndCompleted) {
      const SimulationOptions options{
          .replicas = 5, .cache_pages = cache_pages_for(logs.train, corpus.pages, 0.1, Eviction::LeastFrequentlyUsed)};
      table = refine(table, logs.train, corpus.pages, options, {});
    }
    return completed_by_hash(std::move(table), corpus);
  }

  /// Prints a row for each region; returns the worst ratio.
  double foreign_rows(const WorldOptions& world, const Corpus& corpus, ForeignDesign design,
                      const std::vector<VotingTable>& tables) const {
    double worst = 0.0;
    for (std::size_t test = 0; test < corpus.regions.size(); ++test) {
      const QueryLog& log = corpus.regions[test].test;
      const SimulationOptions options{.replicas = 5,
                                      .cache_pages = cache_pages_for(log, corpus.pages, 0.1, world.eviction)};
      const double own = run_table(tables[test], log, corpus, options).miss_rate;
      std::string rates;
      std::string similar;
      for (std::size_t train = 0; train < tables.size(); ++train) {
        const double rate = run_table(tables[train], log, corpus, options).miss_rate;
        worst = std::max(worst, rate / own);
        rates += fmt::format(" {:.3f}x ({:.2f}) |", rate / own, percent(rate));
        similar += fmt::format(" {:.3f} |", weighted_jaccard(corpus.regions[train].train, log, corpus.pages));
      }
      fmt::print("| {} region {}, {} |{}{}\n", letter(world), test, name_of(design), rates, similar);
    }
    return worst;
  }

  // ---- goals

  static std::string letter(const WorldOptions& world) { return world.sizes == ListSizes::GrowWithUse ? "A" : "B"; }

  void goals_of(const Comparison& row) {
    const auto name = [&](const std::string& text) { return fmt::format("{}: {}", letter(row.world), text); };
    const auto ratio = [&](const char* a, const char* b) { return row.miss_rate(a) / row.miss_rate(b); };
    goals_.push_back({name("FPT"), row.miss_rate("FPT"), 0.105});
    goals_.push_back({name("FPT"), row.miss_rate("FPT"), 0.095, true});
    goals_.push_back({name("BP+IR / FPT"), ratio("BP+IR", "FPT"), 0.33});
    goals_.push_back({name("gap closed by BP+IR"), row.gap_closed("BP+IR"), 0.72, true});
    goals_.push_back({name("RND / FPT"), ratio("RND", "FPT"), 1.0, false, true});
    goals_.push_back({name("BP / RND"), ratio("BP", "RND"), 1.0, false, true});
    goals_.push_back({name("RND+IR / RND"), ratio("RND+IR", "RND"), 1.0});
    goals_.push_back({name("BP+IR / BP"), ratio("BP+IR", "BP"), 1.0, false, true});
    goals_.push_back({name("BP / RND+IR"), ratio("BP", "RND+IR"), 1.0});
    goals_.push_back({name("load with multipliers"), row.outcomes.at("BP+IR+m").load, 1.05});
    goals_.push_back({name("misses with multipliers / without"), ratio("BP+IR+m", "BP+IR"), 1.1});
    goals_.push_back({name("the same, load balanced in the partition"), ratio("BPL+IR+m", "BPL+IR"), 1.1});
    goals_.push_back({name("shadow+m / BP+IR"), ratio("shadow+m", "BP+IR"), 0.9});
    goals_.push_back({name("load of shadow+m"), row.outcomes.at("shadow+m").load, 1.05, false, true});
  }

  bool print_goals() {
    for (const Comparison& row : rows_) {
      const bool is_judged = row.replicas == 5 && row.world.split == Split::Resample &&
                             row.world.eviction == Eviction::LeastFrequentlyUsed;
      if (is_judged) goals_of(row);
    }
    fmt::print("\n### Goals: R = 5, resample, LFU\n\n| what | value | goal | |\n|---|---:|---|---|\n");
    bool order_holds = true;
    for (const Goal& goal : goals_) {
      fmt::print("| {} | {:.3f} | {} {:.3f} | {} |\n", goal.text, goal.value, goal.at_least ? "at least" : "at most",
                 goal.limit, goal.holds() ? "holds" : "**does not hold**");
      order_holds = order_holds && (goal.holds() || !goal.is_order);
    }
    return order_holds;
  }

  const QuerySource& source_;
  const Options& options_;
  std::vector<Comparison> rows_;
  std::vector<Goal> goals_;
  std::string table_1_;
  std::string table_2_;
  std::string notes_;
  CsvFile table_3_csv_{options_.output, "misses", misses_header()};
  CsvFile figure_5_csv_{options_.output, "cache-sizes", "log,cache_over_s10,miss_rate"};
  CsvFile figure_3_csv_{options_.output, "clusterings", "log,part_degraded,cut,cut_test,miss_rate"};
  CsvFile refinement_csv_{options_.output, "refinement", "log,tau,round,train,valid"};
};

Result<QuerySource> read_source(const Options& options) {
  if (options.queries.empty()) {
    Random random(options.seed ^ 0x50);
    return synthetic_queries(options.quick ? 4000 : 20'000, options.quick ? 4000 : 15'000, random);
  }
  std::ifstream file(options.queries, std::ios::binary);
  if (!file) return Status(StatusCode::IoError, fmt::format("{}: cannot be read", options.queries));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return parse_queries(text);
}

int run(Options options) {
  if (options.quick) options.log_queries = std::min<std::size_t>(options.log_queries, 20'000);
  const Result<QuerySource> source = read_source(options);
  if (!source) {
    fmt::print(stderr, "{}\n", source.error().to_string());
    return 2;
  }
  fmt::print("Logs of {} queries, seed {}, drawn from {} queries with {} words {}.\n", options.log_queries,
             options.seed, source->queries.size(), source->vocabulary.size(),
             options.queries.empty() ? "that were made up (give real ones with --queries FILE)" : "of a file");
  if (Experiment(*source, options).run()) return 0;
  fmt::print(stderr, "the order of the ways is not as it should be; see the goals\n");
  return 1;
}

}  // namespace
}  // namespace fjord::affinity

int main(int argc, char** argv) {
  CLI::App app("Compares ways to choose replicas for queries, by simulated caches.");
  fjord::affinity::Options options;
  app.add_option("--queries", options.queries, "file of queries, number<tab>query; without it queries are made up");
  app.add_option("--log-queries", options.log_queries, "queries of each log")
      ->check(CLI::Range(1000, 10'000'000))
      ->capture_default_str();
  app.add_option("--clusterings", options.clusterings, "clusterings of figure 3")
      ->check(CLI::Range(10, 10'000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of logs and training")->capture_default_str();
  app.add_option("--output", options.output, "folder for CSV files; without it none are written");
  app.add_option("--split", options.split, "resample or disjoint: only that one, without table 4")
      ->check(CLI::IsMember({"resample", "disjoint"}));
  app.add_flag("--regions-only", options.regions_only, "table 4 alone");
  app.add_flag("--clusterings-only", options.clusterings_only, "figure 3 alone");
  app.add_flag("--quick", options.quick, "20,000 queries, two numbers of replicas, one split, LFU");
  CLI11_PARSE(app, argc, argv);
  return fjord::affinity::run(options);
}
