// The clients of balance-live and balance-sklik: ad groups with keywords, operations with a moving hot spot, searches.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include "fjord/common/hash.h"
#include "fjord/common/random.h"
#include "fjord/fjord.h"
#include "fjord/library/balancing.h"

namespace fjord {
namespace {

using SteadyClock = std::chrono::steady_clock;
using SteadyTime = SteadyClock::time_point;

constexpr const char* kSchema = R"(document ad_group {
  field name type string { header index: group }
  field advertiser type int { header }
}
document keyword {
  field text type string { header index: keyword }
  field match type string { header }
  field bid_micros type long { header }
}
document ad { field title type string { header index: ad } }
)";

std::int64_t micros(SteadyTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}
double seconds_since(SteadyTime start) { return std::chrono::duration<double>(SteadyClock::now() - start).count(); }

std::string id_of(const char* type, std::uint64_t group, std::uint64_t number) {
  return fmt::format("id:ads:{}:n={}:{}", type, group, number);
}

/// Reads queries from a file with lines "number TAB query". Returns each as a list of words in lower-case ASCII.
std::vector<std::vector<std::string>> read_queries(const std::string& path) {
  std::vector<std::vector<std::string>> queries;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos) continue;
    std::vector<std::string> words(1);
    for (const char c : line.substr(tab + 1)) {
      if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
        words.back() += c;
      } else if (!words.back().empty()) {
        words.emplace_back();
      }
    }
    if (words.back().empty()) words.pop_back();
    if (!words.empty()) queries.push_back(std::move(words));
  }
  return queries;
}

struct Corpus {
  std::uint64_t groups = 6000;
  std::uint64_t keywords = 10;  ///< Mean number of keywords of a group.
  std::string queries;          ///< File of queries; empty: keywords are pairs of 3,000 made-up words.
};

/// Makes the documents of all groups. With a file of queries, keywords of a group are parts of three queries (topics).
class Groups {
 public:
  explicit Groups(const Corpus& corpus) : corpus_(corpus) {
    if (!corpus.queries.empty()) queries_ = read_queries(corpus.queries);
  }

