// fjord-bench: the client side of the benchmarks. bench/run.sh starts a cluster around it.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <string>

#include "benchmarks.h"
#include "fjord/client/connect.h"
#include "fjord/common/fatal_signals.h"
#include "report.h"

namespace {

using fjord::bench::BenchOptions;
using fjord::bench::ListingGenerator;
using Benchmark = std::function<int(fjord::Connection&, const ListingGenerator&, const BenchOptions&)>;

constexpr int kUsage = 2;

int run(const std::string& cluster, const BenchOptions& options, const Benchmark& benchmark) {
  auto connection = fjord::open_connection(cluster);
  if (!connection) return fjord::bench::fail(connection.error());
  fjord::AsyncClient& client = (*connection)->client();
  if (fjord::Status status = (*connection)->sync().refresh_schemas(); !status) return fjord::bench::fail(status);
  if (!options.spec.empty()) return fjord::bench::run_query(**connection, options);
  const auto types = client.snapshot()->types();
  const auto generator = ListingGenerator::make(*types, options.seed);
  if (!generator) return fjord::bench::fail(generator.error());
  return benchmark(**connection, *generator, options);
}

/// Adds a command for each benchmark, which sets `chosen` to it.
void add_benchmarks(CLI::App& app, BenchOptions& options, Benchmark& chosen) {
  const auto add = [&](const char* name, const char* help, Benchmark function) {
    CLI::App* command = app.add_subcommand(name, help);
    command->callback([&chosen, function = std::move(function)] { chosen = function; });
    return command;
  };
  add("feed", "Stores all documents", fjord::bench::run_feed)
      ->add_option("--window", options.window, "Operations under way at once; 0: the feeder's default");
  CLI::App* get = add("get", "Reads random documents, with 1, 16 and 64 reads under way", fjord::bench::run_get);
  get->add_option("--seconds", options.seconds, "Length of each measurement")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  get->add_option("--operations", options.operations, "Number of reads to end after, if that is earlier; 0: no limit");
  CLI::App* load =
      add("load",
          "Gets and puts documents that were fed, at given rates; writes a line of CSV for each operation: "
          "when it was due (CLOCK_MONOTONIC), kind, time from then on, status, attempts",
          fjord::bench::run_load);
  load->add_option("--gets", options.gets_per_second, "Gets a second, whether or not earlier ones have ended");
  load->add_option("--puts", options.puts_per_second, "Puts a second, likewise");
  load->add_option("--in-flight", options.in_flight, "Besides: gets that are always under way, of the kind \"closed\"");
  load->add_option("--put-share", options.put_share, "Of these the share that puts instead, of the kind \"closed put\"")
      ->check(CLI::Range(0.0, 1.0));
  load->add_option("--seconds", options.load_seconds, "How long; 0: until standard input ends")->capture_default_str();
  load->add_option("--output", options.output, "The file of CSV")->capture_default_str();
  CLI::App* query = add("query",
                        "Runs an aggregation of any documents, from submitting it until all rows are here, and prints "
                        "how long it took each time",
                        {});
  query->add_option("--spec", options.spec, "The specification as JSON (docs/reference/aggregate.md)")->required();
  query->add_option("--visitors-per-node", options.visitors_per_node, "0: as many as the system likes");
  query->add_option("--output", options.output, "Where the rows of the last time go")->capture_default_str();
  for (CLI::App* command : {query, add("visit", "Visits all documents", fjord::bench::run_visit),
                            add("citycount", "Counts the documents by city with a job", fjord::bench::run_citycount),
                            add("refresh", "Aggregates incrementally, with 1 % of the documents changed in between",
                                fjord::bench::run_refresh),
                            add("aggregate", "Counts documents and adds up prices by city and by another key",
                                fjord::bench::run_aggregate)}) {
    command->add_option("--repeat", options.repeat, "How often; the median counts")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
  }
}

}  // namespace

int main(int argc, char** argv) {
  fjord::report_fatal_signals("fjord-bench");
  CLI::App app(
      "Measures a Fjord cluster that has the schema bench/listing.sd. Prints lines `benchmark metric value unit`; "
      "exits with 1 if an answer is not what was fed. The same --documents and --seed belong to one feed and what "
      "follows it.\n\n"
      "Example: fjord-bench feed --cluster 127.0.0.1:19100 --documents 300000 --seed 1",
      "fjord-bench");
  app.require_subcommand(1);
  app.fallthrough();
  std::string cluster = "127.0.0.1:19100";
  BenchOptions options;
  app.add_option("--cluster", cluster, "Addresses of distributors")
      ->envname("FJORD_CLUSTER")
      ->type_name("HOST:PORT,...")
      ->capture_default_str();
  app.add_option("--documents", options.documents, "How many documents")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "What the documents are made from")->capture_default_str();

  Benchmark benchmark;
  add_benchmarks(app, options, benchmark);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  return run(cluster, options, benchmark);
}
