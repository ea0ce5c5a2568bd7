#include "replay.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <vector>

#include "fjord/affinity/log_generator.h"
#include "fjord/common/hash.h"
#include "fjord/fjord.h"

namespace fjord {
namespace {

using Steady = std::chrono::steady_clock;

// A posting takes kPostingBytes beside the text of its keyword. A text of kTextBytes makes a keyword take about a ninth
// of a page.
constexpr std::size_t kPageBytes = 4092;
constexpr std::size_t kPostingBytes = 29;
constexpr std::size_t kTextBytes = 425;

std::string text_of(affinity::WordId word) { return fmt::format("w{}", word); }

void write_log(const std::string& path, const affinity::QueryLog& log) {
  std::ofstream file(path, std::ios::trunc);
  for (std::size_t i = 0; i < log.size(); ++i) {
    std::string line;
    for (const affinity::WordId word : log.words(i)) line += (line.empty() ? "" : " ") + text_of(word);
    file << line << '\n';
  }
}

/// Writes a group with an ad, a keyword that may match the word, and enough other keywords that the word's list has
/// `pages` pages.
void write_word(std::ofstream& file, affinity::WordId word, std::uint32_t pages) {
  const std::string at = fmt::format("n={}", word);
  const std::string text = text_of(word);
  file << fmt::format(R"({{"put": "id:ads:ad_group:{}:1", "fields": {{"name": "g", "advertiser": {}}}}})", at,
                      word % 97)
       << '\n'
       << fmt::format(R"({{"put": "id:ads:ad:{}:1", "fields": {{"title": "{}"}}}})", at, text) << '\n';
  const auto keyword = [&](std::size_t number, const std::string& words) {
    file << fmt::format(
                R"({{"put": "id:ads:keyword:{}:{}", "fields": {{"text": "{}", "match": "{}", "bid_micros": {}}}}})", at,
                number, words, number == 0 ? "broad" : "exact", 20'000 + word * 7919 % 900'000)
         << '\n';
  };
  // Only every twentieth word has a match: otherwise documents would fill the cache.
  keyword(0, word % 20 == 0 ? text : text + " nobody searches this");
  const std::size_t others = pages * kPageBytes / (kPostingBytes + kTextBytes);
  for (std::size_t i = 1; i <= others; ++i) {
    std::string words = fmt::format("{} n{} ", text, i);
    words.resize(kTextBytes, 'x');
    keyword(i, words);
  }
}

struct NodeSum {
  std::uint64_t searches = 0;
  std::uint64_t pages = 0;
  std::uint64_t pages_read = 0;
  double load = 0;
};

struct Replay {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t under_way = 0;
  std::size_t failed = 0;
  std::size_t partial = 0;
  std::uint64_t answers = 0;  ///< Sum of the hashes of all answers; a sum does not depend on their order.
  std::vector<double> ms;
  std::map<std::string, NodeSum> nodes;
};

void take(Replay& replay, const SearchResult& result, std::size_t number, double ms, bool counts) {
  const std::lock_guard lock(replay.mutex);
  --replay.under_way;
  if (!result.status) {
    ++replay.failed;
  } else if (!result.is_complete()) {
    ++replay.partial;
  }
  std::uint64_t hash = number;
  for (const SearchPlace& place : result.places) {
    hash = mix64(hash, hash64(place.ad + place.keyword) ^ static_cast<std::uint64_t>(place.price_micros));
  }
  replay.answers += hash;
  if (counts) {
    replay.ms.push_back(ms);
    for (const SearchedNode& node : result.nodes) {
      NodeSum& sum = replay.nodes[node.node];
      ++sum.searches;
      sum.pages += node.pages;
      sum.pages_read += node.pages_read;
      sum.load += node.utilisation;
    }
  }
  replay.changed.notify_one();
}

std::string as_json(const Replay& replay, double seconds) {
  std::vector<double> ms = replay.ms;
  std::sort(ms.begin(), ms.end());
  const auto at = [&](double part) {
    return ms.empty() ? 0.0
                      : ms[std::min(ms.size() - 1, static_cast<std::size_t>(part * static_cast<double>(ms.size())))];
  };
  std::string nodes;
  for (const auto& [name, sum] : replay.nodes) {
    nodes += fmt::format(R"({}"{}": {{"searches": {}, "pages": {}, "pages_read": {}, "load": {:.4f}}})",
                         nodes.empty() ? "" : ", ", name, sum.searches, sum.pages, sum.pages_read,
                         sum.load / static_cast<double>(std::max<std::uint64_t>(1, sum.searches)));
  }
  return fmt::format(
      R"({{"searches": {}, "seconds": {:.3f}, "failed": {}, "partial": {}, "answers": "{:016x}", "p50_ms": {:.3f}, "p99_ms": {:.3f}, "nodes": {{{}}}}})",
      ms.size(), seconds, replay.failed, replay.partial, replay.answers, at(0.5), at(0.99), nodes);
}

}  // namespace

int make_log(const MakeLogOptions& options) {
  Random random(options.seed);
  affinity::QuerySource source;
  if (options.source.empty()) {
    source = affinity::synthetic_queries(options.queries, 3000, random);
  } else {
    std::stringstream text;
    text << std::ifstream(options.source).rdbuf();
    auto parsed = affinity::parse_queries(text.str());
    if (!parsed) return fmt::print(stderr, "{}: {}\n", options.source, parsed.error().message()), 1;
    source = *std::move(parsed);
  }
  affinity::GeneratorOptions generator;
  generator.queries = options.queries;
  generator.seed = options.seed;
  const affinity::Corpus corpus = affinity::generate_logs(source, generator);
  write_log(options.output + "/train.txt", corpus.regions[0].train);
  write_log(options.output + "/test.txt", corpus.regions[0].test);
  std::vector<bool> is_used(corpus.vocabulary.size());
  for (const affinity::QueryLog* log : {&corpus.regions[0].train, &corpus.regions[0].test}) {
    for (const affinity::WordId word : log->accesses()) is_used[word] = true;
  }
  std::ofstream feed(options.output + "/feed.jsonl", std::ios::trunc);
  std::uint64_t words = 0;
  std::uint64_t pages = 0;
  for (affinity::WordId word = 0; word < is_used.size(); ++word) {
    if (!is_used[word]) continue;
    const auto scaled = static_cast<std::uint32_t>(std::max(1.0, options.scale * corpus.pages[word]));
    write_word(feed, word, scaled);
    ++words;
    pages += scaled;
  }
  fmt::print("{{\"words\": {}, \"pages\": {}}}\n", words, pages);
  return feed.flush() ? 0 : 1;
}

int replay(const ReplayOptions& options) {
  std::vector<std::string> queries;
  std::ifstream file(options.queries);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) queries.push_back(line);
  }
  if (queries.size() <= options.skip) return fmt::print(stderr, "{} has no queries\n", options.queries), 1;
  Client client = connect(options.cluster);
  Replay state;
  Steady::time_point began = Steady::now();
  for (std::size_t i = 0; i < queries.size(); ++i) {
    {
      std::unique_lock lock(state.mutex);
      state.changed.wait(lock, [&] { return state.under_way < options.in_flight; });
      ++state.under_way;
    }
    const Steady::time_point begin = Steady::now();
    if (i == options.skip) began = begin;
    SearchRequest request;
    request.query = queries[i];
    request.timeout = seconds(5);
    request.explain = true;
    client.search(std::move(request)).then([&, i, begin](const SearchResult& result) {
      take(state, result, i, std::chrono::duration<double, std::milli>(Steady::now() - begin).count(),
           i >= options.skip);
    });
  }
  std::unique_lock lock(state.mutex);
  state.changed.wait(lock, [&] { return state.under_way == 0; });
  fmt::print("{}\n", as_json(state, std::chrono::duration<double>(Steady::now() - began).count()));
  return state.failed == 0 ? 0 : 1;
}

}  // namespace fjord