  template <typename Put>
  void for_each(Put put) const {
    for (std::uint64_t group = 0; group < corpus_.groups; ++group) {
      Random random(mix64(group, 0x67726f7570));
      put(id_of("ad_group", group, 0), fmt::format(R"({{"name": "g", "advertiser": {}}})", group % 20'000));
      for (std::uint64_t n = 0; n < 2; ++n) put(id_of("ad", group, n), ad_fields(group, n));
      std::uint64_t topics[3];
      for (std::uint64_t& topic : topics) topic = queries_.empty() ? 0 : random.below(queries_.size());
      // The number of keywords is between a third and five thirds of the mean.
      const std::uint64_t count =
          std::max<std::uint64_t>(1, corpus_.keywords / 3 + random.below(corpus_.keywords * 4 / 3 + 1));
      for (std::uint64_t n = 0; n < count; ++n) {
        put(id_of("keyword", group, n),
            fmt::format(R"({{"text": "{}", "match": "broad", "bid_micros": {}}})",
                        text(topics[random.below(3)], random), 20'000 + random.below(1'000'000)));
      }
    }
  }
  static std::string ad_fields(std::uint64_t group, std::uint64_t number) {
    return fmt::format(R"({{"title": "Offer {} of group {} for those who look for it"}})", number, group);
  }

 private:
  std::string text(std::uint64_t topic, Random& random) const {
    if (queries_.empty()) return fmt::format("w{} w{}", random.below(3000), random.below(3000));
    const std::vector<std::string>& words = queries_[topic];
    const std::size_t length = 1 + random.below(std::min<std::size_t>(words.size(), 3));
    const std::size_t from = random.below(words.size() - length + 1);
    return fmt::format("{}", fmt::join(words.begin() + static_cast<std::ptrdiff_t>(from),
                                       words.begin() + static_cast<std::ptrdiff_t>(from + length), " "));
  }

  Corpus corpus_;
  std::vector<std::vector<std::string>> queries_;
};

int feed(Client& client, const Corpus& corpus) {
  const auto deployed = client.admin().deploy_schemas({kSchema});
  if (!deployed) return fmt::print(stderr, "{}\n", deployed.error().to_string()), 1;
  std::atomic<std::uint64_t> left = 0;
  std::atomic<std::uint64_t> failed = 0;
  std::uint64_t count = 0;
  const SteadyTime start = SteadyClock::now();
  Groups(corpus).for_each([&](const std::string& id, const std::string& fields) {
    while (left > 4000) std::this_thread::sleep_for(std::chrono::microseconds(200));
    ++left;
    ++count;
    client.put_json(id, fields).then([&](const WriteResult& written) {
      if (!written.status) ++failed;
      --left;
    });
  });
  while (left > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  fmt::print("documents {} seconds {:.1f} failed {}\n", count, seconds_since(start), failed.load());
  return failed == 0 ? 0 : 1;
}

// ---------------------------------------------------------------------------------------------------------------------
// A moving hot spot

struct HotOptions {
  std::uint64_t groups = 6000;
  unsigned bits = 8;
  double gets = 600;  ///< Gets per second; puts and searches are per second as well.
  double puts = 150;
  double searches = 20;
  double seconds = 60;
  double hot_part = 0.3;  ///< Part of gets and puts that goes to hot buckets.
  bool uniform = false;   ///< All other load is equal on all buckets; false: lognormal, sigma 0.8.
  unsigned hot_buckets = 12;
  double round_s = 1;  ///< A bucket is hot for 60 rounds; the first and last 10 of them are a ramp.
  std::string output;
};

/// Draws the bucket of an operation, with the distribution of the simulated trace moving-hotspot.
class HotSpot {
 public:
  explicit HotSpot(const HotOptions& options) : options_(options), random_(3) {
    const std::uint64_t buckets = std::uint64_t{1} << options.bits;
    double sum = 0;
    for (std::uint64_t bucket = 0; bucket < buckets; ++bucket) {
      const double normal = std::sqrt(-2 * std::log(1 - random_.uniform())) * std::cos(6.283185307 * random_.uniform());
      sum += options.uniform ? 1.0 : std::exp(0.8 * normal);
      cumulated_.push_back(sum);
    }
  }
  std::uint64_t group(double at_s) {
    const std::uint64_t buckets = cumulated_.size();
    const std::uint64_t bucket = random_.chance(options_.hot_part) ? hot_bucket(at_s) : base_bucket();
    // The group's number is the location of its documents, so its low bits are the bucket.
    return bucket + buckets * random_.below(options_.groups / buckets);
  }
  Random& random() { return random_; }

 private:
  std::uint64_t base_bucket() {
    const double at = random_.uniform() * cumulated_.back();
    return static_cast<std::uint64_t>(std::lower_bound(cumulated_.begin(), cumulated_.end(), at) - cumulated_.begin());
  }
  /// Draws a hot bucket for an operation at the time `at_s`. The hot buckets are ranked by Zipf's law (0.9). Each rank
  /// gets another bucket every 60 rounds, the ranks at different times.
  std::uint64_t hot_bucket(double at_s) {
    const double rounds = at_s / options_.round_s;
    std::vector<double> weights;
    std::vector<std::uint64_t> chosen;
    for (unsigned place = 0; place < options_.hot_buckets; ++place) {
      const double age = rounds + 60.0 * static_cast<double>(place * 7 % options_.hot_buckets) / options_.hot_buckets;
      const double within = std::fmod(age, 60.0);
      const double ramp = std::min({1.0, within / 10, (60 - within) / 10});
      weights.push_back(ramp / std::pow(place + 1, 0.9));
      chosen.push_back(mix64(place, static_cast<std::uint64_t>(age / 60)) % cumulated_.size());
    }
    double sum = 0;
    for (const double weight : weights) sum += weight;
    double at = random_.uniform() * sum;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if ((at -= weights[i]) <= 0) return chosen[i];
    }
    return chosen.back();
  }

  HotOptions options_;
  Random random_;
  std::vector<double> cumulated_;
};

/// Starts operations when they are due, whether or not others have ended, and writes a line of CSV for each.
class HotLoad {
 public:
  HotLoad(Client& client, const HotOptions& options)
      : client_(client), options_(options), spot_(options), out_(options.output) {
    out_ << "due_us,kind,latency_us,status,why\n";
  }

  int run() {
    const double rate = options_.gets + options_.puts + options_.searches;
    const SteadyTime start = SteadyClock::now();
    const auto count = static_cast<std::uint64_t>(rate * options_.seconds);
    for (std::uint64_t i = 0; i < count; ++i) {
      const double at_s = static_cast<double>(i) / rate;
      const SteadyTime due = start + std::chrono::nanoseconds(static_cast<std::int64_t>(at_s * 1e9));
      std::this_thread::sleep_until(due);
      const double dice = spot_.random().uniform() * rate;
      if (dice < options_.gets) {
        get(spot_.group(at_s), due);
      } else if (dice < options_.gets + options_.puts) {
        put(spot_.group(at_s), due);
      } else {
        search(due);
      }
    }
    while (ended_ < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    fmt::print("operations {} failed {} wrong {}\n", count, failed_.load(), wrong_.load());
    return failed_ + wrong_ == 0 ? 0 : 1;
  }

 private:
  void get(std::uint64_t group, SteadyTime due) {
    client_.get_json(id_of("ad", group, 0)).then([this, group, due](const JsonResult& read) {
      const std::string title = fmt::format("of group {} for", group);
      if (read.status && read.json.find(title) == std::string::npos) ++wrong_;
      end("get", due, read.status);
    });
  }
  void put(std::uint64_t group, SteadyTime due) {
    client_.put_json(id_of("ad", group, 0), Groups::ad_fields(group, spot_.random().below(100)))
        .then([this, due](const WriteResult& written) { end("put", due, written.status); });
  }
  void search(SteadyTime due) {
    SearchRequest request;
    request.query =
        fmt::format("w{} w{} w{}", spot_.random().below(3000), spot_.random().below(3000), spot_.random().below(3000));
    client_.search(std::move(request)).then([this, due](const SearchResult& found) {
      end("search", due, found.status && !found.is_complete() ? found.missing : found.status);
    });
  }
  void end(const char* kind, SteadyTime due, const Status& status) {
    const SteadyTime now = SteadyClock::now();
    const std::lock_guard lock(mutex_);
    if (!status) ++failed_;
    std::string why = status.message();
    std::replace(why.begin(), why.end(), '"', '\'');
    out_ << fmt::format("{},{},{},{},\"{}\"\n", micros(due), kind, micros(now) - micros(due), to_string(status.code()),
                        why);
    ++ended_;
  }

  Client& client_;
  HotOptions options_;
  HotSpot spot_;
  std::mutex mutex_;
  std::ofstream out_;
  std::atomic<std::uint64_t> ended_ = 0;
  std::atomic<std::uint64_t> failed_ = 0;
  std::atomic<std::uint64_t> wrong_ = 0;
};

// ---------------------------------------------------------------------------------------------------------------------
// Searches in a fixed order

struct QueryOptions {
  std::string queries;
  double rate = 10;
  std::uint64_t count = 400;
  bool single = false;
  double timeout_s = 0;  ///< Time limit of a search; 0: the cluster's.
  std::string output;
};

std::string fingerprint_of(const SearchResult& found) {
  std::string text;
  for (const SearchPlace& place : found.places)
    text += fmt::format("{} {} {};", place.ad, place.keyword, place.price_micros);
  return text;
}

Duration timeout_of(const QueryOptions& options) {
  return Duration(static_cast<std::int64_t>(options.timeout_s * 1e6));
}

/// Returns 100 queries of the file, drawn with a fixed seed. With `single`: 100 times the query among them that has the
/// median number of matches.
std::vector<std::string> workload(Client& client, const QueryOptions& options) {
  const auto all = read_queries(options.queries);
  Random random(8);
  std::vector<std::string> chosen;
  while (chosen.size() < 100) chosen.push_back(fmt::format("{}", fmt::join(all[random.below(all.size())], " ")));
  if (!options.single) return chosen;
  std::vector<std::pair<std::uint64_t, std::string>> by_matches;
  for (const std::string& query : chosen) {
    const SearchResult found = client.search({.query = query, .timeout = timeout_of(options)}).wait();
    if (found.status && found.keywords_matched > 0) by_matches.emplace_back(found.keywords_matched, query);
  }
  std::sort(by_matches.begin(), by_matches.end());
  return std::vector<std::string>(100, by_matches.at(by_matches.size() / 2).second);
}

/// Searches for the queries, and writes a line of CSV for each query and storage node.
int run_queries(Client& client, const QueryOptions& options) {
  const std::vector<std::string> queries = workload(client, options);
  std::map<std::string, std::string> answers;
  std::ofstream out(options.output);
  out << "number,query,latency_us,node,search_us,took_us,matched\n";
  std::uint64_t wrong = 0;
  std::uint64_t failed = 0;
  const SteadyTime start = SteadyClock::now();
  for (std::uint64_t i = 0; i < options.count; ++i) {
    const double at_s = static_cast<double>(i) / options.rate;
    std::this_thread::sleep_until(start + std::chrono::nanoseconds(static_cast<std::int64_t>(at_s * 1e9)));
    const std::string& query = queries[i % queries.size()];
    const SteadyTime begun = SteadyClock::now();
    const SearchResult found = client.search({.query = query, .timeout = timeout_of(options), .explain = true}).wait();
    const std::int64_t latency = micros(SteadyClock::now()) - micros(begun);
    if (!found.is_complete()) {
      ++failed;
      fmt::print(stderr, "query {}: {}\n", i, (found.status ? found.missing : found.status).to_string());
      continue;
    }
    const auto [first, is_first] = answers.try_emplace(query, fingerprint_of(found));
    if (!is_first && first->second != fingerprint_of(found)) ++wrong;
    for (const SearchedNode& node : found.nodes) {
      out << fmt::format("{},{},{},{},{},{},{}\n", i, query, latency, node.node, node.search_took.count(),
                         node.took.count(), node.keywords_matched);
    }
  }
  fmt::print("queries {} failed {} wrong {}\n", options.count, failed, wrong);
  return failed + wrong == 0 ? 0 : 1;
}

/// Searches once for each query, so that the storage nodes have its keywords in memory.
int warm(Client& client, const QueryOptions& options) {
  const SteadyTime start = SteadyClock::now();
  std::uint64_t failed = 0;
  for (const std::string& query : workload(client, options)) {
    const SearchResult found = client.search({.query = query, .timeout = timeout_of(options)}).wait();
    if (found.is_complete()) continue;
    ++failed;
    fmt::print(stderr, "{}: {}\n", query, (found.status ? found.missing : found.status).to_string());
  }
  fmt::print("seconds {:.1f} failed {}\n", seconds_since(start), failed);
  return failed == 0 ? 0 : 1;
}

/// Moves every third bucket of the other nodes to storage.0, to begin with an uneven load.
int skew(Client& client) {
  Balancing balancing(client.core());
  const auto status = balancing.status(0);
  if (!status) return fmt::print(stderr, "{}\n", status.error().to_string()), 1;
  BalancePlan plan;
  plan.state_version = status->state_version;
  for (const BucketLoadInfo& bucket : status->buckets) {
    if (bucket.bucket % 3 != 0 || bucket.nodes.size() != 1 || bucket.nodes[0] == "storage.0") continue;
    BucketMove& move = plan.moves.emplace_back();
    move.bucket = bucket.bucket;
    move.from = bucket.nodes[0];
    move.to = "storage.0";
  }
  const auto refusals = balancing.apply(plan, "a skewed start");
  if (!refusals || !refusals->empty()) {
    return fmt::print(stderr, "{}\n", refusals ? refusals->front() : refusals.error().to_string()), 1;
  }
  fmt::print("moved {}\n", plan.moves.size());
  return 0;
}

}  // namespace
}  // namespace fjord

int main(int argc, char** argv) {
  CLI::App app("Clients of the experiments balance-live and balance-sklik", "fjord-experiment-balance-load");
  app.require_subcommand(1);
  std::string address;
  app.add_option("--cluster", address, "Distributors")->envname("FJORD_CLUSTER")->required();
  fjord::Corpus corpus;
  fjord::HotOptions hot;
  fjord::QueryOptions query;
  CLI::App* feed = app.add_subcommand("feed", "Puts ad groups");
  feed->add_option("--groups", corpus.groups, "Groups")->capture_default_str();
  feed->add_option("--keywords", corpus.keywords, "Keywords of a group, on average")->capture_default_str();
  feed->add_option("--queries", corpus.queries, "File of queries that keywords are made of");
  CLI::App* hot_command = app.add_subcommand("hot", "Gets, puts and searches with a moving hot spot, open loop");
  hot_command->add_option("--groups", hot.groups, "Groups that were fed")->capture_default_str();
  hot_command->add_option("--bits", hot.bits, "Distribution bits")->capture_default_str();
  hot_command->add_option("--gets", hot.gets, "A second")->capture_default_str();
  hot_command->add_option("--puts", hot.puts, "A second")->capture_default_str();
  hot_command->add_option("--searches", hot.searches, "A second")->capture_default_str();
  hot_command->add_option("--seconds", hot.seconds, "Duration")->capture_default_str();
  hot_command->add_option("--hot-part", hot.hot_part, "Part of gets and puts on hot buckets")->capture_default_str();
  hot_command->add_option("--round", hot.round_s, "Seconds; a hot bucket lives for 60 of them")->capture_default_str();
  hot_command->add_flag("--uniform", hot.uniform, "All other buckets are alike");
  hot_command->add_option("--output", hot.output, "CSV file")->required();
  CLI::App* queries = app.add_subcommand("queries", "100 queries in a fixed order, one after the other");
  queries->add_option("--queries", query.queries, "File of queries")->required();
  queries->add_option("--rate", query.rate, "A second")->capture_default_str();
  queries->add_option("--count", query.count, "Queries in all")->capture_default_str();
  queries->add_flag("--single", query.single, "One of them again and again");
  queries->add_option("--output", query.output, "CSV file")->required();
  CLI::App* warm = app.add_subcommand("warm", "Searches once for each of the queries");
  warm->add_option("--queries", query.queries, "File of queries")->required();
  for (CLI::App* command : {queries, warm})
    command->add_option("--timeout", query.timeout_s, "Seconds of a search; 0: the cluster's")->capture_default_str();
  CLI::App* skew = app.add_subcommand("skew", "Moves a third of the buckets of the other nodes to storage.0");
  CLI11_PARSE(app, argc, argv);
  fjord::Client client = fjord::connect(address);
  if (feed->parsed()) return fjord::feed(client, corpus);
  if (hot_command->parsed()) return fjord::HotLoad(client, hot).run();
  if (skew->parsed()) return fjord::skew(client);
  if (warm->parsed()) return fjord::warm(client, query);
  return fjord::run_queries(client, query);
}
