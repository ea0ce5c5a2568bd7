#include <condition_variable>
#include <fmt/format.h>
#include <mutex>
#include <vector>

#include "benchmarks.h"
#include "fjord/client/connect.h"
#include "fjord/common/random.h"
#include "fjord/common/thread_annotations.h"
#include "report.h"

namespace fjord::bench {
namespace {

constexpr std::size_t kLatenciesReserved = 1 << 20;

/// A series of reads: chooses the documents, compares the answers with them, and decides when the series ends.
class Reads {
 public:
  Reads(const ListingGenerator& generator, const std::vector<std::uint64_t>& expected, const BenchOptions& options)
      : generator_(generator), expected_(expected), options_(options), random_(options.seed + 1) {
    latencies_.reserve(kLatenciesReserved);
  }

  bool wanted() const {
    return error_.empty() && watch_.seconds() < options_.seconds &&
           (options_.operations == 0 || started_ < options_.operations);
  }
  std::uint64_t next_number() {
    ++started_;
    return random_.below(options_.documents);
  }
  std::string id(std::uint64_t number) const { return generator_.id(number); }

  void check(std::uint64_t number, const OperationOutcome& outcome, double seconds) {
    latencies_.push_back(seconds);
    if (!outcome.is_ok()) {
      error_ = fmt::format("get {}: {}", id(number), outcome.status.to_string());
    } else if (fingerprint(outcome.header, outcome.body) != expected_[number]) {
      error_ = fmt::format("get {}: not the document that was fed", id(number));
    }
  }

  int report(const std::string& series) {
    const double seconds = watch_.seconds();
    if (!error_.empty()) return fail(error_);
    print_metric("get", series + "_per_s", static_cast<double>(latencies_.size()) / seconds, "1/s");
    print_metric("get", series + "_p50_ms", quantile(latencies_, 0.50) * 1e3, "ms");
    print_metric("get", series + "_p99_ms", quantile(latencies_, 0.99) * 1e3, "ms");
    return 0;
  }

 private:
  const ListingGenerator& generator_;
  const std::vector<std::uint64_t>& expected_;
  const BenchOptions& options_;
  Random random_;
  Stopwatch watch_;
  std::uint64_t started_ = 0;
  std::vector<double> latencies_;
  std::string error_;
};

/// One thread that waits for each answer, as most programs do.
int run_one(Connection& connection, Reads reads) {
  SyncClient sync = connection.sync();
  while (reads.wanted()) {
    const std::uint64_t number = reads.next_number();
    const Stopwatch watch;
    const OperationOutcome outcome = sync.get(reads.id(number));
    reads.check(number, outcome, watch.seconds());
  }
  return reads.report("inflight1");
}

/// Many reads in flight; each answer starts the next one. Everything except wait() runs on the client's executor.
class ManyReads {
 public:
  ManyReads(AsyncClient& client, Reads& reads, std::size_t in_flight)
      : client_(client), reads_(reads), in_flight_(in_flight) {}

  void start() {
    for (std::size_t i = 0; i < in_flight_; ++i) start_one();
    if (under_way_ == 0) finish();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return done_; });
  }

 private:
  void start_one() {
    if (!reads_.wanted()) return;
    ++under_way_;
    const std::uint64_t number = reads_.next_number();
    client_.get(reads_.id(number), Duration(0), [this, number, watch = Stopwatch()](OperationOutcome outcome) {
      reads_.check(number, outcome, watch.seconds());
      --under_way_;
      start_one();
      if (under_way_ == 0) finish();
    });
  }
  void finish() {
    const std::lock_guard lock(mutex_);
    done_ = true;
    ended_.notify_one();
  }

  AsyncClient& client_;
  Reads& reads_;
  const std::size_t in_flight_;
  std::size_t under_way_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ FJORD_GUARDED_BY(mutex_) = false;
};

int run_many(Connection& connection, Reads reads, std::size_t in_flight) {
  ManyReads many(connection.client(), reads, in_flight);
  connection.executor().post([&] { many.start(); });
  many.wait();
  return reads.report(fmt::format("inflight{}", in_flight));
}

}  // namespace

int run_get(Connection& connection, const ListingGenerator& generator, const BenchOptions& options) {
  std::vector<std::uint64_t> expected;
  prepare([&] { expected = fingerprints(generator, options.documents); });
  const CpuStopwatch cpu;
  // The constructor of Reads starts its stopwatch, so each series makes its own.
  if (const int code = run_one(connection, Reads(generator, expected, options)); code != 0) return code;
  for (const std::size_t in_flight : {16, 64}) {
    const int code = run_many(connection, Reads(generator, expected, options), in_flight);
    if (code != 0) return code;
  }
  print_metric("get", "client_cpu_s", cpu.seconds(), "s");
  return 0;
}

}  // namespace fjord::bench
