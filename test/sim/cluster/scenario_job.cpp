#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "batched_application.h"
#include "fjord/common/check.h"
#include "fjord/common/random.h"
#include "fjord/mapreduce/aggregate_spec.h"
#include "fjord/mapreduce/job_results.h"
#include "fjord/sim/scenarios.h"
#include "scenario_end.h"

namespace fjord::sim {
namespace {

constexpr const char* kSchema = R"(document item {
  field city type string { header }
  field price type long { header }
  field filler type string { body }
}
document tally {
  field city type string { header }
  field price type long { header }
  field n type long { header }
  field s type long { header }
}
document spread {
  field n type long { header }
  field groups type long { header }
  field s type long { header }
}
)";

struct Totals {
  std::int64_t count = 0;
  std::int64_t sum = 0;
  std::int64_t min = 0;
  std::int64_t max = 0;

  void add(std::int64_t price) {
    min = count == 0 ? price : std::min(min, price);
    max = count == 0 ? price : std::max(max, price);
    ++count;
    sum += price;
  }
};

/// The passes of an aggregation, and where their rows go.
enum class Chain {
  None,
  Into,         ///< One pass; its rows become documents.
  ThenRows,     ///< Two passes; the second one reads rows.
  ThenKept,     ///< Two passes; the second one reads the documents that the first one leaves.
  ThenBatched,  ///< Two passes; the second one reads rows, and is an application of a plugin.
};

/// The computation: the application fieldstats, built in or of a plugin, or an aggregation.
struct Query {
  bool is_batched = false;
  bool is_aggregation = false;
  bool by_price = false;    ///< Aggregation by city and price, with about as many groups as documents.
  bool wants_city = false;  ///< Fieldstats: documents without a city are dead letters.
  bool is_incremental = false;
  bool repeats = false;  ///< The job runs several times. Later runs find values in columns.
  rpc::Shuffle shuffle = rpc::Shuffle::Auto;
  Chain chain = Chain::None;
  std::uint64_t limit = 0;  ///< Row limit of the first pass of a chain.

  bool is_chain() const { return chain != Chain::None; }
  bool has_two_passes() const { return is_chain() && chain != Chain::Into; }
  bool puts_documents() const { return is_chain() && chain != Chain::ThenBatched; }

  rpc::JobSpec chain_spec() const {
    const auto pass_of = [](const mapreduce::AggregateSpec& aggregate, rpc::RowTarget into, std::string selection) {
      rpc::JobPass pass;
      pass.application = mapreduce::kAggregateApplication;
      pass.document_type = aggregate.type;
      pass.selection = std::move(selection);
      pass.parameters = {{mapreduce::kAggregateParameter, aggregate.to_json()}};
      pass.into = std::move(into);
      return pass;
    };
    mapreduce::AggregateSpec first;
    first.type = "item";
    first.group_by = {"city"};
    if (by_price) first.group_by.emplace_back("price");
    first.aggregates = {"count() AS n", "sum(price) AS s"};
    first.limit = limit;
    if (limit != 0) first.order_by = {"n desc", "s desc"};
    const bool is_kept = chain == Chain::Into || chain == Chain::ThenKept;
    rpc::JobSpec spec;
    spec.incremental = is_incremental;
    spec.shuffle = shuffle;
    spec.passes.push_back(pass_of(first, is_kept ? rpc::RowTarget{"tally", "", "sim"} : rpc::RowTarget{}, ""));
    if (!has_two_passes()) return spec;
    if (chain == Chain::ThenBatched) {
      spec.passes.push_back({kBatchedApplication, "", "s >= 0", {{"group", "n"}, {"value", "s"}}, {}});
      return spec;
    }
    mapreduce::AggregateSpec second;
    second.type = is_kept ? "tally" : "row";
    second.group_by = {"n"};
    second.aggregates = {"count() AS groups", "sum(s) AS s"};
    spec.passes.push_back(pass_of(second, {"spread", "", "sim"}, is_kept ? "tally.s >= 0" : "s >= 0"));
    return spec;
  }

