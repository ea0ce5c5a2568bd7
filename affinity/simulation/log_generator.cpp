#include "fjord/affinity/log_generator.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numbers>
#include <numeric>
#include <optional>

#include "fjord/common/check.h"

namespace fjord::affinity {
namespace {

constexpr double kRepeat = 0.07;        // Probability that a query repeats an earlier one of its log.
constexpr double kGoOnElsewhere = 0.1;  // Probability, after each word, to continue elsewhere.
constexpr std::size_t kWordsMax = 12;
constexpr std::size_t kPinnedWords = 50;
constexpr double kRareWord = 0.9;  // Probability that a query gets a rare word.
constexpr double kDiscount = 0.6;
constexpr double kStrength = 0.27;  // Strength of the Pitman-Yor process over a log's queries.
/// Each region draws from an interval of the hashes, which form the circle [0, 1). kRegionPart is the length of the
/// interval; the intervals of consecutive regions are kRegionStep apart.
constexpr double kRegionPart = 0.25;
constexpr double kRegionStep = 0.2;

/// Returns the hash of a query of the source, as a number in [0, 1).
double place_of(std::size_t query, std::uint64_t seed) {
  return static_cast<double>(mix64(query, seed) >> 11) * 0x1p-53;
}

/// Draws rare words, as numbers, by a Pitman-Yor process: each draw is a new word or one that was drawn before.
class RareWords {
 public:
  RareWords(double strength, WordId first) : strength_(strength), first_(first) {}

  WordId draw(Random& random) {
    const auto draws = static_cast<double>(draws_.size());
    const auto words = static_cast<double>(counts_.size());
    std::size_t word = counts_.size();
    if (!random.chance((strength_ + kDiscount * words) / (strength_ + draws))) {
      // Draws an earlier word with a probability proportional to its count minus kDiscount.
      do {
        word = draws_[random.below(draws_.size())];
      } while (!random.chance(1.0 - kDiscount / counts_[word]));
    }
    if (word == counts_.size()) counts_.push_back(0.0);
    counts_[word] += 1.0;
    draws_.push_back(word);
    return first_ + static_cast<WordId>(word);
  }
  const std::vector<double>& counts() const { return counts_; }

 private:
  double strength_;
  WordId first_;
  std::vector<std::size_t> draws_;
  std::vector<double> counts_;
};

/// Draws queries that resemble the queries of a part of the source.
class QueryWalk {
 public:
  QueryWalk(const QuerySource& source, std::vector<std::size_t> part)
      : source_(source), part_(std::move(part)), occurrences_(source.vocabulary.size()) {
    FJORD_CHECK(!part_.empty());
    for (const std::size_t query : part_) {
      for (std::size_t at = 0; at < source.queries[query].size(); ++at) {
        occurrences_[source.queries[query][at]].push_back({query, at});
      }
    }
  }

  std::vector<WordId> draw(Random& random) const {
    Place place{part_[random.below(part_.size())], 0};
    std::vector<WordId> words;
    while (place.at < source_.queries[place.query].size() && words.size() < kWordsMax) {
      const WordId word = source_.queries[place.query][place.at];
      words.push_back(word);
      if (random.chance(kGoOnElsewhere)) place = occurrences_[word][random.below(occurrences_[word].size())];
      ++place.at;
    }
    return words;
  }

 private:
  struct Place {
    std::size_t query;
    std::size_t at;
  };

  const QuerySource& source_;
  std::vector<std::size_t> part_;
  std::vector<std::vector<Place>> occurrences_;  // By WordId.
};

class Generator {
 public:
  Generator(const QuerySource& source, const GeneratorOptions& options)
      : source_(source), options_(options), random_(options.seed), pinned_(source.vocabulary.size(), false) {
    std::vector<WordId> order(source.vocabulary.size());
    std::iota(order.begin(), order.end(), WordId{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](WordId a, WordId b) { return source.queries_with[a] > source.queries_with[b]; });
    for (std::size_t i = 0; i < std::min(kPinnedWords, order.size()); ++i) pinned_[order[i]] = true;
  }

