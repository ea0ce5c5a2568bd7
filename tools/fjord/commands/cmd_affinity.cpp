#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <optional>

#include "commands/affinity_log.h"
#include "commands/commands.h"
#include "fjord/affinity/clustering.h"
#include "fjord/affinity/simulator.h"
#include "fjord/affinity/stored_table.h"
#include "fjord/affinity/training.h"
#include "fjord/library/admin.h"
#include "fjord/library/detail/input_file.h"
#include "fjord/library/detail/own_documents.h"
#include "fjord/library/search.h"
#include "fjord/library/visit.h"
#include "fjord/search/broker_documents.h"
#include "fjord/search/query.h"
#include "fjord/search/voting_tables.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

using affinity::StoredTable;

constexpr std::size_t kFileBytesMax = std::size_t{1} << 30;
constexpr std::size_t kWordsAtOnce = 20;
constexpr unsigned kDraws = 10;  // Number of random clusterings, of which the best is taken.
constexpr const char* kSetting = "search.affinity_table";
/// Part of the queries that a table is not trained on. Its misses are counted on this part, which it has not learned.
constexpr double kHeldOut = 0.2;

Result<std::string> file_text(const std::string& path) {
  FJORD_TRY_ASSIGN(const auto file, InputFile::open(path));
  return file->read_all(kFileBytesMax);
}

// --- Queries and sizes

/// Asks the cluster how many pages the lists of the words have.
Result<affinity::ListPages> index_pages(Client& client, const std::vector<std::string>& words) {
  affinity::ListPages pages(words.size(), 0);
  for (std::size_t begin = 0, end = 0; begin < words.size(); begin = end) {
    SearchRequest request;
    for (; end < std::min(words.size(), begin + kWordsAtOnce); ++end) {
      if (end > begin && request.query.size() + words[end].size() >= search::kQueryBytesMax) break;
      request.query += (end == begin ? "" : " ") + words[end];
    }
    request.limit = 1;
    request.timeout = seconds(10);
    request.explain = true;
    const SearchResult result = client.search(std::move(request));
    FJORD_TRY(result.status);
    if (!result.is_complete()) return result.missing;
    for (std::size_t i = begin; i < end; ++i) {
      const auto at = result.word_pages.find(words[i]);
      if (at != result.word_pages.end()) pages[i] = at->second;
    }
  }
  return pages;
}

/// Removes the words without a list from the queries, because nothing is read for them.
void drop_words_without_list(AffinityLog& log) {
  affinity::QueryLog queries;
  for (std::size_t i = 0; i < log.log.size(); ++i) {
    std::vector<affinity::WordId> words;
    for (const affinity::WordId word : log.log.words(i)) {
      if (log.pages[word] != 0) words.push_back(word);
    }
    if (!words.empty()) queries.add(std::move(words));
  }
  log.log = std::move(queries);
  for (std::uint32_t& pages : log.pages) pages = std::max<std::uint32_t>(pages, 1);
}

Status set_pages(const AffinityArgs& args, AffinityLog& log, Client* client) {
  if (args.from_index) {
    FJORD_TRY_ASSIGN(log.pages, index_pages(*client, log.vocabulary));
  } else if (!args.sizes.empty()) {
    FJORD_TRY_ASSIGN(const std::string text, file_text(args.sizes));
    FJORD_TRY_ASSIGN(const auto sizes, read_word_pages(text));
    for (const std::string& word : log.vocabulary) {
      const auto at = sizes.find(word);
      log.pages.push_back(at == sizes.end() ? 0 : at->second);
    }
  } else {
    log.pages = affinity::count_occurrences(log.log, log.vocabulary.size());
  }
  drop_words_without_list(log);
  if (log.log.size() < 2) {
    return {StatusCode::InvalidArgument, "no two queries have a word with a list of keywords in files"};
  }
  return Status::ok();
}