  rpc::JobSpec spec() const {
    if (is_chain()) return chain_spec();
    rpc::JobSpec spec;
    spec.incremental = is_incremental;
    spec.application = is_batched ? kBatchedApplication : "fieldstats";
    spec.document_type = "item";
    spec.parameters = {{"group", "city"}, {"value", "price"}};
    spec.output_namespace = "out";
    spec.shuffle = shuffle;
    spec.settings = {{"dead_letters_max", "1000"}};
    if (wants_city && !is_aggregation) spec.parameters.push_back({"missing", "error"});
    if (!is_aggregation) return spec;
    mapreduce::AggregateSpec aggregate;
    aggregate.type = spec.document_type;
    aggregate.group_by = {"city"};
    if (by_price) aggregate.group_by.emplace_back("price");
    aggregate.aggregates = {"count()", "sum(price)", "min(price)", "max(price)", "avg(price)"};
    // Without min and max a job takes changed documents out of their groups, and need not read the groups again.
    if (is_incremental) aggregate.aggregates = {"count()", "sum(price)", "avg(price)"};
    spec.application = mapreduce::kAggregateApplication;
    spec.parameters = {{mapreduce::kAggregateParameter, aggregate.to_json()}};
    return spec;
  }
};

/// Documents that do not change while a job runs, and the results that a job over them must return.
class Catalogue {
 public:
  Catalogue(SimCluster& cluster, AsyncClient& client, Random& random)
      : cluster_(cluster), client_(client), random_(random) {}

  bool feed(unsigned documents) {
    std::size_t left = documents;
    bool ok = true;
    for (unsigned i = 0; i < documents; ++i) {
      put(i, [&](const OperationOutcome& outcome) {
        ok = ok && outcome.is_ok();
        --left;
      });
    }
    return cluster_.run_until([&] { return left == 0; }, seconds(90)) && ok;
  }

  /// Puts and removes some documents, some of them new. A document with a failed operation, whose outcome is unknown,
  /// is removed for good. Returns false if that fails.
  bool change(unsigned documents) {
    std::vector<unsigned> failed;
    std::set<unsigned> changed;
    std::size_t left = 0;
    for (unsigned i = 0; i < documents; ++i) {
      const auto number = static_cast<unsigned>(random_.below(numbers_ + 1));
      if (!changed.insert(number).second || lost_.contains(number)) continue;
      ++left;
      const auto done = [&, number](const OperationOutcome& outcome) {
        if (!outcome.is_ok()) failed.push_back(number);
        --left;
      };
      if (items_.contains(number) && random_.chance(0.3)) {
        items_.erase(number);
        client_.remove(id_of(number), seconds(60), done);
      } else {
        put(number, done);
      }
    }
    if (!cluster_.run_until([&] { return left == 0; }, seconds(90))) return false;
    for (const unsigned number : failed) {
      lost_.insert(number);
      items_.erase(number);
    }
    // An operation in doubt may still be applied until its deadline.
    if (!failed.empty()) cluster_.scheduler().run_for(seconds(60));
    for (unsigned tries = 0; tries < 20 && !failed.empty(); ++tries) {
      std::vector<unsigned> again;
      left = failed.size();
      for (const unsigned number : failed) {
        client_.remove(id_of(number), seconds(60), [&, number](const OperationOutcome& outcome) {
          if (!outcome.is_ok()) again.push_back(number);
          --left;
        });
      }
      if (!cluster_.run_until([&] { return left == 0; }, seconds(90))) return false;
      failed = std::exchange(again, {});
    }
    return failed.empty();
  }

  std::uint64_t documents() const { return items_.size(); }
  std::uint64_t dead_letters(const Query& query) const {
    if (!query.wants_city || query.is_aggregation) return 0;
    return static_cast<std::uint64_t>(
        std::count_if(items_.begin(), items_.end(), [](const auto& item) { return item.second.first.empty(); }));
  }

