#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "listing_generator.h"

namespace fjord {
class Connection;
}

/// The benchmarks. Each prints its metrics and returns the exit code: 1 if any answer was wrong.
namespace fjord::bench {

/// Options of the benchmarks. `documents` and `seed` say which documents are fed and expected. The comment of another
/// option begins with the benchmarks that use it.
struct BenchOptions {
  std::uint64_t documents = 300'000;
  std::uint64_t seed = 1;
  std::size_t window = 0;              ///< Feed: operations in flight; 0: the feeder's default.
  double seconds = 5;                  ///< Get: duration of each measurement.
  std::uint64_t operations = 0;        ///< Get: number of operations after which a measurement ends early; 0: no limit.
  unsigned repeat = 3;                 ///< Visit, citycount, aggregate: number of runs; the median counts.
  unsigned visitors_per_node = 0;      ///< Query: visitors on each storage node; 0: the system's default.
  std::string spec;                    ///< Query: an aggregation as in docs/reference/aggregate.md.
  double gets_per_second = 0;          ///< Load: rate of gets.
  double puts_per_second = 0;          ///< Load: rate of puts.
  std::size_t in_flight = 0;           ///< Load: number of additional gets that are always in flight.
  double put_share = 0;                ///< Load: share of these additional operations that are puts instead of gets.
  double load_seconds = 0;             ///< Load: duration; 0: until standard input ends.
  std::string output = "/dev/stdout";  ///< Query: file for the rows. Load: file for the lines.
};

/// Stores all documents, which the other benchmarks need. The documents are made in memory before the measurement.
int run_feed(Connection& connection, const ListingGenerator& generator, const BenchOptions& options);
/// Reads random documents, with 1 and with 64 reads in flight, and compares each with the document that was fed.
int run_get(Connection& connection, const ListingGenerator& generator, const BenchOptions& options);
/// Visits all documents and compares each with the document that was fed.
int run_visit(Connection& connection, const ListingGenerator& generator, const BenchOptions& options);
/// Counts the documents by city with a job and compares the counts with those of the fed documents.
int run_citycount(Connection& connection, const ListingGenerator& generator, const BenchOptions& options);
/// Aggregates by two keys, one of 1,000 and one of 25,000 values, and compares the rows with the fed documents.
int run_aggregate(Connection& connection, const ListingGenerator& generator, const BenchOptions& options);
/// Runs incremental aggregations: a first one, one without changes, and two after 1 % of the documents changed, in few
/// buckets and in all. Compares the rows each time with those of a run that reads everything. Leaves the changed
/// documents behind.
int run_refresh(Connection& connection, const ListingGenerator& generator, const BenchOptions& options);
/// Runs one aggregation of any documents several times, and writes the rows of the last run to options.output.
int run_query(Connection& connection, const BenchOptions& options);
/// Sends puts (of fed documents) and gets at fixed rates, whether or not answers arrive, and writes one line for each
/// operation when it has ended.
int run_load(Connection& connection, const ListingGenerator& generator, const BenchOptions& options);

}  // namespace fjord::bench