/// Returns the queries that brokers have recorded, one a line.
Result<std::string> recorded_queries(Client& client) {
  Visit visit = client.visit(
      {.selection = fmt::format("id.user == {}", search::kQueryLogLocation), .type = search::kQueryLogType});
  std::string text;
  while (const Document* document = visit.next()) text += document->text("queries").value_or("");
  FJORD_TRY(visit.status());
  if (!text.empty()) return text;
  return Status(StatusCode::NotFound, "the cluster has recorded no queries; see the setting search.log_part");
}

/// Reads the queries and the sizes of lists. `client` may be null if neither comes from the cluster.
Result<AffinityLog> read_log(const AffinityArgs& args, Client* client) {
  FJORD_TRY_ASSIGN(const std::string text, args.recorded ? recorded_queries(*client) : file_text(args.queries));
  FJORD_TRY_ASSIGN(AffinityLog log, read_affinity_log(text));
  FJORD_TRY(set_pages(args, log, client));
  return log;
}

affinity::SimulationOptions simulation_of(const AffinityArgs& args, const affinity::QueryLog& train,
                                          const affinity::ListPages& pages) {
  affinity::SimulationOptions options;
  options.replicas = args.replicas;
  options.eviction =
      args.eviction == "lfu" ? affinity::Eviction::LeastFrequentlyUsed : affinity::Eviction::LeastRecentlyUsed;
  options.cache_pages = args.cache_pages != 0
                            ? args.cache_pages
                            : affinity::cache_pages_for(train, pages, args.miss_percent / 100.0, options.eviction);
  return options;
}

Result<affinity::VotingTable> train_table(const AffinityArgs& args, const affinity::QueryLog& train,
                                          const affinity::ListPages& pages,
                                          const affinity::SimulationOptions& simulation) {
  affinity::Clustering clustering;
  if (args.method == "rnd") {
    Random random(args.seed);
    clustering = affinity::best_random_clustering(train, pages, simulation, kDraws, random);
  } else {
    affinity::PartitionOptions options;
    options.replicas = args.replicas;
    options.seed = args.seed;
    auto parted = affinity::partition(train, pages, options);
    if (!parted) {
      return Status(parted.error().code(),
                    fmt::format("{}; a log with more different words can be parted evenly, and --method rnd needs no "
                                "even parts",
                                parted.error().message()));
    }
    clustering = std::move(*parted);
  }
  affinity::RefinementOptions refinement;
  refinement.rounds = args.rounds;
  return affinity::refine(affinity::binary_table(clustering, pages, args.replicas), train, pages, simulation,
                          refinement);
}

std::string method_text(const AffinityArgs& args) {
  return (args.method == "rnd" ? "RND" : "BP") + std::string(args.rounds > 0 ? "+IR" : "");
}

// --- What a table saves

struct Way {
  std::string name;
  double miss_rate = 0;
  double load = 1;  ///< Pages of the busiest replica over the mean.
};

Way run_way(std::string name, const affinity::QueryLog& log, const AffinityLog& all,
            const affinity::SimulationOptions& options, affinity::ReplicaChooser& chooser) {
  const affinity::SimulationResult result = affinity::simulate(log, all.pages, options, chooser);
  return {std::move(name), result.miss_rate(), result.load_imbalance()};
}

std::vector<Way> compare_ways(const affinity::VotingTable& table, const affinity::QueryLog& log, const AffinityLog& all,
                              const affinity::SimulationOptions& options) {
  std::vector<Way> ways;
  affinity::FingerprintChooser fingerprint(options.replicas);
  ways.push_back(run_way("fingerprint", log, all, options, fingerprint));
  for (const bool shares : {false, true}) {
    affinity::VotingChooser chooser(table, all.pages, shares);
    ways.push_back(run_way(shares ? "table, shares by load" : "table", log, all, options, chooser));
  }
  affinity::ShadowChooser shadow(table, all.pages, all.hashes, {.with_multipliers = true});
  ways.push_back(run_way("shadow caches, shares by load", log, all, options, shadow));
  affinity::SimulationOptions one = options;
  one.replicas = 1;
  one.cache_pages *= options.replicas;
  affinity::FingerprintChooser alone(1);
  ways.push_back(run_way("one cache of the size of all", log, all, one, alone));
  return ways;
}