  /// Returns an empty string if `results` are exactly right.
  std::string compare(const std::vector<mapreduce::KeyedResult>& results, const Query& query) const {
    if (query.puts_documents()) return compare_chain(results, query);
    const bool is_aggregation = query.is_aggregation && !query.is_chain();
    const std::map<std::string, Totals> all = query.is_chain() ? expected_by_n(query) : expected(query);
    if (results.size() != all.size()) return fmt::format("{} results instead of {}", results.size(), all.size());
    for (const auto& [key, value] : results) {
      auto one = all.find(key);
      if (one == all.end()) return "a result for '" + key + "', which no document has";
      const Totals& t = one->second;
      const double average = static_cast<double>(t.sum) / static_cast<double>(t.count);
      std::string start = is_aggregation ? fmt::format("{},{},{},{}", key.substr(0, key.size() - 1), t.count, t.sum,
                                                       query.is_incremental ? "" : fmt::format("{},{},", t.min, t.max))
                                         : fmt::format(R"({{"count":{},"sum":{},"min":{},"max":{},"avg":)", t.count,
                                                       t.sum, t.min, t.max);
      if (!value.starts_with(start) || std::strtod(value.c_str() + start.size(), nullptr) != average) {
        return fmt::format("'{}' is {} instead of {}{}", key, value, start, average);
      }
    }
    return {};
  }

  /// Checks the documents that the job leaves against the rows of its last pass, which are right, and the model.
  /// Returns an empty string if they are right, else the first difference.
  std::string check_documents(const std::vector<mapreduce::KeyedResult>& results, const Query& query) {
    std::map<std::string, bool> wanted;  // By document id: whether the document has to exist.
    const std::string last = query.has_two_passes() ? "spread" : "tally";
    for (const auto& [key, value] : results) {
      wanted[mapreduce::row_document_id("results", last, "sim", key)] = true;
    }
    if (query.chain == Chain::ThenKept && query.limit == 0) {
      for (const Group& group : first_pass(query)) {
        wanted[mapreduce::row_document_id("results", "tally", "sim", group.key)] = true;
      }
    }
    for (const auto& [id, is_earlier] : strangers(query)) wanted[id] = !is_earlier;
    std::string wrong;
    std::size_t left = wanted.size();
    for (const auto& [id, is_there] : wanted) {
      client_.get(id, seconds(60), [&, name = id, expected = is_there](const OperationOutcome& outcome) {
        --left;
        const StatusCode code = expected ? StatusCode::Ok : StatusCode::NotFound;
        if (outcome.status.code() != code) wrong = name + ": " + outcome.status.to_string();
      });
    }
    if (!cluster_.run_until([&] { return left == 0; }, seconds(90))) return "documents cannot be read";
    return wrong;
  }
  /// Returns documents of an earlier job of the same name (true), and others of the same type.
  static std::vector<std::pair<std::string, bool>> strangers(const Query& query) {
    const std::string type = query.has_two_passes() ? "spread" : "tally";
    return {{mapreduce::row_document_id("results", type, "sim", "[\"gone\"]"), true},
            {mapreduce::row_document_id("results", type, "sims", "[1]"), false},
            {mapreduce::row_document_id("elsewhere", type, "sim", "[1]"), false}};
  }
  bool put_strangers(const Query& query) {
    std::size_t left = 0;
    bool ok = true;
    for (const auto& [id, is_earlier] : strangers(query)) {
      ++left;
      client_.put_json(id, R"({"n": 1000, "s": 1000})", seconds(60), [&](const OperationOutcome& outcome) {
        ok = ok && outcome.is_ok();
        --left;
      });
    }
    return cluster_.run_until([&] { return left == 0; }, seconds(90)) && ok;
  }

