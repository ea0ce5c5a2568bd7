#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace fjord {

struct MakeLogOptions {
  std::string source;            ///< File of queries; empty: queries by Zipf's law.
  std::size_t queries = 20'000;  ///< In each log.
  double scale = 1.0;            ///< Pages of the index over those of the log's word sizes.
  std::uint64_t seed = 1;
  std::string output;  ///< Folder for train.txt, test.txt and feed.jsonl.
};
/// Writes logs of queries, and documents whose lists of keywords have the sizes that the logs are made for.
int make_log(const MakeLogOptions& options);

struct ReplayOptions {
  std::string cluster;
  std::string queries;         ///< File with a query a line.
  std::size_t in_flight = 16;  ///< Searches at the same time.
  std::size_t skip = 0;        ///< Searches before the counting begins.
};
/// Searches for each query and prints, as JSON, rates, latencies, a hash of all answers, and what each node read.
int replay(const ReplayOptions& options);

}  // namespace fjord
