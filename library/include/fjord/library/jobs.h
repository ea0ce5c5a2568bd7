#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/result.h"

namespace fjord {

class ClientCore;

/// Where the rows of a pass are stored as documents.
struct JobTarget {
  std::string type = {};  ///< Document type; empty: the rows are not stored.
  std::string name_space = {};
  std::string name = {};  ///< Jobs with the same target and name replace each other's documents.
};

/// One pass of a job: one MapReduce.
struct JobPassRequest {
  std::string application = {};  ///< "wordcount", an application of a plugin, or "script" with the parameter `script`.
  std::string type = {};  ///< Document type that the first pass reads; a later pass reads the previous one's rows.
  std::string selection = {};
  std::map<std::string, std::string> parameters = {};
  JobTarget into = {};
};

struct JobRequest {
  std::vector<JobPassRequest> passes = {};           ///< At least one.
  std::map<std::string, std::string> settings = {};  ///< Limits: {"cpu_max", "2"}, {"priority", "background"}.
  bool incremental = false;
  std::string output_namespace = {};  ///< Namespace of the result documents; empty: "results".
};

enum class JobState : std::uint8_t { Queued, Running, Paused, Orphaned, Done, Failed, Cancelled };
std::string_view to_string(JobState state);

struct JobInfo {
  std::string id;
  JobState state = JobState::Queued;
  std::string phase;  ///< "map", "reduce", "put", ...
  Status error;       ///< Error of a failed job.
  std::string application;
  std::string type;
  std::string selection;
  std::size_t passes = 1;
  std::size_t passes_done = 0;
  double fraction_done = 0;  ///< 0 to 1.
  Duration left{0};          ///< Estimated remaining time of the phase; 0: no estimate.
  std::uint64_t documents_read = 0;
  std::uint64_t dead_letters = 0;  ///< Documents that the map function failed on.
  std::uint64_t results = 0;
  std::string owner;  ///< "distributor.1"
  std::int64_t submitted_unix_us = 0;
  std::int64_t finished_unix_us = 0;  ///< 0: the job has not ended.

  bool has_ended() const { return state >= JobState::Done; }
};

/// A result: a key and its value as JSON.
using JobRow = std::pair<std::string, std::string>;

/// MapReduce jobs of a cluster.
///
/// Threading: any thread. Every member blocks until the cluster answers. Lifetime: the client must outlive it.
class Jobs {
 public:
  explicit Jobs(ClientCore& core) : core_(&core) {}

  /// Starts a job and returns its id. The job does not depend on the calling program.
  /// Errors: InvalidArgument, UnknownType, InvalidSelection, which name the faulty part of the request.
  Result<std::string> submit(const JobRequest& request);
  /// Returns all jobs, oldest first. Errors: that of a distributor that does not answer, because an incomplete list
  /// would look complete.
  Result<std::vector<JobInfo>> list();
  /// Errors: NotFound.
  Result<JobInfo> status(const std::string& id);
  /// Waits until the job has ended and calls `on_progress` from time to time. A failed job is a value with
  /// JobInfo::error set. Errors: those of the calls that ask for the job.
  Result<JobInfo> wait(const std::string& id, const std::function<void(const JobInfo&)>& on_progress = {});
  Status pause(const std::string& id);
  Status resume(const std::string& id);
  Status cancel(const std::string& id);
  Status set(const std::string& id, const std::map<std::string, std::string>& settings);
  /// Returns all results of a job that is Done, by ascending key. Errors: InvalidArgument if the job is not Done;
  /// NotFound.
  Result<std::vector<JobRow>> results(const std::string& id);
  /// Removes an ended job and its results.
  Status remove(const std::string& id);

 private:
  ClientCore* core_;
};

}  // namespace fjord
