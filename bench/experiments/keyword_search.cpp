// Compares layouts and serialisations of keywords that a search reads: chapter 7 of [KBD 2020].

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <time.h>

#include "fjord/common/check.h"
#include "keyword_stores.h"

namespace fjord::search {
namespace {

constexpr std::uint32_t kMatches[] = {2, 6, 14, 69, 136};
constexpr std::uint64_t kRandomQueries = 1600;

/// Returns the processor time of this thread: other programs on the machine change it less than the time of day.
double cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

double quantile(std::vector<double> values, double q) {
  const auto at = static_cast<std::size_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

struct Options {
  std::vector<std::uint32_t> counts;
  int turns = 5;
  int repeat = 2000;
  bool quick = false;
  std::string directory;
  std::string csv;
};

/// Latencies of searches in one store with one set of queries: p50 and p99, an element for each repetition.
struct Cell {
  std::vector<double> p50;
  std::vector<double> p99;
};

std::string with_range(const std::vector<double>& values) {
  return fmt::format("{:.1f} ({:.1f} to {:.1f})", quantile(values, 0.5), quantile(values, 0.0), quantile(values, 1.0));
}

class Experiment {
 public:
  Experiment(const Options& options, std::uint32_t count) : options_(options), source_(count) {
    for (const std::uint32_t matches : kMatches) {
      sets_.push_back({fmt::format("{} matches", matches), {parse(KeywordSource::query_with(matches))}});
    }
    sets_.push_back({"1,600 random", {}});
    for (std::uint64_t i = 0; i < kRandomQueries; ++i)
      sets_.back().queries.push_back(parse(KeywordSource::random_query(i)));
  }

  /// Measures all stores. If there are few keywords, all stores are in memory and are measured in turns. If there are
  /// many, they do not fit into memory together, and are measured one after the other.
  void run() {
    const std::vector<StoreKind> kinds = store_kinds();
    const bool together = source_.count() <= 1'000'000;
    std::vector<std::unique_ptr<KeywordStore>> stores;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      stores.push_back(kinds[i].make(source_, fmt::format("{}/{}-{}", options_.directory, source_.count(), i)));
      kib_[i] = static_cast<double>(stores.back()->search(sets_[std::size(kMatches) - 1].queries.front()).bytes) / 1024;
      megabytes_[i] = static_cast<double>(stores.back()->bytes()) / 1e6;
      check(*stores.back());
      if (together) continue;
      for (int turn = 0; turn < options_.turns; ++turn) measure(i, *stores.back());
      stores.back().reset();
    }
    for (int turn = 0; together && turn < options_.turns; ++turn) {
      for (std::size_t i = 0; i < kinds.size(); ++i) measure(i, *stores[i]);
    }
    print(kinds);
  }

  /// Prints how much faster each split store is than the store in one piece of the same form, whether one of them is
  /// twice as fast, and whether the best store takes at most 200 us for 136 matches.
  void print_goals() const {
    const std::vector<StoreKind> kinds = store_kinds();
    const std::size_t most = std::size(kMatches) - 1;
    double best = 1e9;
    double gain = 0.0;
    fmt::print(
        "\nOne store over the split store of the same form, p50:\n\n| form | 136 matches | 1,600 random "
        "|\n|---|---|---|\n");
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      best = std::min(best, us(i, most));
      const std::size_t comma = kinds[i].name.find(", ");
      if (!kinds[i].name.starts_with("split, ")) continue;
      const std::string form = kinds[i].name.substr(comma + 2);
      const std::string same = form == "numbers and bits" ? "numbers of words" : form;
      const auto one =
          std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.name == "one, " + same; });
      const auto at = static_cast<std::size_t>(one - kinds.begin());
      gain = std::max(gain, us(at, most) / us(i, most));
      fmt::print("| {} | {:.2f} | {:.2f} |\n", form, us(at, most) / us(i, most), us(at, most + 1) / us(i, most + 1));
    }
    fmt::print("\nOne store, parsed, over the best store at 136 matches: {:.1f}.\n", us(0, most) / best);
    fmt::print("Goals: a split store twice as fast in the same form: {}; the best within 200 us: {}.\n",
               gain >= 2.0 ? "yes" : "no", best <= 200.0 ? "yes" : "no");
  }

 private:
  struct QuerySet {
    std::string name;
    std::vector<QueryVariant> queries;
  };

  double us(std::size_t kind, std::size_t set) const { return quantile(cells_.at({kind, set}).p50, 0.5); }

  static QueryVariant parse(const std::string& query) {
    auto variants = parse_query(query);
    FJORD_CHECK(variants.has_value());
    return std::move(variants->front());
  }

  /// Checks that all stores find the same keywords, and that each planted query finds the number it was made for.
  void check(const KeywordStore& store) {
    for (std::size_t set = 0; set < sets_.size(); ++set) {
      Found sum;
      for (const QueryVariant& query : sets_[set].queries) {
        const Found found = store.search(query);
        sum.matches += found.matches;
        sum.scanned += found.scanned;
        sum.check += found.check;
      }
      const auto [at, is_first] = expected_.emplace(set, sum);
      FJORD_CHECK(is_first || (at->second.check == sum.check && at->second.scanned == sum.scanned));
      if (set < std::size(kMatches)) FJORD_CHECK(sum.matches == kMatches[set]);
    }
  }

  /// Measures one turn. Of each set of queries only the second half of the repetitions counts, as in the paper.
  void measure(std::size_t kind, const KeywordStore& store) {
    for (std::size_t set = 0; set < sets_.size(); ++set) {
      std::vector<double> us;
      const std::vector<QueryVariant>& queries = sets_[set].queries;
      const int repeat = std::max(options_.repeat, static_cast<int>(2 * queries.size()));
      for (int i = 0; i < repeat; ++i) {
        const QueryVariant& query = queries[static_cast<std::size_t>(i) % queries.size()];
        const double begin = cpu_us();
        check_ += store.search(query).check;
        if (i >= repeat / 2) us.push_back(cpu_us() - begin);
      }
      cells_[{kind, set}].p50.push_back(quantile(us, 0.5));
      cells_[{kind, set}].p99.push_back(quantile(us, 0.99));
    }
  }

  void print(const std::vector<StoreKind>& kinds) {
    fmt::print(
        "\n### {} keywords\n\nMicroseconds of processor time: median of {} turns of the p50 (least to greatest).\n\n"
        "| store | MB | KiB read at 136 |",
        source_.count(), options_.turns);
    for (const QuerySet& set : sets_) fmt::print(" {} |", set.name);
    fmt::print("\n|---|---|---|");
    for (std::size_t i = 0; i < sets_.size(); ++i) fmt::print("---|");
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      fmt::print("\n| {} | {:.0f} | {} |", kinds[kind].name, megabytes_[kind],
                 kib_[kind] == 0 ? "" : fmt::format("{:.0f}", kib_[kind]));
      for (std::size_t set = 0; set < sets_.size(); ++set) fmt::print(" {} |", with_range(cells_[{kind, set}].p50));
    }
    fmt::print("\n\nKeywords compared with the query:");
    for (std::size_t set = 0; set < sets_.size(); ++set) {
      fmt::print(" {} {:.0f}{}", sets_[set].name,
                 static_cast<double>(expected_[set].scanned) / static_cast<double>(sets_[set].queries.size()),
                 set + 1 < sets_.size() ? ","
                                        : fmt::format(" on average, of which {:.2f} match.\n",
                                                      static_cast<double>(expected_[set].matches) / kRandomQueries));
    }
    if (options_.csv.empty()) return;
    std::ofstream csv(options_.csv, std::ios::app);
    for (const auto& [at, cell] : cells_) {
      for (std::size_t turn = 0; turn < cell.p50.size(); ++turn) {
        csv << fmt::format("{},\"{}\",\"{}\",{},{:.2f},{:.2f}\n", source_.count(), kinds[at.first].name,
                           sets_[at.second].name, turn, cell.p50[turn], cell.p99[turn]);
      }
    }
  }

  const Options& options_;
  KeywordSource source_;
  std::vector<QuerySet> sets_;
  std::map<std::size_t, double> megabytes_;
  std::map<std::size_t, double> kib_;  // KiB that the query with the most matches reads, by store.
  std::map<std::size_t, Found> expected_;
  std::map<std::pair<std::size_t, std::size_t>, Cell> cells_;
  std::uint64_t check_ = 0;
};

