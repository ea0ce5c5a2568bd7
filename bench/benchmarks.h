#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "listing_generator.h"

namespace fjord {
class Connection;
}

/// The benchmarks. Each prints its metrics and returns the exit code: 1 if anything was not as it must be.
namespace fjord::bench {

struct BenchOptions {
  std::uint64_t documents = 300'000;
  std::uint64_t seed = 1;
  std::size_t window = 0;          ///< Feed: pending operations; 0: the feeder's default.
  double seconds = 5;              ///< Get: of each measurement.
  std::uint64_t operations = 0;    ///< Get: end after so many, if that is earlier; 0: no limit.
  unsigned repeat = 3;             ///< Visit, citycount, aggregate: the median counts.
  unsigned visitors_per_node = 0;  ///< Query: 0: as the system likes.
  std::string spec;                ///< Query: a specification of docs/reference/aggregate.md.
  double gets_per_second = 0;      ///< Load, as are those below.
  double puts_per_second = 0;
  std::size_t in_flight = 0;  ///< Gets that are always under way, besides.
  double put_share = 0;       ///< Of these, that are puts instead.
  double load_seconds = 0;    ///< 0: until standard input ends.
  std::string output = "/dev/stdout";
};

/// Stores all documents; the others need what it leaves behind. Made ahead of time, in memory.
int run_feed(Connection& connection, const ListingGenerator& generator, const BenchOptions& options);
/// Reads random documents, with 1 and with 64 reads under way, and compares each with what was fed.
int run_get(Connection& connection, const ListingGenerator& generator, const BenchOptions& options);
/// Visits all documents and compares each with what was fed.
int run_visit(Connection& connection, const ListingGenerator& generator, const BenchOptions& options);
/// Counts the documents by city with a job and compares the counts with what was fed.
int run_citycount(Connection& connection, const ListingGenerator& generator, const BenchOptions& options);
/// Aggregates by two keys, one of 1,000 and one of 25,000 values, and compares the rows with what was fed.
int run_aggregate(Connection& connection, const ListingGenerator& generator, const BenchOptions& options);
/// Runs aggregations incrementally: for the first time, again, and after 1 % of the documents changed, in few buckets
/// and anywhere; compares the rows each time with those of a run that reads everything. Leaves changed documents
/// behind.
int run_refresh(Connection& connection, const ListingGenerator& generator, const BenchOptions& options);
/// Runs one aggregation of any documents several times, and writes the rows of the last time to options.output.
int run_query(Connection& connection, const BenchOptions& options);
/// Puts (of what was fed) and gets at given rates, whatever the answers do, and a line for each when it has ended.
int run_load(Connection& connection, const ListingGenerator& generator, const BenchOptions& options);

}  // namespace fjord::bench
