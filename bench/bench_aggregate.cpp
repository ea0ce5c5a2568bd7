#include <charconv>
#include <condition_variable>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "benchmarks.h"
#include "fjord/client/connect.h"
#include "fjord/mapreduce/aggregate_spec.h"
#include "fjord/mapreduce/job_rows.h"
#include "query.h"
#include "report.h"

namespace fjord::bench {
namespace {

constexpr std::uint32_t kPageBytes = std::uint32_t{1} << 20;
constexpr Duration kPatience = seconds(60);

/// Document count and exact sum of prices of a group.
struct Expected {
  std::uint64_t count = 0;
  std::int64_t price = 0;
};
/// Groups by the JSON text of their key.
using Groups = std::map<std::string, Expected, std::less<>>;

constexpr std::int32_t kPriceGroups = 25'000;

/// Returns the answer of the distributor that runs the job.
Result<rpc::ListJobsReply> ask(Connection& connection, const rpc::ListJobs& request) {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Result<rpc::ListJobsReply>> answer;
  connection.client().call_all(request, kPatience, [&](auto replies) {
    const std::lock_guard lock(mutex);
    answer = Status(StatusCode::NotFound, "no distributor knows the job");
    if (!replies) {
      answer = replies.error();
    } else {
      for (auto& [address, reply] : *replies) {
        if (reply && !reply->jobs.empty()) answer = std::move(*reply);
      }
    }
    changed.notify_one();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return answer.has_value(); });
  return std::move(*answer);
}

/// Compares rows (key, count, sum of the prices). Returns an empty string, or the first difference.
std::string difference(const std::vector<std::string_view>& rows, const Groups& expected) {
  if (rows.size() != expected.size()) return fmt::format("{} rows instead of {}", rows.size(), expected.size());
  for (const std::string_view row : rows) {
    const auto cells = mapreduce::row_cells(row);
    if (!cells || cells->size() != 3) return fmt::format("a malformed row: {}", row);
    const auto wanted = expected.find((*cells)[0]);
    if (wanted == expected.end()) return fmt::format("a key that was not fed: {}", row);
    if ((*cells)[1] != std::to_string(wanted->second.count) || (*cells)[2] != std::to_string(wanted->second.price)) {
      return fmt::format("{} instead of {} and {}", row, wanted->second.count, wanted->second.price);
    }
  }
  return {};
}

}  // namespace

std::vector<std::string_view> Answer::rows() const {
  std::vector<std::string_view> rows;
  rows.reserve(count);
  for (const mapreduce::JobRows& page : pages) {
    for (const auto& [key, value] : page) rows.push_back(value);
  }
  return rows;
}

Result<Answer> run_job(Connection& connection, const mapreduce::AggregateSpec& spec, unsigned visitors_per_node,
                       bool is_incremental) {
  FJORD_TRY_ASSIGN(const auto plan, mapreduce::AggregatePlan::compile(spec, *connection.client().snapshot()->types()));
  rpc::JobSpec job;
  job.application = mapreduce::kAggregateApplication;
  job.document_type = spec.type;
  job.selection = plan->selection();
  job.visitors_per_node = visitors_per_node;
  job.incremental = is_incremental;
  job.parameters = {{mapreduce::kAggregateParameter, spec.to_json()}};
  Answer answer;
  const Stopwatch watch;
  FJORD_TRY_ASSIGN(const std::string id, connection.sync().submit_job(std::move(job)));
  for (bool more = true; more;) {
    rpc::ListJobs request;
    request.job_id = id;
    request.wait_us = Duration(fjord::seconds(10)).count();
    request.results_from = answer.count;
    request.results_bytes_max = kPageBytes;
    request.packed = true;
    FJORD_TRY_ASSIGN(rpc::ListJobsReply reply, ask(connection, request));
    FJORD_TRY(reply.status);
    answer.status = reply.jobs.front();
    FJORD_TRY(answer.status.error);
    if (answer.status.finished_unix_us == 0) continue;
    FJORD_TRY_ASSIGN(mapreduce::JobRows page, mapreduce::JobRows::unpack(std::move(reply.packed_results)));
    answer.count += page.size();
    answer.pages.push_back(std::move(page));
    more = reply.more_results;
  }
  answer.seconds = watch.seconds();
  return answer;
}

namespace {

void say_answer(const std::string& what, const Answer& answer) {
  say(fmt::format("{}: {} groups of {} documents in {:.3f} s, of which {:.3f} s for the job", what, answer.count,
                  answer.status.documents_read, answer.seconds,
                  static_cast<double>(answer.status.finished_unix_us - answer.status.submitted_unix_us) / 1e6));
}

Result<double> run_once(Connection& connection, const std::string& key, const Groups& expected) {
  mapreduce::AggregateSpec spec;
  spec.type = "listing";
  spec.group_by = {key};
  spec.aggregates = {"count()", "sum(price)"};
  FJORD_TRY_ASSIGN(const Answer answer, run_job(connection, spec));
  const std::string wrong = difference(answer.rows(), expected);
  if (!wrong.empty()) return Status(StatusCode::Corruption, "aggregate: " + wrong);
  say_answer("aggregate: by " + key, answer);
  return answer.seconds;
}

}  // namespace

int run_query(Connection& connection, const BenchOptions& options) {
  const auto spec = mapreduce::AggregateSpec::from_json(options.spec);
  if (!spec) return fail(spec.error());
  std::ofstream out(options.output);
  for (unsigned run = 0; run < options.repeat; ++run) {
    const auto answer = run_job(connection, *spec, options.visitors_per_node);
    if (!answer) return fail(answer.error());
    say_answer("query", *answer);
    print_metric("query", "time_s", answer->seconds, "s");
    if (run + 1 != options.repeat) continue;
    for (const std::string_view row : answer->rows()) out << row << '\n';
  }
  out.close();
  return out ? 0 : fail(Status(StatusCode::IoError, options.output + " cannot be written"));
}

int run_aggregate(Connection& connection, const ListingGenerator& generator, const BenchOptions& options) {
  struct Part {
    std::string metric;
    std::string key;
    Groups expected;
  };
  Part parts[] = {{"city_time_s", "city", {}}, {"time_s", fmt::format("price % {}", kPriceGroups), {}}};
  prepare([&] {
    for (std::uint64_t number = 0; number < options.documents; ++number) {
      const std::int32_t price = generator.price(number);
      for (Part& part : parts) {
        Expected& group = part.expected[part.key == "city" ? fmt::format("\"{}\"", generator.city(number))
                                                           : std::to_string(price % kPriceGroups)];
        ++group.count;
        group.price += price;
      }
    }
  });
  const CpuStopwatch cpu;
  for (const Part& part : parts) {
    std::vector<double> total;
    for (unsigned run = 0; run < options.repeat; ++run) {
      const auto seconds = run_once(connection, part.key, part.expected);
      if (!seconds) return fail(seconds.error());
      total.push_back(*seconds);
    }
    print_metric("aggregate", part.metric, quantile(total, 0.5), "s");
  }
  print_metric("aggregate", "client_cpu_s", cpu.seconds(), "s");
  return 0;
}

}  // namespace fjord::bench
