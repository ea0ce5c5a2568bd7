// fjord-overload: measures a cluster while it gets many times more operations than it can do, and afterwards.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fjord/client/connect.h"
#include "fjord/common/random.h"

namespace {

using namespace fjord;
using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t kDocuments = 20'000;

struct Options {
  std::string cluster;
  unsigned connections = 2;
  std::size_t in_flight = 256;
  double before_s = 6;
  double overload_s = 8;
  double after_s = 30;
  double factor = 10;
  std::int64_t timeout_ms = 2000;
  bool naive = false;
};

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

void print(const char* metric, double value, const char* unit) {
  fmt::print("overload {} {:.2f} {}\n", metric, value, unit);
  std::fflush(stdout);
}

/// Counts operations by outcome; outlives the connections whose callbacks use it.
struct Outcomes {
  std::atomic<std::uint64_t> applied{0};
  std::atomic<std::uint64_t> busy{0};
  std::atomic<std::uint64_t> other{0};
  std::atomic<std::uint64_t> in_doubt{0};

  void count(const OperationOutcome& outcome) {
    const bool is_answer = outcome.is_ok() || outcome.status.code() == StatusCode::NotFound;
    if (is_answer) {
      ++applied;
    } else if (outcome.outcome == Outcome::InDoubt) {
      ++in_doubt;
    } else if (outcome.status.code() == StatusCode::Busy) {
      ++busy;
    } else {
      ++other;
    }
  }
};

ConnectOptions connect_options(const Options& options) {
  ConnectOptions connect;
  if (options.naive) {
    // A client without overload control: it sends everything at once and retries refused operations.
    connect.client.window_operations_max = connect.client.window_operations_min = 1'000'000;
    connect.client.batches_in_flight_max = 1000;
    connect.client.retry_budget_percent = 1000;
    connect.client.retry_budget_per_second = 1'000'000;
    connect.client.retry_budget_burst = 1'000'000;
    connect.client.backoff_max = milliseconds(20);
  }
  return connect;
}

/// Operations on random documents, half reads and half writes, through several clients in turn.
class Load {
 public:
  Load(const Options& options, std::vector<std::unique_ptr<Connection>>& connections)
      : timeout_(milliseconds(options.timeout_ms)), connections_(connections) {}

  void start_one(std::function<void(const OperationOutcome&)> done) {
    AsyncClient& client = connections_[next_++ % connections_.size()]->client();
    std::string id = fmt::format("id:load:thing::{}", random_.below(kDocuments));
    if (random_.chance(0.5)) {
      client.get_json(std::move(id), timeout_, [done = std::move(done)](OperationOutcome outcome) { done(outcome); });
    } else {
      client.put_json(std::move(id),
                      fmt::format(R"({{"text": "some words about number {}", "number": {}}})", next_, next_), timeout_,
                      [done = std::move(done)](OperationOutcome outcome) { done(outcome); });
    }
  }

 private:
  Duration timeout_;
  std::vector<std::unique_ptr<Connection>>& connections_;
  Random random_{17};
  std::uint64_t next_ = 0;
};

/// Keeps a number of operations in flight, and returns the number applied in each second.
class ClosedLoop {
 public:
  ClosedLoop(Load& load, std::size_t in_flight, Outcomes& outcomes)
      : load_(load), in_flight_(in_flight), outcomes_(outcomes) {}

