#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fjord/balancer/trace.h"
#include "fjord/common/result.h"
#include "fjord/library/balancing.h"

namespace fjord::cli {

/// Loads of a cluster, round by round, as `fjord balance record` writes them to a file.
///
/// The file has a heading "#fjord-balance 1", then "#buckets N nodes N redundancy N", then for each round a line
/// "round N" and a line "BUCKET READS WRITES" (operations a second) for each bucket that was used.
struct RecordedLoads {
  struct Round {
    std::vector<double> operations;  ///< Operations per second, by bucket.
    double reads = 0;
    double all = 0;
  };
  std::uint32_t buckets = 0;
  std::size_t nodes = 0;
  unsigned redundancy = 1;
  std::vector<Round> rounds;

  /// Returns the mean over all rounds of the operations per second.
  double operations() const;
};

/// Returns the heading of a file for a cluster with this status.
std::string record_heading(const BalanceStatus& status);
/// Returns the lines of one round.
std::string record_round(const BalanceStatus& status);
/// Reads a file. Errors: NotFound; InvalidArgument with the line that is malformed.
Result<RecordedLoads> read_record(const std::string& path);

/// Returns a trace that repeats the recorded rounds. `loads` must outlive it.
std::unique_ptr<balancer::Trace> recorded_trace(const RecordedLoads& loads);

}  // namespace fjord::cli
