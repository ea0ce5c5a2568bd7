#pragma once

#include <string>

#include "commands.h"
#include "fjord/client/connect.h"

namespace fjord::cli {

/// What is good, of a running cluster.
struct TuneObjective {
  double target_s = 0.02;   ///< p99 of reads and writes.
  double scan_share = 0.2;  ///< How much visits matter.
};
/// From --target-ms, the workload file, or the defaults. Errors: those of the file.
Result<TuneObjective> tune_objective(const TuneArgs& args);

/// Looks at the cluster for some periods, makes the change, goes on looking, and takes it back if the objective is
/// worse. Returns the exit code: 0 if it stays, 8 if it was taken back.
int apply_and_watch(const TuneArgs& args, Connection& connection, const std::string& id, rpc::ChangeConfig request);

}  // namespace fjord::cli
