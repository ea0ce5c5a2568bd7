#include "fjord/affinity/log_generator.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>
#include <set>

namespace fjord::affinity {
namespace {

QuerySource source() {
  Random random(1);
  return synthetic_queries(3000, 2000, random);
}

GeneratorOptions options(Split split = Split::Resample, std::size_t regions = 1) {
  GeneratorOptions result;
  result.queries = 5000;
  result.split = split;
  result.regions = regions;
  return result;
}

std::set<WordId> words_below(const QueryLog& log, std::size_t end) {
  std::set<WordId> words;
  for (const WordId word : log.accesses()) {
    if (word < end) words.insert(word);
  }
  return words;
}

TEST_CASE("lines of numbers and queries are read, with tabs or colons, in UTF-8 or Latin-1") {
  const Result<QuerySource> read = parse_queries(
      "1\tHorse  hooves\n2:la pi\xf1"
      "ata, 2006\n\n3\thorse horse\r\n4\t??\n");
  REQUIRE(read);
  CHECK(read->vocabulary == std::vector<std::string>{"horse", "hooves", "la",
                                                     "pi\xc3\xb1"
                                                     "ata",
                                                     "2006"});
  CHECK(read->queries == std::vector<std::vector<WordId>>{{0, 1}, {2, 3, 4}, {0, 0}});
  CHECK(read->queries_with == std::vector<std::uint32_t>{2, 1, 1, 1, 1});
}

TEST_CASE("a line without a number is refused with its number, and so is a file without queries") {
  const Result<QuerySource> bad = parse_queries("1\ta\nwithout\n");
  REQUIRE_FALSE(bad);
  CHECK(bad.error().message().find("line 2") != std::string::npos);
  CHECK_FALSE(parse_queries("\n\n"));
  CHECK_FALSE(parse_queries("12\n"));
}

TEST_CASE("a query is a set of words in ascending order; equal sets have equal fingerprints") {
  QueryLog log;
  log.add({5, 2, 5});
  log.add({2, 5});
  log.add({2, 6});
  CHECK(log.words(0).size() == 2);
  CHECK(log.words(0)[0] == 2);
  CHECK(log.fingerprint(0) == log.fingerprint(1));
  CHECK(log.fingerprint(0) != log.fingerprint(2));
  CHECK(count_occurrences(log, 7) == std::vector<std::uint32_t>{0, 0, 3, 0, 0, 2, 1});
}

TEST_CASE("the same options give the same logs, another seed others") {
  const QuerySource from = source();
  const Corpus a = generate_logs(from, options());
  const Corpus b = generate_logs(from, options());
  GeneratorOptions other = options();
  other.seed = 2;
  const Corpus c = generate_logs(from, other);
  const auto accesses = [](const Corpus& corpus) {
    const std::span<const WordId> words = corpus.regions[0].test.accesses();
    return std::vector<WordId>(words.begin(), words.end());
  };
  CHECK(accesses(a) == accesses(b));
  CHECK(a.pages == b.pages);
  CHECK(accesses(a) != accesses(c));
}

TEST_CASE("the 50 words of most queries are pinned, and are in no log") {
  const QuerySource from = source();
  std::vector<WordId> order(from.vocabulary.size());
  for (WordId word = 0; word < order.size(); ++word) order[word] = word;
  std::stable_sort(order.begin(), order.end(),
                   [&](WordId a, WordId b) { return from.queries_with[a] > from.queries_with[b]; });
  const Corpus corpus = generate_logs(from, options());
  const std::set<WordId> seen = words_below(corpus.regions[0].train, from.vocabulary.size());
  for (std::size_t i = 0; i < 50; ++i) CHECK_FALSE(seen.contains(order[i]));
  CHECK(seen.contains(order[50]));
}

TEST_CASE("rare words make up most of the words that occur once, and go on from the train to the test log") {
  const QuerySource from = source();
  const Corpus corpus = generate_logs(from, options());
  const LogSet& logs = corpus.regions[0];
  REQUIRE(logs.train.size() == 5000);
  const std::vector<std::uint32_t> train = count_occurrences(logs.train, corpus.pages.size());
  const std::vector<std::uint32_t> test = count_occurrences(logs.test, corpus.pages.size());
  std::size_t once = 0;
  std::size_t words = 0;
  std::size_t both = 0;
  for (std::size_t word = 0; word < test.size(); ++word) {
    words += test[word] > 0 ? 1 : 0;
    once += test[word] == 1 ? 1 : 0;
    both += word >= from.vocabulary.size() && train[word] > 0 && test[word] > 0 ? 1 : 0;
  }
  CHECK(static_cast<double>(once) > 0.4 * static_cast<double>(words));
  CHECK(both > 100);
}

TEST_CASE("about seven in a hundred queries are repeated, and a few more are equal by chance") {
  const Corpus corpus = generate_logs(source(), options());
  std::set<std::uint64_t> distinct;
  const QueryLog& log = corpus.regions[0].train;
  for (std::size_t query = 0; query < log.size(); ++query) distinct.insert(log.fingerprint(query));
  const double part = static_cast<double>(distinct.size()) / static_cast<double>(log.size());
  CHECK(part < 0.94);
  CHECK(part > 0.85);
}

/// Each query has a word of its own, and one of 50 that are pinned.
QuerySource source_of_own_words() {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "1\tcommon" + std::to_string(i % 50) + " a" + std::to_string(i) + "\n";
  return *parse_queries(text);
}

TEST_CASE("disjoint logs come from different queries of the source") {
  const QuerySource from = source_of_own_words();
  const Corpus apart = generate_logs(from, options(Split::Disjoint));
  const std::set<WordId> train = words_below(apart.regions[0].train, from.vocabulary.size());
  const std::set<WordId> valid = words_below(apart.regions[0].valid, from.vocabulary.size());
  const std::set<WordId> test = words_below(apart.regions[0].test, from.vocabulary.size());
  CHECK(train.size() == Approx(500).margin(60));
  CHECK(valid.size() == Approx(100).margin(40));
  CHECK(test.size() == Approx(400).margin(60));
  for (const WordId word : test) CHECK_FALSE((train.contains(word) || valid.contains(word)));
  const Corpus together = generate_logs(from, options());
  CHECK(words_below(together.regions[0].train, from.vocabulary.size()).size() > 900);
}

TEST_CASE("a region draws from a quarter of the source, of which its neighbour has a fifth") {
  const QuerySource from = source_of_own_words();
  const Corpus corpus = generate_logs(from, options(Split::Resample, 3));
  std::vector<std::set<WordId>> seen;
  for (const LogSet& logs : corpus.regions) {
    seen.push_back(words_below(logs.train, from.vocabulary.size()));
    CHECK(seen.back().size() == Approx(250).margin(50));
  }
  std::vector<WordId> both;
  std::set_intersection(seen[0].begin(), seen[0].end(), seen[1].begin(), seen[1].end(), std::back_inserter(both));
  CHECK(both.size() == Approx(50).margin(25));
}

TEST_CASE("logs of other regions are less alike than those of one region") {
  const QuerySource from = source();
  const Corpus corpus = generate_logs(from, options(Split::Resample, 3));
  REQUIRE(corpus.regions.size() == 3);
  const double same = weighted_jaccard(corpus.regions[0].train, corpus.regions[0].test, corpus.pages);
  const double other = weighted_jaccard(corpus.regions[0].train, corpus.regions[2].test, corpus.pages);
  CHECK(weighted_jaccard(corpus.regions[0].test, corpus.regions[0].test, corpus.pages) == 1.0);
  CHECK(other < same);
}

TEST_CASE("lists grow with use, or are unlike it") {
  const QuerySource from = source();
  const Corpus grown = generate_logs(from, options());
  GeneratorOptions unlike = options();
  unlike.sizes = ListSizes::UnlikeUse;
  const Corpus other = generate_logs(from, unlike);
  std::set<std::uint32_t> of_one_use;
  for (WordId word = 0; word < from.vocabulary.size(); ++word) {
    CHECK(grown.pages[word] == std::max(1U, 3 * from.queries_with[word]));
    if (from.queries_with[word] == 5) of_one_use.insert(other.pages[word]);
  }
  CHECK(of_one_use.size() > 5);
}

}  // namespace
}  // namespace fjord::affinity
