#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace fjord {

struct MakeLogOptions {
  std::string source;            ///< File of queries; empty: queries are drawn by Zipf's law.
  std::size_t queries = 20'000;  ///< Number of queries in each log.
  double scale = 1.0;            ///< Ratio of a list's pages in the index to its pages in the log.
  std::uint64_t seed = 1;
  std::string output;  ///< Folder for train.txt, test.txt and feed.jsonl.
};
/// Writes logs of queries, and documents whose lists of keywords have the sizes that the logs are made for.
int make_log(const MakeLogOptions& options);

struct ReplayOptions {
  std::string cluster;
  std::string queries;         ///< File with one query in each line.
  std::size_t in_flight = 16;  ///< Number of searches in flight.
  std::size_t skip = 0;        ///< Number of searches before the counting begins.
};
/// Searches for each query and prints, as JSON, rates, latencies, a hash of all answers, and what each node read.
int replay(const ReplayOptions& options);

}  // namespace fjord