int run(const Options& options) {
  for (const std::string& form : missing_forms()) {
    fmt::print("Left out, because the library was missing when this was built: {}.\n", form);
  }
  if (!options.csv.empty()) std::ofstream(options.csv) << "keywords,store,queries,turn,p50_us,p99_us\n";
  for (const std::uint32_t count : options.counts) {
    Experiment experiment(options, count);
    experiment.run();
    experiment.print_goals();
  }
  return 0;
}

}  // namespace
}  // namespace fjord::search

int main(int argc, char** argv) {
  CLI::App app("Compares layouts and serialisations of keywords.");
  fjord::search::Options options;
  std::string output;
  app.add_flag("--quick", options.quick, "50,000 keywords, three turns; all stores have to find the same");
  app.add_option("--directory", options.directory, "Folder for the files of the index")->required();
  app.add_option("--output", output, "Folder for the CSV");
  app.add_option("--turns", options.turns, "Turns of all stores (default: 5)");
  app.add_option("--keywords", options.counts, "Numbers of keywords (default: 1000000)");
  CLI11_PARSE(app, argc, argv);
  if (options.counts.empty()) options.counts = {1'000'000};
  if (options.quick) {
    options.counts = {50'000};
    options.turns = 3;
    options.repeat = 200;
  }
  if (!output.empty()) options.csv = output + "/keyword-search.csv";
  return fjord::search::run(options);
}