int print_ways(const AffinityArgs& args, const AffinityLog& log, const affinity::SimulationOptions& options,
               std::size_t train, std::size_t test, const std::vector<Way>& ways) {
  if (args.common.json()) {
    JsonText json;
    json.begin_object().key("queries").number(log.log.size()).key("skipped").number(log.skipped);
    json.key("words").number(log.vocabulary.size()).key("replicas").number(options.replicas);
    json.key("cache_pages").number(options.cache_pages).key("trained_queries").number(train);
    json.key("tried_queries").number(test).key("ways").begin_array();
    for (const Way& way : ways) {
      json.begin_object().key("way").text(way.name).key("miss_percent").real(100 * way.miss_rate, 3);
      json.key("busiest_over_mean").real(way.load, 3).end_object();
    }
    print_line(json.end_array().end_object().str());
    return kOk;
  }
  print_line(fmt::format("{} queries with {} words, {} lines skipped; {} replicas with caches of {} pages",
                         log.log.size(), log.vocabulary.size(), log.skipped, options.replicas, options.cache_pages));
  if (train > 0) print_line(fmt::format("trained on {} queries, tried on {} others", train, test));
  print_line(fmt::format("\n{:<32} {:>8} {:>14}", "REPLICA CHOSEN BY", "MISSES", "BUSIEST/MEAN"));
  for (const Way& way : ways) {
    print_line(fmt::format("{:<32} {:>6.2f} % {:>14.2f}", way.name, 100 * way.miss_rate, way.load));
  }
  return kOk;
}

// --- Tables

Result<StoredTable> read_table_file(const std::string& path) {
  FJORD_TRY_ASSIGN(const std::string bytes, file_text(path));
  return affinity::decode_table(bytes, "", affinity::ForeignTable::Mark);
}

/// Returns the table of a file with the WordIds of the log.
affinity::VotingTable table_for(const StoredTable& stored, const AffinityLog& log) {
  affinity::VotingTable table(stored.table.replicas(), log.vocabulary.size());
  const affinity::WordIndex index(stored);
  for (affinity::WordId word = 0; word < log.vocabulary.size(); ++word) {
    const auto weights = stored.table.weights(index.find(log.vocabulary[word]));
    if (!weights.empty()) table.set(word, weights);
  }
  return table;
}

/// Reads a table of the cluster. Errors: NotFound.
Result<std::string> stored_bytes(Client& client, std::uint64_t number) {
  std::string bytes;
  for (std::uint32_t part = 0, parts = 1; part < parts; ++part) {
    const ReadResult read = client.get(search::table_part_id(number, part));
    if (read.status.code() == StatusCode::NotFound) {
      return Status(StatusCode::NotFound, fmt::format("there is no voting table {}", number));
    }
    FJORD_TRY(read.status);
    const FieldValue* count = read->get("parts");
    const FieldValue* content = read->get("content");
    if (count == nullptr || content == nullptr || count->get_if<std::int32_t>() == nullptr ||
        content->get_if<RawValue>() == nullptr) {
      return Status(StatusCode::Corruption, fmt::format("voting table {} lacks a field", number));
    }
    parts = static_cast<std::uint32_t>(std::max(0, *count->get_if<std::int32_t>()));
    bytes += content->get_if<RawValue>()->bytes;
  }
  return bytes;
}

struct NamedTable {
  std::string name;
  std::size_t bytes = 0;
  Result<StoredTable> table = Status(StatusCode::NotFound, "not read");
};

