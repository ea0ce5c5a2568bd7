#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <vector>

#include "benchmarks.h"
#include "fjord/client/connect.h"
#include "fjord/client/feeder.h"
#include "fjord/common/random.h"
#include "fjord/mapreduce/aggregate_spec.h"
#include "query.h"
#include "report.h"

namespace fjord::bench {
namespace {

using mapreduce::AggregateSpec;

constexpr double kChanged = 0.01;

struct Query {
  const char* name;
  AggregateSpec spec;
};

std::vector<Query> queries() {
  const auto make = [](std::string key, std::vector<std::string> aggregates, std::string selection = {}) {
    AggregateSpec spec;
    spec.type = "listing";
    spec.selection = std::move(selection);
    spec.group_by = {std::move(key)};
    spec.aggregates = std::move(aggregates);
    return spec;
  };
  return {{"city", make("city", {"count()", "sum(price)"})},
          {"country", make("country", {"count()", "avg(price)", "min(price)", "max(price)"})},
          {"distinct", make("country", {"count()", "distinct(city)", "quantile(0.5,price)"})},
          {"price", make("price % 25000", {"count()", "sum(price)"})},
          {"body", make("country", {"count()", "sum(price)"}, "listing.description != \"\"")}};
}

/// Returns the first `count` documents in the order of the bucket tree; they lie in few buckets.
std::vector<std::uint64_t> neighbours(const ListingGenerator& generator, std::uint64_t documents, std::uint64_t count) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> by_position;
  by_position.reserve(documents);
  for (std::uint64_t number = 0; number < documents; ++number) {
    const auto id = DocumentId::parse(generator.id(number));
    by_position.emplace_back(id->bucket(BucketId::kUsedBitsMax).position(), number);
  }
  std::sort(by_position.begin(), by_position.end());
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < count; ++i) numbers.push_back(by_position[i].second);
  return numbers;
}

Status put(Connection& connection, const ListingGenerator& generator, const std::vector<std::uint64_t>& numbers) {
  Feeder feeder(connection.client(), {});
  for (const std::uint64_t number : numbers) {
    EncodedDocument document = generator.document(number);
    rpc::Operation operation;
    operation.kind = rpc::OperationKind::Put;
    operation.id = generator.id(number);
    operation.header = std::move(document.header);
    operation.body = std::move(document.body);
    feeder.submit(std::move(operation));
  }
  feeder.flush();
  if (feeder.stats().ok == numbers.size()) return Status::ok();
  return Status(StatusCode::Unknown, "refresh: not all documents could be changed");
}

class Refresh {
 public:
  Refresh(Connection& connection, const BenchOptions& options) : connection_(connection), options_(options) {}

  /// Returns the median of several runs, each after `prepare()`, and the last answer.
  template <typename F>
  Result<Answer> run(const Query& query, bool is_incremental, unsigned repeat, F prepare) {
    std::vector<double> seconds;
    Answer last;
    for (unsigned i = 0; i < repeat; ++i) {
      FJORD_TRY(prepare());
      FJORD_TRY_ASSIGN(last, run_job(connection_, query.spec, 0, is_incremental));
      seconds.push_back(last.seconds);
    }
    last.seconds = quantile(seconds, 0.5);
    return last;
  }

  /// Runs incremental jobs, each after `prepare()`, and compares the last rows with those of a run that reads
  /// everything.
  template <typename F>
  Status check(const Query& query, const char* what, unsigned repeat, F prepare) {
    FJORD_TRY_ASSIGN(Answer answer, run(query, true, repeat, prepare));
    FJORD_TRY_ASSIGN(Answer whole, run(query, false, options_.repeat, [] { return Status::ok(); }));
    auto rows = answer.rows();
    auto expected = whole.rows();
    std::sort(rows.begin(), rows.end());
    std::sort(expected.begin(), expected.end());
    if (rows != expected) {
      return Status(StatusCode::Corruption, fmt::format("refresh: {}, {}: other rows", query.name, what));
    }
    print_metric("refresh", fmt::format("{}_{}_s", query.name, what), answer.seconds, "s");
    say(fmt::format(
        "refresh: {}, {}: {} of {} documents read, {} buckets; {:.1f} ms, {:.1f} % of the {:.1f} ms of a "
        "run that reads everything; {:.1f} ms in map",
        query.name, what, answer.status.documents_read - answer.status.documents_reused, answer.status.documents_read,
        answer.status.map_tasks, answer.seconds * 1e3, 100 * answer.seconds / whole.seconds, whole.seconds * 1e3,
        static_cast<double>(answer.status.busy_us) / 1e3));
    return Status::ok();
  }

 private:
  Connection& connection_;
  const BenchOptions& options_;
};

}  // namespace

int run_refresh(Connection& connection, const ListingGenerator& generator, const BenchOptions& options) {
  const auto changed = static_cast<std::uint64_t>(static_cast<double>(options.documents) * kChanged);
  const std::vector<std::uint64_t> close = neighbours(generator, options.documents, changed);
  std::vector<std::uint64_t> numbers(options.documents);
  std::iota(numbers.begin(), numbers.end(), std::uint64_t{0});
  Random random(options.seed);
  Refresh refresh(connection, options);
  std::uint64_t seed = options.seed;
  // Replaces documents: each call puts other contents under the ids of `which`.
  const auto change = [&](const std::vector<std::uint64_t>& which) -> Status {
    FJORD_TRY_ASSIGN(const auto other, ListingGenerator::make(*connection.client().snapshot()->types(), ++seed));
    return put(connection, other, which);
  };
  for (const Query& query : queries()) {
    const auto nothing = [] { return Status::ok(); };
    const auto some = [&] {
      for (std::uint64_t i = 0; i < changed; ++i) std::swap(numbers[i], numbers[i + random.below(numbers.size() - i)]);
      return change({numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(changed)});
    };
    const auto measure = [&]() -> Status {
      FJORD_TRY(refresh.check(query, "first", 1, nothing));
      FJORD_TRY(refresh.check(query, "same", options.repeat, nothing));
      FJORD_TRY(refresh.check(query, "close", options.repeat, [&] { return change(close); }));
      return refresh.check(query, "random", options.repeat, some);
    };
    if (const Status status = measure(); !status) return fail(status);
  }
  return 0;
}

}  // namespace fjord::bench
