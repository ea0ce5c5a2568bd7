#include <atomic>
#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <poll.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "benchmarks.h"
#include "fjord/client/connect.h"
#include "fjord/common/random.h"
#include "report.h"

namespace fjord::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using SteadyTime = SteadyClock::time_point;

std::int64_t since_boot_us(SteadyTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

/// Starts operations and writes one line for each when it has ended: the time at which it was due (CLOCK_MONOTONIC,
/// microseconds), its kind, its duration from then on, and its outcome.
class Load {
 public:
  Load(AsyncClient& client, const ListingGenerator& generator, const BenchOptions& options, std::FILE* out)
      : client_(client),
        generator_(generator),
        options_(options),
        expected_(fingerprints(generator, options.documents)),
        random_(options.seed + 2),
        out_(out) {
    fmt::print(out_, "due_us,kind,latency_us,status,attempts\n");
  }

  // start_get() and start_put() are called on the main thread only.
  void start_get(const char* kind, SteadyTime due) {
    const std::uint64_t number = random_.below(options_.documents);
    ++started_;
    client_.get(generator_.id(number), Duration(0), [this, kind, number, due](OperationOutcome outcome) {
      const bool wrong = outcome.is_ok() && fingerprint(outcome.header, outcome.body) != expected_[number];
      ended(kind, due, outcome, wrong);
    });
  }
  void start_put(const char* kind, SteadyTime due) {
    const std::uint64_t number = random_.below(options_.documents);
    ++started_;
    client_.put(generator_.id(number), generator_.document(number), Duration(0),
                [this, kind, due](OperationOutcome outcome) { ended(kind, due, outcome, false); });
  }
  void start_closed(SteadyTime due) {
    ++closed_started;
    if (options_.put_share > 0 && random_.uniform() < options_.put_share) return start_put("closed put", due);
    start_get("closed", due);
  }

  std::uint64_t under_way() const { return started_ - ended_.load(); }
  std::uint64_t closed_under_way() const { return closed_started - closed_ended_.load(); }
  std::uint64_t failed() const { return failed_; }
  std::uint64_t started() const { return started_; }
  std::uint64_t closed_started = 0;

 private:
  // Runs on the client's executor.
  void ended(const char* kind, SteadyTime due, const OperationOutcome& outcome, bool wrong) {
    const auto taken = std::chrono::duration_cast<std::chrono::microseconds>(SteadyClock::now() - due).count();
    fmt::print(out_, "{},{},{},{},{}\n", since_boot_us(due), kind, taken,
               wrong ? "WRONG" : to_string(outcome.status.code()), outcome.attempts);
    if (wrong || !outcome.is_ok()) {
      ++failed_;
      say(fmt::format("load: {}: {}", kind, wrong ? "not the document that was fed" : outcome.status.to_string()));
    }
    if (*kind == 'c') ++closed_ended_;
    ++ended_;
  }

  AsyncClient& client_;
  const ListingGenerator& generator_;
  const BenchOptions& options_;
  const std::vector<std::uint64_t> expected_;
  Random random_;
  std::FILE* out_;
  std::uint64_t started_ = 0;
  std::atomic<std::uint64_t> ended_ = 0;
  std::atomic<std::uint64_t> closed_ended_ = 0;
  std::atomic<std::uint64_t> failed_ = 0;
};

/// Returns true if standard input has ended; waits at most a millisecond.
bool input_ended() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (::poll(&input, 1, 1) <= 0) return false;
  char ignored[64];
  return ::read(STDIN_FILENO, ignored, sizeof(ignored)) <= 0;
}

/// Returns the number of operations due after `seconds` at `rate` per second.
std::uint64_t due_count(double rate, double seconds) { return static_cast<std::uint64_t>(rate * seconds); }

void run_until_end(Load& load, const BenchOptions& options) {
  const SteadyTime start = SteadyClock::now();
  const auto due_at = [&](std::uint64_t number, double rate) {
    return start + std::chrono::duration_cast<SteadyClock::duration>(
                       std::chrono::duration<double>(static_cast<double>(number + 1) / rate));
  };
  std::uint64_t gets = 0;
  std::uint64_t puts = 0;
  while (true) {
    const double seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
    if (options.load_seconds > 0 && seconds >= options.load_seconds) return;
    for (; gets < due_count(options.gets_per_second, seconds); ++gets) {
      load.start_get("get", due_at(gets, options.gets_per_second));
    }
    for (; puts < due_count(options.puts_per_second, seconds); ++puts) {
      load.start_put("put", due_at(puts, options.puts_per_second));
    }
    while (load.closed_under_way() < options.in_flight) load.start_closed(SteadyClock::now());
    if (options.load_seconds > 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    } else if (input_ended()) {
      return;
    }
  }
}

}  // namespace

int run_load(Connection& connection, const ListingGenerator& generator, const BenchOptions& options) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::fopen(options.output.c_str(), "w"), &std::fclose);
  if (!out) return fail(fmt::format("load: {} cannot be written", options.output));
  Load load(connection.client(), generator, options, out.get());
  run_until_end(load, options);
  // Ends, because each operation ends by its deadline.
  while (load.under_way() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  print_metric("load", "operations", static_cast<double>(load.started()), "1");
  print_metric("load", "failed", static_cast<double>(load.failed()), "1");
  return load.failed() == 0 ? 0 : 1;
}

}  // namespace fjord::bench
