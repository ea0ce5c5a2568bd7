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
#include "fjord/rpc/job_messages.h"
#include "fjord/rpc/transport.h"

namespace fjord::mapreduce {

/// A key and its result as JSON.
using KeyedResult = std::pair<std::string, std::string>;

/// True if the reply has results, packed or not.
bool has_results(const rpc::ListJobsReply& reply);
/// Takes the results out of the reply, packed or not. Errors: Corruption.
Result<std::vector<KeyedResult>> take_results(rpc::ListJobsReply& reply);

/// Reads the results of a finished job, from the store or from the distributor that ran it.
///
/// `bytes_max` bounds the keys and values that are read; 0: no bound. With `window_bytes` each start() gives about so
/// many bytes of results, those after the greatest key given so far, and none at the end; 0: the first one gives all.
/// Results in the store are not in order there: each window reads them all again and keeps its part.
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
             Executor& executor, std::uint64_t bytes_max = 0, std::uint64_t window_bytes = 0);
  ~JobResults();

  /// Begins to read. Not before `done` of an earlier call was called.
  void start(Done done);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fjord::mapreduce
