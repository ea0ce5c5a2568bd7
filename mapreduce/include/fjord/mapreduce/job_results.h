#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/executor.h"
#include "fjord/common/random.h"
#include "fjord/common/result.h"
#include "fjord/common/unique_function.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"

namespace fjord::mapreduce {

/// A key and its result as JSON.
using KeyedResult = std::pair<std::string, std::string>;

/// Reads the results of a job that is done, from the store or from the distributor that ran it.
///
/// Threading: confined to `executor`. Lifetime: destroying it ends the reading without a callback; may be done inside
/// `done`. `transport`, `snapshot` and `clock` outlive it.
class JobResults {
 public:
  /// By rising key. Errors: those of a visit; InvalidArgument if the job is not done; Corruption if there are not as
  /// many results as the job put (somebody removed some);
  /// NotFound if the distributor that held them is gone or has forgotten them.
  using Done = UniqueFunction<void(Result<std::vector<KeyedResult>>)>;

  JobResults(rpc::JobStatus job, rpc::Transport& transport, rpc::SnapshotHolder& snapshot, Clock& clock, Random random,
             Executor& executor);
  ~JobResults();

  void start(Done done);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fjord::mapreduce