  /// Runs until `enough` returns true after a second, or for `limit_s` seconds.
  template <typename Enough>
  std::vector<double> run(double limit_s, Enough enough) {
    std::vector<double> rates;
    const auto start = SteadyClock::now();
    auto second = start;
    std::uint64_t applied = outcomes_.applied;
    while (true) {
      while (pending_ < in_flight_) {
        ++pending_;
        load_.start_one([this](const OperationOutcome& outcome) {
          outcomes_.count(outcome);
          --pending_;
        });
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      const double elapsed = seconds_since(second);
      if (elapsed < 1) continue;
      rates.push_back(static_cast<double>(outcomes_.applied - applied) / elapsed);
      applied = outcomes_.applied;
      second = SteadyClock::now();
      if (seconds_since(start) >= limit_s || enough(rates)) break;
    }
    return rates;
  }
  void drain() {
    while (pending_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  Load& load_;
  std::size_t in_flight_;
  Outcomes& outcomes_;
  std::atomic<std::size_t> pending_{0};
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// Starts operations at a fixed rate, whatever their outcomes, and waits until all have ended.
void run_open_loop(const Options& options, Load& load, double rate) {
  Outcomes outcomes;
  std::atomic<std::uint64_t> pending{0};
  std::uint64_t started = 0;
  std::uint64_t most_pending = 0;
  const auto start = SteadyClock::now();
  while (seconds_since(start) < options.overload_s) {
    const auto wanted = static_cast<std::uint64_t>(seconds_since(start) * rate);
    // In small portions, so that the clock is read between them.
    for (int i = 0; i < 200 && started < wanted; ++i) {
      ++started;
      ++pending;
      load.start_one([&](const OperationOutcome& outcome) {
        outcomes.count(outcome);
        --pending;
      });
    }
    most_pending = std::max(most_pending, pending.load());
    if (started >= wanted) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  const double took = seconds_since(start);
  const double applied = static_cast<double>(outcomes.applied);
  while (pending > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  print("offered_per_s", static_cast<double>(started) / took, "1/s");
  print("during_per_s", applied / took, "1/s");
  print("refused", static_cast<double>(outcomes.busy), "operations");
  print("in_doubt", static_cast<double>(outcomes.in_doubt), "operations");
  print("not_applied_otherwise", static_cast<double>(outcomes.other), "operations");
  print("pending_max", static_cast<double>(most_pending), "operations");
  print("drained_after_s", seconds_since(start) - took, "s");
}

int run(const Options& options) {
  const auto connect_all = [&](const ConnectOptions& how) {
    std::vector<std::unique_ptr<Connection>> connections;
    for (unsigned i = 0; i < options.connections; ++i) {
      auto connection = open_connection(options.cluster, how);
      if (!connection) {
        fmt::print(stderr, "fjord-overload: {}\n", connection.error().to_string());
        return std::vector<std::unique_ptr<Connection>>();
      }
      connections.push_back(std::move(*connection));
    }
    return connections;
  };
  Outcomes outcomes;
  auto connections = connect_all({});
  auto flooding = connect_all(connect_options(options));
  if (connections.empty() || flooding.empty()) return 1;
  Load load(options, connections);
  Load flood(options, flooding);
  ClosedLoop loop(load, options.in_flight, outcomes);
  const auto never = [](const std::vector<double>&) { return false; };
  (void)loop.run(2, never);  // The first two seconds create the documents and are not measured.
  const double before = median(loop.run(options.before_s, never));
  loop.drain();
  print("before_per_s", before, "1/s");

  run_open_loop(options, flood, options.factor * before);

  // Measures the time until three consecutive seconds reach the rate from before the overload.
  double best = 0;
  const auto recent = [](const std::vector<double>& rates) {
    double sum = 0;
    for (std::size_t i = rates.size() - 3; i < rates.size(); ++i) sum += rates[i];
    return sum / 3;
  };
  const std::vector<double> after = loop.run(options.after_s, [&](const std::vector<double>& rates) {
    if (rates.size() < 3) return false;
    best = std::max(best, recent(rates));
    return recent(rates) >= 0.9 * before;
  });
  loop.drain();
  print("after_first_second_per_s", after.front(), "1/s");
  print("after_per_s", best, "1/s");
  print("after_ratio", best / before, "of before");
  print("recovered_after_s", best >= 0.9 * before ? static_cast<double>(after.size()) : -1, "s");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Measures what a cluster does with operations as they follow each other, then sends it many times as many for "
      "some "
      "seconds, whatever becomes of them, then measures how long it takes until it is as fast as before. The cluster "
      "has "
      "a document type `thing` with the fields `text` (string) and `number` (int). Prints lines `overload metric value "
      "unit`.",
      "fjord-overload");
  Options options;
  app.add_option("--cluster", options.cluster, "Addresses of distributors")->envname("FJORD_CLUSTER")->required();
  app.add_option("--connections", options.connections, "Clients, by turns")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--in-flight", options.in_flight, "Operations under way when the cluster is not overloaded")
      ->capture_default_str();
  app.add_option("--factor", options.factor, "Factor by which operations are more than before")->capture_default_str();
  app.add_option("--before", options.before_s, "Seconds measured before")->capture_default_str();
  app.add_option("--overload", options.overload_s, "Seconds of overload")->capture_default_str();
  app.add_option("--after", options.after_s, "Seconds measured after, at most")->capture_default_str();
  app.add_option("--timeout-ms", options.timeout_ms, "Of an operation")->capture_default_str();
  app.add_flag("--naive", options.naive,
               "The overload comes from clients without a window, without pauses and without a retry budget");
  CLI11_PARSE(app, argc, argv);
  return run(options);
}