/// Returns all tables of the cluster.
Result<std::vector<NamedTable>> stored_tables(Client& client, std::string_view corpus) {
  std::vector<NamedTable> tables;
  for (std::uint64_t number = 1;; ++number) {
    const auto bytes = stored_bytes(client, number);
    if (!bytes && bytes.error().code() == StatusCode::NotFound) return tables;
    if (!bytes && bytes.error().code() != StatusCode::Corruption) return bytes.error();
    NamedTable one{.name = std::to_string(number), .bytes = bytes ? bytes->size() : 0};
    one.table = bytes ? affinity::decode_table(*bytes, corpus, affinity::ForeignTable::Mark) : bytes.error();
    tables.push_back(std::move(one));
  }
}

std::string table_json(const NamedTable& one, const std::string& in_force) {
  JsonText json;
  json.begin_object().key("table").text(one.name).key("in_force").boolean(one.name == in_force);
  json.key("bytes").number(one.bytes);
  if (one.table) {
    json.key("method").text(one.table->method).key("corpus").text(one.table->corpus);
    json.key("foreign").boolean(one.table->is_foreign).key("replicas").number(one.table->table.replicas());
    json.key("words").number(one.table->words.size()).key("trained_queries").number(one.table->trained_queries);
  } else {
    json.key("error").text(one.table.error().message());
  }
  return json.end_object().str();
}

void print_tables(const AffinityArgs& args, const std::vector<NamedTable>& tables, const std::string& in_force) {
  if (args.common.json()) {
    std::string text;
    for (const NamedTable& one : tables) text += (text.empty() ? "" : ",") + table_json(one, in_force);
    return print_line("[" + text + "]");
  }
  print_line(fmt::format("{:<10} {:<9} {:<8} {:>8} {:>8} {:>10} {:>10}  {}", "TABLE", "IN FORCE", "METHOD", "REPLICAS",
                         "WORDS", "QUERIES", "BYTES", "TRAINED ON"));
  for (const NamedTable& one : tables) {
    const char* force = one.name == in_force ? "yes" : "";
    if (!one.table) {
      print_line(fmt::format("{:<10} {:<9} {}", one.name, force, one.table.error().message()));
      continue;
    }
    print_line(fmt::format("{:<10} {:<9} {:<8} {:>8} {:>8} {:>10} {:>10}  {}{}", one.name, force, one.table->method,
                           one.table->table.replicas(), one.table->words.size(), one.table->trained_queries, one.bytes,
                           one.table->corpus, one.table->is_foreign ? " (another corpus)" : ""));
  }
}

/// Prints the words with the longest lists, and the pages of each that every class of replicas is expected to miss.
void print_words(const StoredTable& table) {
  constexpr std::size_t kLines = 20;
  std::vector<affinity::WordId> order(table.words.size());
  for (affinity::WordId word = 0; word < order.size(); ++word) order[word] = word;
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return table.pages[a] > table.pages[b]; });
  order.resize(std::min(order.size(), kLines));
  print_line(fmt::format("\n{:<24} {:>8}  {}", "WORD", "PAGES", "PAGES MISSED IN CLASS 0, 1, ..."));
  for (const affinity::WordId word : order) {
    std::string weights;
    for (const float weight : table.table.weights(word)) weights += fmt::format("{:>9.1f}", weight);
    print_line(fmt::format("{:<24} {:>8} {}", table.words[word], table.pages[word], weights));
  }
}

Result<std::string> cluster_corpus(Client& client) {
  FJORD_TRY_ASSIGN(const auto types, client.types());
  return search::corpus_of(*types);
}

Result<std::string> table_in_force(Client& client) {
  FJORD_TRY_ASSIGN(const Configuration configuration, client.admin().configuration());
  const SettingInfo* setting = configuration.find(kSetting);
  if (setting == nullptr) return Status(StatusCode::NotImplemented, "the cluster has no voting tables yet");
  return setting->live_value.empty() ? setting->default_value : setting->live_value;
}

