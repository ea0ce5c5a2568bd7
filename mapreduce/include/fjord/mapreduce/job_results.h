#pragma once

#include <cstdint>
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

/// Reads the results of a finished job, from the store or from the distributor that ran it.
///
/// `bytes_max` bounds the keys and values that are read; 0: no bound.
///
/// Threading: confined to `executor`. Lifetime: destroying it ends the reading without a callback and is allowed inside
/// `done`. `transport`, `snapshot` and `clock` outlive it.
class JobResults {
 public:
  /// Receives the results by rising key. Errors: those of a visit; InvalidArgument if the job is not done; NotFound if
  /// its results were removed, or the distributor that held them is gone or has dropped them; Corruption if the number
  /// of results differs from the number that the job put (some were removed or are malformed); TooLarge if there are
  /// more bytes than `bytes_max`.
  using Done = UniqueFunction<void(Result<std::vector<KeyedResult>>)>;

  JobResults(rpc::JobStatus job, rpc::Transport& transport, rpc::SnapshotHolder& snapshot, Clock& clock, Random random,
             Executor& executor, std::uint64_t bytes_max = 0);
  ~JobResults();

  void start(Done done);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fjord::mapreduce