  Corpus run() {
    corpus_.vocabulary = source_.vocabulary;
    for (std::size_t word = 0; word < source_.vocabulary.size(); ++word) {
      corpus_.pages.push_back(draw_pages(source_.queries_with[word], 3.0, 2.0));
    }
    for (std::size_t region = 0; region < options_.regions; ++region) add_region(region);
    for (const std::string& word : corpus_.vocabulary) corpus_.hashes.push_back(hash64(word));
    return std::move(corpus_);
  }

 private:
  void add_region(std::size_t region) {
    const auto first = static_cast<WordId>(corpus_.vocabulary.size());
    RareWords rare(kStrength * static_cast<double>(options_.queries), first);
    LogSet logs;
    logs.train = draw_log(QueryWalk(source_, part_of(region, 0.0, 0.5)), rare);
    logs.valid = draw_log(QueryWalk(source_, part_of(region, 0.5, 0.6)), rare);
    logs.test = draw_log(QueryWalk(source_, part_of(region, 0.6, 1.0)), rare);
    corpus_.regions.push_back(std::move(logs));
    for (std::size_t word = 0; word < rare.counts().size(); ++word) {
      corpus_.vocabulary.push_back(fmt::format("rare {} {}", region, word));
      corpus_.pages.push_back(draw_pages(rare.counts()[word], 1.0, 1.0));
    }
  }

  /// Returns the queries of the source from which a region draws one of its logs: those with place_of() in [from, to),
  /// if the logs are disjoint.
  std::vector<std::size_t> part_of(std::size_t region, double from, double to) const {
    std::vector<std::size_t> part;
    for (std::size_t query = 0; query < source_.queries.size(); ++query) {
      if (options_.split == Split::Disjoint) {
        const double place = place_of(query, options_.seed ^ 0xd15);
        if (place < from || place >= to) continue;
      }
      if (options_.regions > 1) {
        const double behind = place_of(query, options_.seed ^ 0x4e6) - kRegionStep * static_cast<double>(region);
        if (behind - std::floor(behind) >= kRegionPart) continue;
      }
      part.push_back(query);
    }
    return part;
  }

  QueryLog draw_log(const QueryWalk& walk, RareWords& rare) {
    QueryLog log;
    while (log.size() < options_.queries) {
      if (log.size() > 0 && random_.chance(kRepeat)) {
        const std::span<const WordId> earlier = log.words(random_.below(log.size()));
        log.add(std::vector<WordId>(earlier.begin(), earlier.end()));
        continue;
      }
      std::vector<WordId> words = walk.draw(random_);
      std::erase_if(words, [&](WordId word) { return pinned_[word]; });
      if (random_.chance(kRareWord)) words.push_back(rare.draw(random_));
      if (!words.empty()) log.add(std::move(words));
    }
    return log;
  }

  std::uint32_t draw_pages(double use, double factor_as_use, double factor_unlike) {
    double pages = factor_as_use * use;
    if (options_.sizes == ListSizes::UnlikeUse) {
      const double radius = std::sqrt(-2.0 * std::log(1.0 - random_.uniform()));
      const double normal = radius * std::cos(2.0 * std::numbers::pi * random_.uniform());
      pages = factor_unlike * std::pow(use, 0.7) * std::exp(1.5 * normal);
    }
    return static_cast<std::uint32_t>(std::max(1.0, std::ceil(pages)));
  }

  const QuerySource& source_;
  const GeneratorOptions& options_;
  Random random_;
  /// By WordId of the source: the word is among the most frequent ones, which are left out of the logs.
  std::vector<bool> pinned_;
  Corpus corpus_;
};

}  // namespace

Corpus generate_logs(const QuerySource& source, const GeneratorOptions& options) {
  FJORD_CHECK(options.regions > 0 && options.queries > 0);
  return Generator(source, options).run();
}

double weighted_jaccard(const QueryLog& a, const QueryLog& b, const ListPages& pages) {
  const std::vector<std::uint32_t> in_a = count_occurrences(a, pages.size());
  const std::vector<std::uint32_t> in_b = count_occurrences(b, pages.size());
  double both = 0.0;
  double either = 0.0;
  for (std::size_t word = 0; word < pages.size(); ++word) {
    both += static_cast<double>(std::min(in_a[word], in_b[word])) * pages[word];
    either += static_cast<double>(std::max(in_a[word], in_b[word])) * pages[word];
  }
  return either > 0.0 ? both / either : 1.0;
}

}  // namespace fjord::affinity
