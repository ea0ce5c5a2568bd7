#pragma once

#include <string>

#include "commands/commands.h"
#include "fjord/client/connect.h"

namespace fjord::cli {

/// The objective of tuning a running cluster.
struct TuneObjective {
  double target_s = 0.02;   ///< Target p99 latency of reads and writes, in seconds.
  double scan_share = 0.2;  ///< Weight of visits in the objective, 0 to 1.
};
/// Returns the objective from --target-ms, the workload file or the defaults. Errors: those of the file.
Result<TuneObjective> tune_objective(const TuneArgs& args);

/// Observes the cluster for some periods, makes the change, observes again, and reverts the change if the objective
/// gets worse. Returns the exit code: 0 if the change stays, 8 if it was reverted.
int apply_and_watch(const TuneArgs& args, Connection& connection, const std::string& id, rpc::ChangeConfig request);

}  // namespace fjord::cli