 private:
  struct Group {
    std::string key;
    std::int64_t n = 0;
    std::int64_t s = 0;
  };
  /// Returns the groups of the first pass of a chain. If a limit cuts groups off, those with equal numbers are
  /// interchangeable.
  std::vector<Group> first_pass(const Query& query) const {
    std::vector<Group> groups;
    for (const auto& [key, totals] : expected(query)) groups.push_back({key, totals.count, totals.sum});
    if (query.limit == 0) return groups;
    std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
      return std::tuple(-a.n, -a.s, a.key) < std::tuple(-b.n, -b.s, b.key);
    });
    if (groups.size() > query.limit) groups.resize(query.limit);
    return groups;
  }
  std::map<std::string, Totals> expected_by_n(const Query& query) const {
    std::map<std::string, Totals> all;
    for (const Group& group : first_pass(query)) {
      if (group.s >= 0) all[std::to_string(group.n)].add(group.s);
    }
    return all;
  }
  /// Returns the expected rows by key of a result. For one pass with a limit, rows lack their group, since several
  /// groups may qualify.
  std::multimap<std::string, std::string> chain_rows(const Query& query) const {
    std::multimap<std::string, std::string> rows;
    std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> by_n;
    for (const Group& group : first_pass(query)) {
      const bool is_named = query.limit == 0;
      if (!query.has_two_passes()) {
        rows.emplace(
            is_named ? group.key : std::string(),
            fmt::format("{},{},{}]", is_named ? group.key.substr(0, group.key.size() - 1) : "", group.n, group.s));
      } else if (group.s >= 0) {
        ++by_n[group.n].first;
        by_n[group.n].second += group.s;
      }
    }
    for (const auto& [n, of_n] : by_n) {
      rows.emplace(fmt::format("[{}]", n), fmt::format("[{},{},{}]", n, of_n.first, of_n.second));
    }
    return rows;
  }
  std::string compare_chain(const std::vector<mapreduce::KeyedResult>& results, const Query& query) const {
    std::multimap<std::string, std::string> rows = chain_rows(query);
    if (results.size() != rows.size()) return fmt::format("{} rows instead of {}", results.size(), rows.size());
    for (const auto& [key, value] : results) {
      const bool is_named = query.limit == 0 || query.has_two_passes();
      const auto [begin, end] = rows.equal_range(is_named ? key : std::string());
      const auto one = std::find_if(
          begin, end, [&](const auto& row) { return is_named ? row.second == value : value.ends_with(row.second); });
      if (one == end) return fmt::format("a row '{}' {}, which the model does not have", key, value);
      rows.erase(one);
    }
    return {};
  }

  static std::string id_of(unsigned number) { return fmt::format("id:sim:item::{}", number); }
  void put(unsigned number, AsyncClient::OperationDone done) {
    std::string city = fmt::format("city-{}", random_.below(12));
    auto price = static_cast<std::int64_t>(random_.below(2000)) - 500;
    if (random_.chance(0.1)) city.clear();
    items_[number] = {city, price};
    numbers_ = std::max(numbers_, number + 1);
    std::string fields =
        fmt::format(R"({{{}"price": {}, "filler": "{}"}})", city.empty() ? "" : fmt::format(R"("city": "{}", )", city),
                    price, std::string(random_.below(200), 'f'));
    client_.put_json(id_of(number), std::move(fields), seconds(60), std::move(done));
  }
  /// Returns the totals by key of a result.
  std::map<std::string, Totals> expected(const Query& query) const {
    std::map<std::string, Totals> all;
    for (const auto& [number, item] : items_) {
      const auto& [city, price] = item;
      if (!query.is_aggregation) {
        if (!city.empty()) all[city].add(price);
        continue;
      }
      const std::string name = city.empty() ? "null" : "\"" + city + "\"";
      all[query.by_price ? fmt::format("[{},{}]", name, price) : "[" + name + "]"].add(price);
    }
    return all;
  }

  SimCluster& cluster_;
  AsyncClient& client_;
  Random& random_;
  /// By number of the document: its city (empty if not set) and price.
  std::map<unsigned, std::pair<std::string, std::int64_t>> items_;
  unsigned numbers_ = 0;     ///< All documents that were ever put have smaller numbers than this.
  std::set<unsigned> lost_;  ///< Numbers of documents with a failed operation, which are not used again.
};

/// What the client has received about a job.
struct Heard {
  rpc::JobStatus status;
  std::optional<std::vector<mapreduce::KeyedResult>> rows;  ///< Rows that came with the end of the job.
};

/// Returns the answers of all distributors about the job.
std::vector<rpc::ListJobsReply> ask_all(SimCluster& cluster, AsyncClient& client, const std::string& id) {
  std::vector<rpc::ListJobsReply> replies;
  bool answered = false;
  rpc::ListJobs request;
  request.job_id = id;
  request.results_bytes_max = 1 << 20;
  request.packed = true;
  request.records = true;
  client.call_all(std::move(request), seconds(2), [&](auto answers) {
    answered = true;
    if (!answers) return;
    for (auto& [address, reply] : *answers) {
      if (reply) replies.push_back(std::move(*reply));
    }
  });
  cluster.run_until([&] { return answered; }, seconds(10));
  return replies;
}

void control(AsyncClient& client, const std::string& id, rpc::JobAction action, bool records) {
  rpc::ControlJob request;
  request.job_id = id;
  request.action = action;
  request.records = records;
  client.call_all(std::move(request), seconds(2), [](const auto&) {});
}

