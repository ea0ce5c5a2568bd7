#include <charconv>
#include <condition_variable>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "benchmarks.h"
#include "fjord/client/connect.h"
#include "fjord/common/random.h"
#include "fjord/mapreduce/job_results.h"
#include "report.h"

namespace fjord::bench {
namespace {

using Counts = std::map<std::string, std::uint64_t, std::less<>>;
using KeyedResults = std::vector<mapreduce::KeyedResult>;

constexpr std::chrono::milliseconds kPollInterval{5};
constexpr double kPatienceSeconds = 300;

Counts expected_counts(const ListingGenerator& generator, std::uint64_t documents) {
  Counts counts;
  for (std::uint64_t number = 0; number < documents; ++number) ++counts[std::string(generator.city(number))];
  return counts;
}

/// Polls until the job is done. Errors: those of the job; Timeout.
Result<rpc::JobStatus> wait_for_job(SyncClient& client, const std::string& id) {
  const Stopwatch watch;
  while (watch.seconds() < kPatienceSeconds) {
    FJORD_TRY_ASSIGN(const std::vector<rpc::JobStatus> jobs, client.list_jobs(id));
    for (const rpc::JobStatus& job : jobs) {
      if (job.phase == rpc::JobPhase::Done) return job;
      if (job.phase == rpc::JobPhase::Failed || job.phase == rpc::JobPhase::Cancelled) {
        return job.error.is_ok() ? Status(StatusCode::Cancelled, "the job was cancelled") : job.error;
      }
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  return Status(StatusCode::Timeout, fmt::format("job {} is not done after {} s", id, kPatienceSeconds));
}

Result<KeyedResults> read_results(Connection& connection, const rpc::JobStatus& job) {
  rpc::SnapshotHolder holder;
  if (const auto updated = holder.update(connection.client().snapshot()->info()); !updated) return updated.error();
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Result<KeyedResults>> answer;
  std::unique_ptr<mapreduce::JobResults> results;
  Executor& executor = connection.executor();
  executor.post([&] {
    results = std::make_unique<mapreduce::JobResults>(job, connection.transport(), holder, connection.runtime().clock,
                                                      Random::from_system(), executor);
    results->start([&](Result<KeyedResults> got) {
      executor.post([&, got = std::move(got)]() mutable {
        results.reset();
        const std::lock_guard lock(mutex);
        answer = std::move(got);
        changed.notify_one();
      });
    });
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return answer.has_value(); });
  return std::move(*answer);
}

/// Compares the results of the job with the expected counts. Returns an empty string, or the first difference.
std::string difference(const KeyedResults& results, const Counts& expected, std::uint64_t documents) {
  std::uint64_t sum = 0;
  for (const auto& [city, json] : results) {
    std::uint64_t count = 0;
    const auto [at, error] = std::from_chars(json.data(), json.data() + json.size(), count);
    if (error != std::errc() || at != json.data() + json.size()) return fmt::format("{}: not a count: {}", city, json);
    const auto wanted = expected.find(city);
    if (wanted == expected.end() || wanted->second != count) {
      const std::uint64_t fed = wanted == expected.end() ? 0 : wanted->second;
      return fmt::format("{}: {} were counted, {} were fed", city, count, fed);
    }
    sum += count;
  }
  if (sum != documents) return fmt::format("the counts add up to {}, {} documents were fed", sum, documents);
  return {};
}

/// Seconds since the job was submitted.
struct Times {
  double job = 0;
  double total = 0;
};

Result<Times> run_once(Connection& connection, const Counts& expected, const BenchOptions& options,
                       rpc::Shuffle shuffle) {
  SyncClient client = connection.sync();
  rpc::JobSpec spec;
  spec.application = "citycount";
  spec.document_type = "listing";
  spec.parameters = {{"field", "city"}};
  spec.output_namespace = "bench-results";
  spec.shuffle = shuffle;
  Times times;
  const Stopwatch watch;
  FJORD_TRY_ASSIGN(const std::string id, client.submit_job(std::move(spec)));
  FJORD_TRY_ASSIGN(const rpc::JobStatus job, wait_for_job(client, id));
  times.job = watch.seconds();
  FJORD_TRY_ASSIGN(const KeyedResults results, read_results(connection, job));
  times.total = watch.seconds();
  const std::string wrong = difference(results, expected, options.documents);
  if (!wrong.empty()) return Status(StatusCode::Corruption, "citycount: " + wrong);
  say(fmt::format("citycount, shuffle {}: {} cities in {:.3f} s, of which {:.3f} s for the job",
                  shuffle == rpc::Shuffle::Direct ? "direct" : "store", results.size(), times.total, times.job));
  return times;
}

}  // namespace

int run_citycount(Connection& connection, const ListingGenerator& generator, const BenchOptions& options) {
  Counts expected;
  prepare([&] { expected = expected_counts(generator, options.documents); });
  const CpuStopwatch cpu;
  for (const rpc::Shuffle shuffle : {rpc::Shuffle::Store, rpc::Shuffle::Direct}) {
    std::vector<double> total;
    std::vector<double> job;
    for (unsigned run = 0; run < options.repeat; ++run) {
      const auto times = run_once(connection, expected, options, shuffle);
      if (!times) return fail(times.error());
      total.push_back(times->total);
      job.push_back(times->job);
    }
    const std::string shuffled = shuffle == rpc::Shuffle::Direct ? "direct_" : "";
    print_metric("citycount", shuffled + "time_s", quantile(total, 0.5), "s");
    print_metric("citycount", shuffled + "job_time_s", quantile(job, 0.5), "s");
  }
  print_metric("citycount", "client_cpu_s", cpu.seconds(), "s");
  return 0;
}

}  // namespace fjord::bench