/// Stores the parts of a table, the first one last, and reads them back. Errors: TestAndSetFailed if the number is
/// taken.
Status store_table(Client& client, std::uint64_t number, const std::string& bytes) {
  FJORD_TRY_ASSIGN(const auto types, client.types());
  for (std::uint32_t part = search::table_parts(bytes.size()); part-- > 0;) {
    FJORD_TRY_ASSIGN(const Document document, search::table_part(*types, number, bytes, part));
    WriteOptions options;
    if (part == 0) options.required_version = Timestamp{0};
    options.create = true;
    const WriteResult written = put_own(client, document, options);
    if (written.status.code() == StatusCode::TestAndSetFailed) {
      return {StatusCode::TestAndSetFailed, fmt::format("there is a voting table {} already", number)};
    }
    FJORD_TRY(written.status);
  }
  FJORD_TRY_ASSIGN(const std::string stored, stored_bytes(client, number));
  if (stored == bytes) return Status::ok();
  return {StatusCode::Corruption,
          fmt::format("voting table {} was stored by another client at the same time; deploy it again", number)};
}

Result<std::uint64_t> free_number(Client& client) {
  for (std::uint64_t number = 1;; ++number) {
    const ReadResult read = client.get(search::table_part_id(number, 0));
    if (read.status.code() == StatusCode::NotFound) return number;
    FJORD_TRY(read.status);
  }
}

int deploy(Client& client, const AffinityArgs& args) {
  const auto bytes = file_text(args.table);
  if (!bytes) return report(bytes.error());
  const auto corpus = cluster_corpus(client);
  if (!corpus) return report(corpus.error());
  const auto table = affinity::decode_table(
      *bytes, *corpus, args.foreign ? affinity::ForeignTable::Mark : affinity::ForeignTable::Refuse);
  if (!table) {
    complain(fmt::format("{}: {}", args.table, table.error().message()));
    return table.error().code() == StatusCode::InvalidArgument ? kRefused : failure_code(table.error());
  }
  const auto before = table_in_force(client);
  if (!before) return report(before.error());
  auto number = args.number != 0 ? Result<std::uint64_t>(args.number) : free_number(client);
  if (!number) return report(number.error());
  if (args.yes) {
    if (const Status stored = store_table(client, *number, *bytes); !stored) {
      complain(stored.message());
      return stored.code() == StatusCode::TestAndSetFailed ? kRefused : failure_code(stored);
    }
    const auto changed = client.admin().set({{kSetting, std::to_string(*number)}}, {.reason = args.table});
    if (!changed) return report(changed.error());
  } else {
    complain("nothing is changed without --yes");
  }
  if (args.common.json()) {
    JsonText json;
    json.begin_object().key("done").boolean(args.yes).key("table").number(*number).key("before").text(*before);
    json.key("words").number(table->words.size()).key("replicas").number(table->table.replicas());
    json.key("foreign").boolean(table->is_foreign);
    print_line(json.end_object().str());
    return kOk;
  }
  print_line(fmt::format("voting table {} of {} words for {} classes of replicas, trained on {}{}", *number,
                         table->words.size(), table->table.replicas(), table->corpus,
                         table->is_foreign ? fmt::format(": another corpus than {}", *corpus) : ""));
  print_line(fmt::format("{}: {} -> {}", kSetting, *before, *number));
  if (args.yes) print_line(fmt::format("back: fjord config set {}={}", kSetting, *before));
  return kOk;
}

}  // namespace

int run_affinity_train(const AffinityArgs& args) {
  std::optional<Client> client;
  std::string corpus = args.corpus;
  if (args.from_index || args.recorded) {
    client.emplace(client_of(args.common));
    if (const Status status = ready(*client, args.common); !status) return report(status);
    const auto of_cluster = cluster_corpus(*client);
    if (!of_cluster) return report(of_cluster.error());
    if (corpus.empty()) corpus = *of_cluster;
  }
  const auto log = read_log(args, client ? &*client : nullptr);
  if (!log) return report(log.error());
  const auto count = static_cast<std::size_t>(static_cast<double>(log->log.size()) * (1 - kHeldOut));
  const affinity::QueryLog train = log->part(0, count);
  const affinity::QueryLog test = log->part(count, log->log.size());
  const affinity::SimulationOptions simulation = simulation_of(args, train, log->pages);
  const auto table = train_table(args, train, log->pages, simulation);
  if (!table) return report(table.error());
  if (!args.table.empty()) {
    StoredTable stored = affinity::make_stored_table(*table, log->vocabulary, log->pages);
    stored.corpus = corpus;
    stored.method = method_text(args);
    stored.trained_queries = train.size();
    std::ofstream file(args.table, std::ios::binary | std::ios::trunc);
    file << affinity::encode_table(stored);
    if (!file.flush()) {
      complain(args.table + " cannot be written");
      return kFailed;
    }
  }
  return print_ways(args, *log, simulation, train.size(), test.size(), compare_ways(*table, test, *log, simulation));
}

