#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <fmt/format.h>
#include <mutex>
#include <thread>
#include <vector>

#include "fjord/document/json.h"
#include "fjord/fjord.h"
#include "fjord/search/node_indexes.h"
#include "fjord/storage/memory/memory_provider.h"
#include "replay.h"

/// Times of keyword searches. `node`: one stripe of a storage node, in memory, without messages. `cluster`: searches
/// that begin at a fixed rate, whether or not the former ones have ended, each from its planned begin to its answer.
/// `make-log` and `replay`: queries for voting tables, and what replicas read for them.
namespace fjord {
namespace {

const std::string kSchema = R"(document ad_group {
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

struct Corpus {
  std::uint64_t groups = 10'000;
  std::uint64_t keywords = 10;  ///< Keywords of each group.
  std::uint64_t words = 5'000;
  std::uint64_t matches = 136;  ///< Keywords that the query matches.
};

/// Returns the documents of a group, as id and JSON. The first `matches` groups have the keyword that is searched for.
std::vector<std::pair<std::string, std::string>> group_of(const Corpus& corpus, std::uint64_t group, Random& random) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto id = [&](const char* type, std::uint64_t n) { return fmt::format("id:ads:{}:n={}:{}", type, group, n); };
  out.emplace_back(id("ad_group", 0), fmt::format(R"({{"name": "g", "advertiser": {}}})", group));
  for (std::uint64_t n = 0; n < 2; ++n) {
    out.emplace_back(id("ad", n), fmt::format(R"({{"title": "Cheap hotel number {}"}})", random.below(1000)));
  }
  for (std::uint64_t n = 0; n < corpus.keywords; ++n) {
    const std::string text = n == 0 && group < corpus.matches
                                 ? std::string("cheap hotel")
                                 : fmt::format("w{} w{}", random.below(corpus.words), random.below(corpus.words));
    out.emplace_back(id("keyword", n), fmt::format(R"({{"text": "{}", "match": "broad", "bid_micros": {}}})", text,
                                                   20'000 + random.below(1'000'000)));
  }
  return out;
}

void print(const char* what, std::vector<double> us) {
  std::sort(us.begin(), us.end());
  const auto at = [&](double share) {
    return us[std::min(us.size() - 1, static_cast<std::size_t>(share * static_cast<double>(us.size())))];
  };
  fmt::print("{}: {} searches, p50 {:.1f} us, p90 {:.1f} us, p99 {:.1f} us, max {:.1f} us\n", what, us.size(), at(0.5),
             at(0.9), at(0.99), us.back());
}

double us_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

/// Measures searches on one stripe of a node that holds all documents.
int run_node(const Corpus& corpus, int repeat) {
  SystemClock clock;
  rpc::ClusterInfo info;
  info.state_version = 2;
  info.state = "version:2 bits:1 distributor:1 storage:1 .0.v:1";
  info.distribution = DistributionConfig::flat(1, 1).to_string();
  info.distributor_addresses = {"d:1"};
  info.storage_addresses = {"s:1"};
  info.schema_version = 1;
  info.schemas = {kSchema};
  rpc::SnapshotHolder snapshots;
  FJORD_CHECK(snapshots.update(info).has_value());
  search::NodeFacts facts;
  facts.snapshots = &snapshots;
  search::IndexedProvider provider(make_memory_provider(), search::memory_indexes()(0, 1).value(), facts, clock, {});
  for (const std::uint64_t bucket : {0, 1}) {
    FJORD_CHECK(provider.create_bucket(BucketId(1, bucket)).is_ok());
    FJORD_CHECK(provider.set_replica_set(BucketId(1, bucket), {ReplicaSet::make_epoch(2, 1), {0}}).is_ok());
  }
  for (int i = 0; i < 10; ++i) provider.maintain(clock.now());
  Random random(1);
  std::uint64_t time = 1;
  for (std::uint64_t group = 0; group < corpus.groups; ++group) {
    for (const auto& [id, fields] : group_of(corpus, group, random)) {
      const DocumentId parsed = *DocumentId::parse(id);
      const auto encoded = fields_from_json(*snapshots.get()->types()->find(parsed.type()), parsed, fields);
      FJORD_CHECK(encoded.has_value());
      const spi::Write write{.bucket = parsed.bucket(1),
                             .gid = parsed.gid(),
                             .timestamp = Timestamp{++time},
                             .id = id,
                             .header = encoded->header,
                             .body = encoded->body};
      spi::WriteResult result;
      provider.apply(std::span(&write, 1), std::span(&result, 1), spi::Durability::Process);
    }
  }
  const search::SliceSet all(1, "\x03");
  std::vector<double> us;
  std::uint64_t candidates = 0;
  for (int i = 0; i < repeat; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto variants = *search::parse_query("cheap hotel in prague");
    const auto context = *search::SearchContext::parse({{"device", "phone"}, {"hour", "12"}});
    const auto answer = provider.index().search({.slices = all,
                                                 .variants = variants,
                                                 .context = context,
                                                 .hits_max = 5,
                                                 .reserve_micros = 10'000,
                                                 .session = true},
                                                *snapshots.get());
    us.push_back(us_since(begin));
    candidates = answer->candidates;
  }
  fmt::print("{} keywords, {} match, {} ads\n", corpus.groups * corpus.keywords, candidates, corpus.groups * 2);
  print("one stripe", std::move(us));
  return 0;
}

/// Puts the documents into a cluster.
int load(Client& client, const Corpus& corpus) {
  const auto deployed = client.admin().deploy_schemas({kSchema});
  if (!deployed) return fmt::print("{}\n", deployed.error().to_string()), 1;
  Random random(1);
  std::atomic<std::uint64_t> left = 0;
  std::atomic<std::uint64_t> failed = 0;
  for (std::uint64_t group = 0; group < corpus.groups; ++group) {
    for (auto& [id, fields] : group_of(corpus, group, random)) {
      while (left > 2000) std::this_thread::yield();
      ++left;
      client.put_json(id, fields).then([&](const WriteResult& written) {
        if (!written.status) ++failed;
        --left;
      });
    }
  }
  while (left > 0) std::this_thread::yield();
  fmt::print("{} documents put, {} failed\n", corpus.groups * (corpus.keywords + 3), failed.load());
  return failed == 0 ? 0 : 1;
}

int run_cluster(const std::string& address, const Corpus& corpus, double rate, double seconds) {
  Client client = connect(address);
  if (const int code = load(client, corpus); code != 0) return code;
  const auto count = static_cast<std::size_t>(rate * seconds);
  std::vector<double> us(count);
  std::atomic<std::size_t> done = 0;
  std::atomic<std::size_t> partial = 0;
  std::atomic<std::size_t> failed = 0;
  Random random(2);
  const auto began = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    const auto planned =
        began + std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * static_cast<double>(i) / rate));
    std::this_thread::sleep_until(planned);
    SearchRequest request;
    request.query = random.below(10) == 0
                        ? "cheap hotel"
                        : fmt::format("w{} w{}", random.below(corpus.words), random.below(corpus.words));
    request.context = {{"device", "phone"}};
    client.search(std::move(request)).then([&, i, planned](const SearchResult& result) {
      us[i] = us_since(planned);
      if (!result.status) {
        ++failed;
      } else if (!result.is_complete()) {
        ++partial;
      }
      ++done;
    });
  }
  while (done < count) std::this_thread::yield();
  fmt::print("{:.0f} searches/s for {:.0f} s, {} partial, {} failed\n", rate, seconds, partial.load(), failed.load());
  print("cluster", std::move(us));
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace fjord

int main(int argc, char** argv) {
  CLI::App app("Times of keyword searches", "fjord-bench-search");
  app.require_subcommand(1);
  fjord::Corpus corpus;
  int repeat = 2000;
  double rate = 1000;
  double seconds = 10;
  std::string address = "127.0.0.1:19100";
  CLI::App* node = app.add_subcommand("node", "One stripe, in memory");
  CLI::App* cluster = app.add_subcommand("cluster", "Open loop on a running cluster");
  for (CLI::App* one : {node, cluster}) {
    one->add_option("--groups", corpus.groups, "Groups (default: 10000)");
    one->add_option("--keywords", corpus.keywords, "Keywords of a group (default: 10)");
    one->add_option("--words", corpus.words, "Different words (default: 5000)");
    one->add_option("--matches", corpus.matches, "Keywords that \"cheap hotel\" matches (default: 136)");
  }
  node->add_option("--repeat", repeat, "Searches (default: 2000)");
  cluster->add_option("--cluster", address, "Distributors (default: 127.0.0.1:19100)");
  cluster->add_option("--rate", rate, "Searches a second (default: 1000)");
  cluster->add_option("--seconds", seconds, "Duration (default: 10)");
  fjord::MakeLogOptions log;
  CLI::App* make_log = app.add_subcommand("make-log", "Logs of queries, and documents for them");
  make_log->add_option("--source", log.source, "File with a number, a tab and a query a line (default: Zipf's law)");
  make_log->add_option("--queries", log.queries, "Queries in each log (default: 20000)");
  make_log->add_option("--scale", log.scale, "Pages of the lists over those of the logs (default: 1)");
  make_log->add_option("--seed", log.seed, "Seed (default: 1)");
  make_log->add_option("--output", log.output, "Folder")->required();
  fjord::ReplayOptions replay_options;
  CLI::App* replay = app.add_subcommand("replay", "Searches for the queries of a file");
  replay->add_option("--cluster", replay_options.cluster, "Distributors")->required();
  replay->add_option("--queries", replay_options.queries, "File with a query a line")->required();
  replay->add_option("--in-flight", replay_options.in_flight, "Searches at the same time (default: 16)");
  replay->add_option("--skip", replay_options.skip, "Searches before the counting begins (default: 0)");
  CLI11_PARSE(app, argc, argv);
  if (make_log->parsed()) return fjord::make_log(log);
  if (replay->parsed()) return fjord::replay(replay_options);
  return node->parsed() ? fjord::run_node(corpus, repeat) : fjord::run_cluster(address, corpus, rate, seconds);
}
