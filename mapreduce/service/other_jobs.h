#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "job_removals.h"
#include "running_jobs.h"

namespace fjord::mapreduce {

/// Looks through the records of all jobs from time to time, and takes over jobs whose processes have ended.
///
/// Threading: confined to the service's executor. Lifetime: the arguments of the constructor outlive it.
class OtherJobs {
 public:
  OtherJobs(ServiceContext& context, JobTable& table, RunningJobs& running, JobRemovals& removals)
      : context_(context), table_(table), running_(running), removals_(removals) {}

  /// Begins to scan the records.
  void begin() { scan_later(std::min<Duration>(context_.options.scan_interval, seconds(1))); }

 private:
  /// State of another process's job at the last scan.
  struct Seen {
    std::uint64_t epoch = 0;
    std::uint64_t revision = 0;
    MonotonicTime since;
  };

  void scan_later(Duration wait);
  void scan();
  void on_scanned(const std::vector<JobRecordHeader>& records);
  void note_seen(const std::vector<JobRecordHeader>& records);
  void end_elsewhere(const JobRecordHeader& record, const LocalJob& job);
  bool has_no_owner(const JobRecordHeader& record);
  void take_over(const std::string& id, std::uint64_t revision);
  void taken(JobState record);

  ServiceContext& context_;
  JobTable& table_;
  RunningJobs& running_;
  JobRemovals& removals_;
  std::map<std::string, Seen> seen_;
  std::set<std::string> taking_;
};

}  // namespace fjord::mapreduce