int run_affinity_simulate(const AffinityArgs& args) {
  std::optional<Client> client;
  if (args.from_index || args.recorded) {
    client.emplace(client_of(args.common));
    if (const Status status = ready(*client, args.common); !status) return report(status);
  }
  const auto log = read_log(args, client ? &*client : nullptr);
  if (!log) return report(log.error());
  if (!args.table.empty()) {
    const auto stored = read_table_file(args.table);
    if (!stored) return report(stored.error().with_context(args.table));
    if (stored->table.replicas() != args.replicas) {
      complain(fmt::format("{} is for {} replicas, not for {}", args.table, stored->table.replicas(), args.replicas));
      return kUsage;
    }
    const affinity::SimulationOptions simulation = simulation_of(args, log->log, log->pages);
    return print_ways(args, *log, simulation, 0, log->log.size(),
                      compare_ways(table_for(*stored, *log), log->log, *log, simulation));
  }
  const std::size_t half = log->log.size() / 2;
  const affinity::QueryLog train = log->part(0, half);
  const affinity::QueryLog test = log->part(half, log->log.size());
  const affinity::SimulationOptions simulation = simulation_of(args, train, log->pages);
  const auto table = train_table(args, train, log->pages, simulation);
  if (!table) return report(table.error());
  return print_ways(args, *log, simulation, train.size(), test.size(), compare_ways(*table, test, *log, simulation));
}

int run_affinity_show(const AffinityArgs& args) {
  const bool is_number =
      !args.table.empty() && args.table.size() <= 10 && args.table.find_first_not_of("0123456789") == std::string::npos;
  if (!args.table.empty() && !is_number) {
    auto stored = read_table_file(args.table);
    if (!stored) return report(stored.error().with_context(args.table));
    stored->is_foreign = false;  // A table of a file belongs to no cluster.
    if (!args.common.json()) print_tables(args, {{.name = args.table, .table = *stored}}, "");
    if (args.common.json()) print_line(table_json({.name = args.table, .table = *stored}, ""));
    if (!args.common.json()) print_words(*stored);
    return kOk;
  }
  Client client = client_of(args.common);
  if (const Status status = ready(client, args.common); !status) return report(status);
  const auto corpus = cluster_corpus(client);
  if (!corpus) return report(corpus.error());
  const auto in_force = table_in_force(client);
  if (!in_force) return report(in_force.error());
  if (args.table.empty()) {
    const auto tables = stored_tables(client, *corpus);
    if (!tables) return report(tables.error());
    print_tables(args, *tables, *in_force);
    return kOk;
  }
  const auto bytes = stored_bytes(client, std::stoull(args.table));
  if (!bytes) return report(bytes.error());
  auto table = affinity::decode_table(*bytes, *corpus, affinity::ForeignTable::Mark);
  if (!table) return report(table.error());
  print_tables(args, {{.name = args.table, .bytes = bytes->size(), .table = *table}}, *in_force);
  if (!args.common.json()) print_words(*table);
  return kOk;
}

int run_affinity_deploy(const AffinityArgs& args) {
  Client client = client_of(args.common);
  if (const Status status = ready(client, args.common); !status) return report(status);
  return deploy(client, args);
}

}  // namespace fjord::cli
