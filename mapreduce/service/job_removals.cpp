#include "job_removals.h"

#include <algorithm>
#include <set>
#include <utility>

#include "fjord/common/hash.h"
#include "fjord/common/log.h"
#include "task/task.h"

namespace fjord::mapreduce {
namespace {

/// Concurrent removals of expired jobs and results in one process.
constexpr std::size_t kRemovalsMax = 4;

Status not_ended(const std::string& job) {
  return {StatusCode::InvalidArgument, "the job " + job + " has not ended; cancel it first"};
}

}  // namespace

void JobRemovals::remove(const rpc::ControlJob& request, UniqueFunction<void(Status)> done) {
  const std::string& id = request.job_id;
  const bool whole = request.action == rpc::JobAction::Remove;
  const LocalJob* const known = table_.find(id);
  if (known != nullptr && !is_over(known->state.phase)) return done(not_ended(id));
  if (known == nullptr && !request.records) {
    return done(Status(StatusCode::NotFound, "there is no job " + id + " at this distributor"));
  }
  const auto [removal, is_new] = removals_.try_emplace(id);
  removal->second.waiting.push_back(std::move(done));
  if (!is_new) return;
  if (known != nullptr && !known->writer->has_record()) {  // short jobs have nothing stored
    remove_rest(JobState(known->state), whole, Status::ok());
    return;
  }
  context_.records.read(id, context_.mailbox, [this, id, whole](Result<JobState> found) {
    if (!found) return removed(id, found.error());
    if (found->finished_unix_us == 0) return removed(id, not_ended(id));
    mark_removed(std::move(*found), whole);
  });
}

/// Marks the results as removed in the record first, so that no reader takes a part of them for all.
void JobRemovals::mark_removed(JobState record, bool whole) {
  if (record.results_removed) return remove_results(record, whole);
  record.results_removed = true;
  const std::uint64_t expected = record.revision++;
  context_.records.write(record, expected, context_.mailbox, [this, record, whole](const Status& status) {
    if (!status) return removed(record.job_id, status);
    remove_results(record, whole);
  });
}

/// Removes the result documents. A failed job may also have some, put by its reduce tasks.
void JobRemovals::remove_results(const JobState& record, bool whole) {
  if (LocalJob* known = table_.find(record.job_id)) {
    known->state.results_removed = true;
    known->state.revision = record.revision;
    table_.forget_rows(*known);
  }
  const auto snapshot = context_.snapshot.get();
  if (record.output_buckets == 0 || snapshot == nullptr) return remove_rest(record, whole, Status::ok());
  visitors::VisitorSessionOptions options;
  options.library = kRemoveVisitor;
  options.parameters = {{"type", kResultType}};
  options.selection = std::string(kResultType) + ".job == \"" + record.job_id + "\"";
  options.ids_only = true;
  options.buckets = output_buckets(record.output_base, record.output_buckets, snapshot->distribution_bits());
  options.follow_bits = true;
  options.deduplicate = false;
  options.bucket_tries_max = context_.options.task_tries_max;
  options.no_progress_limit = context_.options.no_progress_limit;
  visitors::VisitorSessionCallbacks callbacks;
  callbacks.on_finished = [this, record, whole](const Status& status) {
    // Deferred: the session is about to be destroyed and must not be on the stack.
    context_.executor.post([this, record, whole, status] { remove_rest(record, whole, status); });
  };
  auto& session = removals_.at(record.job_id).session;
  session = std::make_unique<visitors::VisitorSession>(std::move(options), std::move(callbacks), context_.transport,
                                                       context_.snapshot, context_.clock, context_.random.fork(),
                                                       context_.executor);
  session->start();
}

void JobRemovals::remove_rest(const JobState& record, bool whole, const Status& status) {
  const std::string id = record.job_id;
  if (!status) return removed(id, status.with_context("removing the results of " + id));
  if (const LocalJob* known = table_.find(id); known != nullptr && !known->writer->has_record()) {
    forget(id, whole);
    return removed(id, Status::ok());
  }
  context_.records.remove_rows(id, context_.mailbox, [this, id, whole, revision = record.revision](const Status& rows) {
    if (!rows && rows.code() != StatusCode::NotFound) return removed(id, rows);
    if (!whole) {
      forget(id, whole);
      return removed(id, Status::ok());
    }
    context_.records.remove(id, revision, context_.mailbox, [this, id, whole](const Status& gone) {
      const bool is_gone = gone.is_ok() || gone.code() == StatusCode::NotFound;
      if (is_gone) forget(id, whole);
      removed(id, is_gone ? Status::ok() : gone);
    });
  });
}

/// Forgets a job of this process, or only its results if `whole` is false. Does nothing if the job is not of this
/// process.
void JobRemovals::forget(const std::string& id, bool whole) {
  LocalJob* const known = table_.find(id);
  if (known == nullptr) return;
  table_.forget_rows(*known);
  known->state.results_removed = true;
  if (whole) table_.extract(id);
}

void JobRemovals::removed(const std::string& id, const Status& status) {
  auto removal = removals_.extract(id);
  if (removal.empty()) return;
  if (status) expired_.insert(id);
  for (auto& done : removal.mapped().waiting) done(status);
}

/// True if this process has to remove the expired job or results: it ran the job and may have the results in memory. If
/// the owner is down, a hash of the id chooses one of the distributors that are up.
bool JobRemovals::is_responsible_for(const std::string& id, const std::string& owner) const {
  const auto snapshot = context_.snapshot.get();
  std::vector<std::string> up;
  for (std::size_t i = 0; i < snapshot->info().distributor_addresses.size(); ++i) {
    const auto index = static_cast<std::uint16_t>(i);
    if (snapshot->state().is_up({NodeType::Distributor, index})) up.push_back("distributor." + std::to_string(i));
  }
  if (std::find(up.begin(), up.end(), owner) != up.end()) return owner == context_.options.name;
  return !up.empty() && up[hash64(id) % up.size()] == context_.options.name;
}

/// Removes results older than the retention time, and the oldest jobs beyond the number of records that are kept.
void JobRemovals::expire(const std::vector<JobRecordHeader>& records) {
  std::vector<const JobRecordHeader*> ended;
  for (const JobRecordHeader& record : records) {
    if (record.finished_unix_us != 0) ended.push_back(&record);
  }
  std::sort(ended.begin(), ended.end(), [](const auto* a, const auto* b) {
    return std::pair(a->finished_unix_us, a->job_id) < std::pair(b->finished_unix_us, b->job_id);
  });
  const std::size_t surplus = ended.size() - std::min(ended.size(), context_.options.records_kept);
  const Duration kept = milliseconds(context_.results_retention.value());
  const std::int64_t now = context_.clock.wall_now().us;
  std::set<std::string> known;
  for (std::size_t i = 0; i < ended.size(); ++i) {
    const std::string& id = ended[i]->job_id;
    const bool is_old = kept > Duration(0) && now - ended[i]->finished_unix_us >= kept.count();
    if (i < surplus) {
      remove_expired(*ended[i], rpc::JobAction::Remove);
    } else if (is_old && !expired_.contains(id)) {
      remove_expired(*ended[i], rpc::JobAction::RemoveResults);
    }
    known.insert(id);
  }
  std::erase_if(expired_, [&known](const std::string& id) { return !known.contains(id); });
}

void JobRemovals::remove_expired(const JobRecordHeader& record, rpc::JobAction action) {
  const std::string& id = record.job_id;
  const bool has_room = removals_.size() < kRemovalsMax && !removals_.contains(id);
  if (!has_room || !is_responsible_for(id, record.owner)) return;
  rpc::ControlJob request;
  request.job_id = id;
  request.action = action;
  request.records = true;
  remove(request, [id](const Status& status) {
    if (!status) log::warning("job", "{} and its results cannot be removed: {}", id, status.to_string());
  });
}

}  // namespace fjord::mapreduce
