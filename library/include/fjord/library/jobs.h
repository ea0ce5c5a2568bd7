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

/// Where the rows of a pass become documents.
struct JobTarget {
  std::string type = {};  ///< Document type; empty: nowhere.
  std::string name_space = {};
  std::string name = {};  ///< Jobs with the same target and name replace each other's documents.
};

/// One MapReduce.
struct JobPassRequest {
  std::string application = {};  ///< "wordcount", one of a plugin, or "script" with the parameter `script`.
  std::string type = {};         ///< Of the documents; passes after the first read the rows of the one before.
  std::string selection = {};
  std::map<std::string, std::string> parameters = {};
  JobTarget into = {};
};

struct JobRequest {
  std::vector<JobPassRequest> passes = {};           ///< At least one.
  std::map<std::string, std::string> settings = {};  ///< Limits: {"cpu_max", "2"}, {"priority", "background"}.
  bool incremental = false;
  std::string output_namespace = {};  ///< Of result documents; empty: "results".
};

enum class JobState : std::uint8_t { Queued, Running, Paused, Orphaned, Done, Failed, Cancelled };
std::string_view to_string(JobState state);

struct JobInfo {
  std::string id;
  JobState state = JobState::Queued;
  std::string phase;  ///< "map", "reduce", "put", ...
  Status error;       ///< Of a job that failed.
  std::string application;
  std::string type;
  std::string selection;
  std::size_t passes = 1;
  std::size_t passes_done = 0;
  double fraction_done = 0;  ///< 0 to 1.
  Duration left{0};          ///< Estimate for the present phase; 0: none.
  std::uint64_t documents_read = 0;
  std::uint64_t dead_letters = 0;  ///< Documents that the map function failed on.
  std::uint64_t results = 0;
  std::string owner;  ///< "distributor.1"
  std::int64_t submitted_unix_us = 0;
  std::int64_t finished_unix_us = 0;  ///< 0: it has not ended.

  bool has_ended() const { return state >= JobState::Done; }
};

/// A result: a key and its value as JSON.
using JobRow = std::pair<std::string, std::string>;

/// MapReduce jobs of a cluster.
///
/// Threading: any thread. Every member waits for the cluster. Lifetime: the client outlives it.
class Jobs {
 public:
  explicit Jobs(ClientCore& core) : core_(&core) {}

  /// Starts a job and returns its id; it goes on without this program.
  /// Errors: InvalidArgument, UnknownType, InvalidSelection that say what in the request is wrong.
  Result<std::string> submit(const JobRequest& request);
  /// Oldest first. Errors: if a distributor does not answer, as a list with gaps would look complete.
  Result<std::vector<JobInfo>> list();
  /// Errors: NotFound.
  Result<JobInfo> status(const std::string& id);
  /// Waits until the job has ended, and calls `on_progress` now and then. A job that failed is a value with its error;
  /// errors of the result are those of asking.
  Result<JobInfo> wait(const std::string& id, const std::function<void(const JobInfo&)>& on_progress = {});
  Status pause(const std::string& id);
  Status resume(const std::string& id);
  Status cancel(const std::string& id);
  Status set(const std::string& id, const std::map<std::string, std::string>& settings);
  /// All results of a job that is done, by rising key. Errors: InvalidArgument if it is not done; NotFound.
  Result<std::vector<JobRow>> results(const std::string& id);
  /// Removes a job that has ended, with its results.
  Status remove(const std::string& id);

 private:
  ClientCore* core_;
};

}  // namespace fjord