/// Submits the job and follows it to its end; submits it again if no distributor knows it. Returns false if it never
/// ends.
bool run_to_end(SimCluster& cluster, AsyncClient& client, const Query& query, bool pauses, MonotonicTime until,
                Heard& heard) {
  rpc::JobStatus& status = heard.status;
  std::string id = client.new_job_id();
  rpc::SubmitJob submit;
  submit.job_id = id;
  submit.spec = query.spec();
  submit.spec.visitors_per_node = 1 + static_cast<std::uint32_t>(cluster.random().below(4));
  submit.spec.output_buckets = 1 + static_cast<std::uint32_t>(cluster.random().below(8));
  if (cluster.random().chance(0.4)) {
    // A chain needs a higher rate, because it puts its rows more than once.
    const std::uint64_t least = query.is_chain() ? 10'000 : 1000;
    submit.spec.settings.push_back({"throttle", std::to_string(least + cluster.random().below(20'000))});
    if (cluster.random().chance(0.3)) submit.spec.settings.push_back({"throttle_by", "delay"});
  }
  const auto submit_it = [&] {
    bool submitted = false;
    client.call_any(submit, seconds(60), [&](Result<rpc::SubmitJobReply> reply) {
      status.error = reply ? reply->status : reply.error();
      submitted = true;
    });
    return cluster.run_until([&] { return submitted; }, seconds(90)) && status.error.is_ok();
  };
  if (!submit_it()) return false;

  // With the lowest throttle, by delay, and redundancy 3, a job has taken 378 s (seed 845001600).
  MonotonicTime end = cluster.scheduler().clock().now() + seconds(1200);
  while (cluster.scheduler().clock().now() < end) {
    bool is_known = false;
    std::size_t without = 0;
    std::vector<rpc::ListJobsReply> replies = ask_all(cluster, client, id);
    for (rpc::ListJobsReply& reply : replies) {
      if (reply.jobs.empty()) without += reply.status.is_ok() ? 1 : 0;
      if (reply.jobs.empty()) continue;
      is_known = true;
      const rpc::JobStatus& one = reply.jobs.front();
      if (!status.job_id.empty() && !rpc::is_newer(one, status) && one.epoch != status.epoch) continue;
      status = one;
      const bool has_rows = status.phase == rpc::JobPhase::Done && status.shuffle == rpc::Shuffle::Direct;
      if (!has_rows || !reply.status || reply.more_results || heard.rows) continue;
      auto rows = mapreduce::take_results(reply);
      FJORD_CHECK(rows.has_value());
      heard.rows = std::move(*rows);
    }
    if (status.finished_unix_us != 0) return true;
    if (!is_known && without > 0 && without == replies.size() && !submit_it()) return false;
    if (pauses && cluster.random().chance(0.1))
      control(client, id, rpc::JobAction::Pause, cluster.random().chance(0.3));
    const bool is_late = cluster.scheduler().clock().now() > until;
    if (status.paused && (is_late || cluster.random().chance(0.2))) control(client, id, rpc::JobAction::Resume, true);
    pauses = pauses && !is_late;
    cluster.scheduler().run_for(milliseconds(50));
  }
  return false;
}

/// Runs a job several times and changes documents between the runs; the caller makes the last run. Returns
/// an empty string, or the error.
std::string run_before(SimCluster& cluster, AsyncClient& client, Catalogue& catalogue, const Query& query, bool pauses,
                       MonotonicTime until, std::uint64_t& reused) {
  for (auto rounds = 1 + cluster.random().below(3); rounds > 0; --rounds) {
    Heard heard;
    if (!run_to_end(cluster, client, query, pauses, until, heard)) return "I16: a job did not end";
    if (heard.status.phase != rpc::JobPhase::Done) return "I9: a job failed: " + heard.status.error.to_string();
    reused += heard.status.documents_reused;
    if (heard.rows) {
      if (const std::string wrong = catalogue.compare(*heard.rows, query); !wrong.empty()) return "I9: " + wrong;
    }
    if (!catalogue.change(1 + static_cast<unsigned>(cluster.random().below(30)))) {
      return "I16: documents could not be changed";
    }
  }
  return {};
}

NetworkFaults random_faults(Random& random) {
  NetworkFaults faults;
  if (random.chance(0.5)) faults.lose = random.uniform() * 0.03;
  if (random.chance(0.5)) faults.duplicate = random.uniform() * 0.05;
  if (random.chance(0.5)) faults.delay_max = Duration(500 + random.below(10'000));
  return faults;
}

/// For a while, kills storage nodes one after the other at random moments and restarts them.
void crash_at_random(SimCluster& cluster, MonotonicTime until, bool& stop, unsigned& crashes) {
  Duration wait(cluster.random().below(cluster.random().chance(0.5) ? 50'000 : 1'500'000));
  cluster.scheduler().outside().post_after(wait, [&cluster, until, &stop, &crashes] {
    if (stop || cluster.scheduler().clock().now() > until) return;
    auto victim = static_cast<unsigned>(cluster.random().below(cluster.options().storage_nodes));
    ++crashes;
    cluster.crash_storage(victim);
    Duration away(100'000 + cluster.random().below(6'000'000));
    cluster.scheduler().outside().post_after(away, [&cluster, victim, until, &stop, &crashes] {
      cluster.restart_storage(victim);
      if (!stop) crash_at_random(cluster, until, stop, crashes);
    });
  });
}

/// Kills distributors one after the other, or pauses them for a while.
void disturb_distributors(SimCluster& cluster, MonotonicTime until, bool& stop, unsigned& disturbed) {
  Duration wait(cluster.random().below(cluster.random().chance(0.5) ? 100'000 : 2'000'000));
  cluster.scheduler().outside().post_after(wait, [&cluster, until, &stop, &disturbed] {
    if (stop || cluster.scheduler().clock().now() > until) return;
    const std::string victim = fmt::format("distributor.{}", cluster.random().below(cluster.options().distributors));
    const bool dies = cluster.random().chance(0.6);
    ++disturbed;
    dies ? cluster.crash(victim) : cluster.pause(victim);
    Duration away(100'000 + cluster.random().below(7'000'000));
    cluster.scheduler().outside().post_after(away, [&cluster, victim, dies, until, &stop, &disturbed] {
      dies ? cluster.restart(victim) : cluster.resume(victim);
      if (!stop) disturb_distributors(cluster, until, stop, disturbed);
    });
  });
}

/// Returns the number of documents that the first pass has read.
std::uint64_t read_of(const rpc::JobStatus& status) {
  return status.passes_done.empty() ? status.documents_read : status.passes_done.front().documents_read;
}

/// Returns a report about the job other than "done"; null if there is none.
std::optional<rpc::JobStatus> not_done(const std::vector<rpc::ListJobsReply>& replies) {
  for (const rpc::ListJobsReply& reply : replies) {
    for (const rpc::JobStatus& job : reply.jobs) {
      if (job.phase != rpc::JobPhase::Done) return job;
    }
  }
  return std::nullopt;
}

/// Checks that in the steady cluster every distributor that knows the job reports it as done. Returns an empty string
/// if so. No distributor may know that it is done if the job was submitted again and the distributor that ended it died
/// without a record. Then a former owner may still hold it paused, and it has to end once resumed.
std::string check_agreement(SimCluster& cluster, AsyncClient& client, const rpc::JobStatus& status) {
  cluster.run_until_steady(seconds(120));
  cluster.scheduler().run_for(seconds(20));
  std::vector<rpc::ListJobsReply> replies = ask_all(cluster, client, status.job_id);
  std::optional<rpc::JobStatus> other = not_done(replies);
  const bool is_known = std::any_of(replies.begin(), replies.end(), [](const rpc::ListJobsReply& reply) {
    return !reply.jobs.empty() && reply.jobs.front().phase == rpc::JobPhase::Done;
  });
  if (other && other->paused && !is_known) {
    const MonotonicTime end = cluster.scheduler().clock().now() + seconds(600);
    while (other && cluster.scheduler().clock().now() < end) {
      if (other->paused) control(client, status.job_id, rpc::JobAction::Resume, true);
      cluster.scheduler().run_for(seconds(1));
      other = not_done(ask_all(cluster, client, status.job_id));
    }
  }
  if (!other) return {};
  return fmt::format("I9: {} says of the job that is done: phase {}: {}", other->owner, static_cast<int>(other->phase),
                     other->error.to_string());
}

/// What a seed draws: the cluster, the job, and who disturbs it.
struct JobPlan {
  SimClusterOptions shape;
  Query query;
  bool pauses = false;
  bool disturbs = false;  ///< Distributors are killed or paused.
};

/// Draws the job. The draws from `random` keep their order, on which seeds depend; a draw that was added later is from
/// a generator of its own.
Query draw_query(std::uint64_t seed, Random& random) {
  Query query;
  query.is_aggregation = random.chance(0.7);
  query.by_price = random.chance(0.5);
  query.shuffle = static_cast<rpc::Shuffle>(random.below(3));
  query.wants_city = random.chance(0.5);
  query.is_incremental = query.shuffle != rpc::Shuffle::Store && random.chance(0.5);
  query.repeats =
      query.is_incremental || (query.shuffle != rpc::Shuffle::Store && Random(mix64(seed, 0x636f6c)).chance(0.5));
  if (query.is_aggregation && random.chance(0.5)) {
    query.chain = static_cast<Chain>(1 + random.below(3));
    if (random.chance(0.3)) query.limit = 1 + random.below(12);
  }
  if (query.chain == Chain::ThenRows && Random(mix64(seed, 0x7468656e)).chance(0.5)) {
    query.chain = Chain::ThenBatched;
  }
  query.is_batched = !query.is_aggregation && Random(mix64(seed, 0x706c7567)).chance(0.5);
  return query;
}

JobPlan draw_plan(const ScenarioOptions& options, Random& random) {
  JobPlan plan;
  SimClusterOptions& shape = plan.shape;
  shape.seed = options.seed;
  shape.redundancy = 2 + static_cast<unsigned>(random.below(2));
  shape.storage_nodes = shape.redundancy + 1 + static_cast<unsigned>(random.below(2));
  shape.distributors = 1 + static_cast<unsigned>(random.below(2));
  shape.bits = 2 + static_cast<unsigned>(random.below(3));
  shape.schemas = {kSchema};
  shape.bug = options.bug;
  plan.query = draw_query(options.seed, random);
  plan.pauses = random.chance(0.4);
  plan.disturbs = random.chance(0.5);
  if (random.chance(0.5)) shape.task_memory_bytes = 4096;
  if (random.chance(0.3) && plan.query.shuffle == rpc::Shuffle::Auto) shape.job_memory_bytes = 8192;
  shape.clock_skew = options.clock_skew;
  return plan;
}

/// Faults during the job: messages are lost, storage nodes crash, distributors are killed or paused.
struct Disturbances {
  bool stop = false;
  unsigned crashes = 0;
  unsigned distributors = 0;
};

/// Begins the faults and returns the time at which they end. `made` has to live as long as the cluster runs.
MonotonicTime begin_faults(SimCluster& cluster, Random& random, bool disturbs, Disturbances& made) {
  cluster.network().set_faults(random_faults(random));
  const MonotonicTime until = cluster.scheduler().clock().now() + seconds(30);
  // After 30 s messages are no longer lost: a record is written only when all replicas of its bucket are equal.
  cluster.scheduler().outside().post_after(seconds(30), [&cluster] { cluster.network().set_faults({}); });
  crash_at_random(cluster, until, made.stop, made.crashes);
  if (disturbs) disturb_distributors(cluster, until, made.stop, made.distributors);
  return until;
}

/// Checks how the job ended. Returns an empty string, or the error.
std::string check_status(const rpc::JobStatus& status, bool has_ended, const Query& query, Catalogue& catalogue) {
  if (!has_ended) {
    return fmt::format("I16: the job did not end: phase {}{}, {} of {} mapped, owner {}, epoch {}: {} {}",
                       static_cast<int>(status.phase), status.paused ? " (paused)" : "", status.map_tasks_done,
                       status.map_tasks, status.owner, status.epoch, status.bound_by, status.error.to_string());
  }
  if (status.phase != rpc::JobPhase::Done) return "I9: the job failed: " + status.error.to_string();
  if (status.passes_done.size() != (query.has_two_passes() ? 1 : 0)) {
    return fmt::format("I9: {} passes were done before the last one", status.passes_done.size());
  }
  if (read_of(status) == catalogue.documents() && status.dead_letters == catalogue.dead_letters(query)) return {};
  return fmt::format("I9: {} documents, {} of them dead letters, were read of {} with {}", read_of(status),
                     status.dead_letters, catalogue.documents(), catalogue.dead_letters(query));
}

/// Checks the results of a job that is done: the rows that came with its end, or those that a client reads. Returns an
/// empty string, or the error.
std::string check_results(SimCluster& cluster, AsyncClient& client, const Heard& heard, const Query& query,
                          Catalogue& catalogue, Random& random) {
  Result<std::vector<mapreduce::KeyedResult>> results = Status(StatusCode::Timeout, "no answer");
  bool read = heard.rows.has_value();
  if (read) results = *heard.rows;
  rpc::SnapshotHolder snapshots;
  FJORD_CHECK(snapshots.update(client.snapshot()->info()).has_value());
  mapreduce::JobResults reader(heard.status, client.transport(), snapshots, cluster.scheduler().clock(), random.fork(),
                               client.executor());
  // The task may run as late as in check_documents(), so what it refers to lives until the end of this function.
  client.executor().post([&] {
    if (read) return;
    reader.start([&](Result<std::vector<mapreduce::KeyedResult>> got) {
      results = std::move(got);
      read = true;
    });
  });
  cluster.run_until([&] { return read; }, seconds(60));
  if (!results) return "I9: results cannot be read: " + results.error().to_string();
  std::string wrong = catalogue.compare(*results, query);
  if (wrong.empty() && query.puts_documents()) wrong = catalogue.check_documents(*results, query);
  return wrong.empty() ? wrong : "I9: " + wrong;
}

std::string summary_of(const JobPlan& plan, const rpc::JobStatus& status, const Disturbances& made, SimCluster& cluster,
                       std::uint64_t reused) {
  const Query& query = plan.query;
  return fmt::format(
      "{} ({}{}{}), {} storage nodes, redundancy {}, {} crashes, {} distributors disturbed, taken over {} times, {} "
      "messages "
      "({} lost), {} map tasks, {} repeated",
      query.is_aggregation ? "aggregate" : query.spec().application,
      status.shuffle == rpc::Shuffle::Direct ? "direct" : "store",
      query.is_chain() ? fmt::format(", chain {}, limit {}", static_cast<int>(query.chain), query.limit) : "",
      query.is_incremental ? fmt::format(", {} documents reused", reused + status.documents_reused) : "",
      plan.shape.storage_nodes, plan.shape.redundancy, made.crashes, made.distributors, status.taken_over,
      cluster.network().messages_sent(), cluster.network().messages_lost(), status.map_tasks, status.tasks_repeated);
}

}  // namespace

ScenarioResult run_job(const ScenarioOptions& options) {
  Random random(mix64(options.seed, 0x6a6f62));
  const JobPlan plan = draw_plan(options, random);
  const Query& query = plan.query;
  SimCluster cluster(plan.shape);
  cluster.scheduler().keep_trace(options.keep_trace);
  cluster.start();
  AsyncClient& client = cluster.add_client();

  ScenarioResult result;
  Catalogue catalogue(cluster, client, random);
  if (!catalogue.feed(100 + static_cast<unsigned>(random.below(150))))
    result.failure = "I16: the documents could not be fed";
  if (query.puts_documents() && !catalogue.put_strangers(query)) result.failure = "I16: the documents could not be fed";

  Disturbances made;
  const MonotonicTime until = begin_faults(cluster, random, plan.disturbs, made);
  std::uint64_t reused = 0;
  if (result.failure.empty() && query.repeats) {
    result.failure = run_before(cluster, client, catalogue, query, plan.pauses, until, reused);
  }
  Heard heard;
  const bool has_ended = run_to_end(cluster, client, query, plan.pauses, until, heard);
  made.stop = true;
  cluster.network().set_faults({});
  cluster.restart_everything();

  if (result.failure.empty()) result.failure = check_status(heard.status, has_ended, query, catalogue);
  if (result.failure.empty() && plan.disturbs) result.failure = check_agreement(cluster, client, heard.status);
  if (result.failure.empty()) {
    result.failure = check_results(cluster, client, heard, query, catalogue, random);
  }
  result.summary = summary_of(plan, heard.status, made, cluster, reused);
  add_trace(cluster, result);
  return result;
}

}  // namespace fjord::sim
