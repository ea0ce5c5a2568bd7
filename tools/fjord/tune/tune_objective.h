#pragma once

#include "commands/commands.h"

namespace fjord::cli {

/// The objective of tuning a running cluster.
struct TuneObjective {
  double target_s = 0.02;   ///< Target p99 latency of reads and writes, in seconds.
  double scan_share = 0.2;  ///< Weight of visits in the objective, 0 to 1.
};
/// Returns the objective from --target-ms, the workload file or the defaults. Errors: those of the file.
Result<TuneObjective> tune_objective(const TuneArgs& args);

}  // namespace fjord::cli
