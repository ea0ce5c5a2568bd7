#include <fmt/format.h>
#include <utility>
#include <vector>

#include "benchmarks.h"
#include "fjord/client/connect.h"
#include "fjord/client/feeder.h"
#include "report.h"

namespace fjord::bench {

namespace {

struct Prepared {
  std::vector<rpc::Operation> operations;
  std::uint64_t document_bytes = 0;
};

Prepared make_operations(const ListingGenerator& generator, std::uint64_t documents) {
  Prepared prepared;
  prepared.operations.resize(documents);
  for (std::uint64_t number = 0; number < documents; ++number) {
    EncodedDocument document = generator.document(number);
    prepared.document_bytes += document.size();
    rpc::Operation& operation = prepared.operations[number];
    operation.kind = rpc::OperationKind::Put;
    operation.id = generator.id(number);
    operation.header = std::move(document.header);
    operation.body = std::move(document.body);
  }
  return prepared;
}

}  // namespace

int run_feed(Connection& connection, const ListingGenerator& generator, const BenchOptions& options) {
  const Stopwatch preparation;
  Prepared prepared;
  prepare([&] { prepared = make_operations(generator, options.documents); });
  say(fmt::format("feed: {} documents of {} bytes made in {:.1f} s", options.documents,
                  prepared.document_bytes / options.documents, preparation.seconds()));

  Feeder::Options feed;
  if (options.window != 0) feed.window_operations = options.window;
  Feeder feeder(connection.client(), std::move(feed));
  const CpuStopwatch cpu;
  const Stopwatch watch;
  for (rpc::Operation& operation : prepared.operations) feeder.submit(std::move(operation));
  feeder.flush();
  const double seconds = watch.seconds();
  const double cpu_seconds = cpu.seconds();

  const FeedStats stats = feeder.stats();
  if (stats.ok != options.documents) {
    std::string text = fmt::format("feed: {} of {} documents were acknowledged; {} in doubt", stats.ok,
                                   options.documents, stats.in_doubt);
    for (const auto& [code, count] : stats.failed) text += fmt::format("; {} {}", count, to_string(code));
    return fail(text);
  }
  print_metric("feed", "docs_per_s", static_cast<double>(stats.ok) / seconds, "1/s");
  print_metric("feed", "MB_per_s", static_cast<double>(prepared.document_bytes) / 1e6 / seconds, "MB/s");
  print_metric("feed", "time_s", seconds, "s");
  print_metric("feed", "p50_ms", stats.latency_p50_seconds * 1e3, "ms");
  print_metric("feed", "p99_ms", stats.latency_p99_seconds * 1e3, "ms");
  print_metric("feed", "client_cpu_s", cpu_seconds, "s");
  if (stats.retried != 0) say(fmt::format("feed: {} attempts were repeated", stats.retried));
  return 0;
}

}  // namespace fjord::bench
