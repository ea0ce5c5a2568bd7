#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fjord/visitors/visitor_session.h"
#include "job_table.h"

namespace fjord::mapreduce {

/// Removes ended jobs and their results, on request or when they have expired.
///
/// Threading: confined to the service's executor. Lifetime: the arguments of the constructor outlive it.
class JobRemovals {
 public:
  JobRemovals(ServiceContext& context, JobTable& table) : context_(context), table_(table) {}

  void remove(const rpc::ControlJob& request, UniqueFunction<void(Status)> done);
  /// Removes results older than the retention time, and the oldest jobs beyond the number of records that are kept.
  void expire(const std::vector<JobRecordHeader>& records);

 private:
  /// An ended job that is being removed, entirely or only its results.
  struct Removal {
    std::vector<UniqueFunction<void(Status)>> waiting;
    std::unique_ptr<visitors::VisitorSession> session;
  };

  void mark_removed(JobState record, bool whole);
  void remove_results(const JobState& record, bool whole);
  void remove_rest(const JobState& record, bool whole, const Status& status);
  void forget(const std::string& id, bool whole);
  void removed(const std::string& id, const Status& status);
  bool is_responsible_for(const std::string& id, const std::string& owner) const;
  void remove_expired(const JobRecordHeader& record, rpc::JobAction action);

  ServiceContext& context_;
  JobTable& table_;
  std::map<std::string, Removal> removals_;
  std::set<std::string> expired_;  ///< Jobs whose results are known to be removed.
};

}  // namespace fjord::mapreduce
