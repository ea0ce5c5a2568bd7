#include "other_jobs.h"

#include <utility>

#include "fjord/cluster/node.h"
#include "fjord/common/log.h"
#include "fjord/mapreduce/passes.h"

namespace fjord::mapreduce {

void OtherJobs::scan_later(Duration wait) {
  // A random delay keeps distributors from scanning at the same time.
  const auto random_part = context_.random.below(static_cast<std::uint64_t>(wait.count()) / 4 + 1);
  context_.executor.post_after(wait + Duration(random_part), [this] { scan(); });
}

void OtherJobs::scan() {
  if (context_.fresh_snapshot() == nullptr) return scan_later(context_.options.scan_interval);
  context_.records.list_headers(context_.mailbox, [this](const Result<std::vector<JobRecordHeader>>& records) {
    if (records) on_scanned(*records);
    scan_later(context_.options.scan_interval);
  });
}

void OtherJobs::on_scanned(const std::vector<JobRecordHeader>& records) {
  note_seen(records);
  for (const JobRecordHeader& record : records) {
    if (seen_.contains(record.job_id) && has_no_owner(record)) take_over(record.job_id, record.revision);
    const LocalJob* const mine = table_.find(record.job_id);
    if (record.finished_unix_us != 0 || mine == nullptr || mine->writer->has_record()) continue;
    if (is_over(mine->state.phase)) end_elsewhere(record, *mine);
  }
  removals_.expire(records);
}

void OtherJobs::note_seen(const std::vector<JobRecordHeader>& records) {
  std::map<std::string, Seen> seen;
  for (const JobRecordHeader& record : records) {
    if (record.finished_unix_us != 0 || table_.contains(record.job_id)) continue;
    const auto before = seen_.find(record.job_id);
    const bool is_same =
        before != seen_.end() && before->second.epoch == record.epoch && before->second.revision == record.revision;
    seen[record.job_id] = is_same ? before->second : Seen{record.epoch, record.revision, context_.clock.now()};
  }
  seen_ = std::move(seen);
}

/// Ends the record that another process has written of a job which ended here without a record. The client had found no
/// owner and submitted the job again, to this process, while the other process was alive. The other process drops the
/// job at its next write. If this write fails, the next scan repeats it.
void OtherJobs::end_elsewhere(const JobRecordHeader& record, const LocalJob& job) {
  log::info("job", "{} has ended here; its record says so, and {} drops it", record.job_id, record.owner);
  JobState ended = running_.record_of(job);
  ended.epoch = record.epoch + 1;
  ended.revision = record.revision + 1;
  auto write = [this, ended, expected = record.revision] {
    context_.records.write(ended, expected, context_.mailbox, [](const Status&) {});
  };
  if (!job.has_rows || job.row_bytes > context_.options.recorded_rows_bytes) return write();
  context_.records.write_rows(record.job_id, job.rows, context_.mailbox, [write](const Status& status) {
    if (status) write();
  });
}

/// True if the job's process seems to have ended: it is an earlier incarnation of this process, down, or silent for the
/// lease. If it is alive, it notices at its next write that it is no longer the owner.
bool OtherJobs::has_no_owner(const JobRecordHeader& record) {
  if (record.owner == context_.options.name) {
    if (record.owner_id != context_.own_id) return true;
  } else {
    const auto owner = NodeId::parse(record.owner);
    if (!owner || !context_.snapshot.get()->state().is_up(*owner)) return true;
  }
  return context_.clock.now() - seen_.at(record.job_id).since >= context_.options.lease;
}

void OtherJobs::take_over(const std::string& id, std::uint64_t revision) {
  if (!taking_.insert(id).second) return;
  context_.records.read(id, context_.mailbox, [this, id, revision](Result<JobState> found) {
    // Takes no job over without its document type: a process that has just started may not have the schemas yet.
    const bool is_free =
        found && found->revision == revision && found->finished_unix_us == 0 && !table_.contains(id) &&
        context_.snapshot.get()->types()->find(passes_of(found->spec).front().document_type) != nullptr;
    if (!is_free) {
      taking_.erase(id);
      return;
    }
    JobState record = std::move(*found);
    record.owner = context_.options.name;
    record.owner_id = context_.own_id;
    ++record.epoch;
    ++record.taken_over;
    ++record.revision;
    // If the answer is lost, the record may name this process although it does not run the job. The lease then expires,
    // and a scan takes the job over again.
    context_.records.write(record, revision, context_.mailbox, [this, id, record](const Status& status) {
      taking_.erase(id);
      if (status && !table_.contains(id)) taken(record);
    });
  });
}

void OtherJobs::taken(JobState record) {
  log::info("job", "{} goes on here; it was run by another process before: phase {}, {} buckets mapped in run {}: {}",
            record.job_id, static_cast<int>(record.phase), record.counts.map_tasks_done, record.run, record.resume);
  context_.metrics.taken_over.add();
  const std::string id = record.job_id;
  const std::uint64_t revision = record.revision;
  if (record.settings.empty()) record.settings = record.spec.settings;
  running_.add(std::move(record), revision);
  running_.enqueue(id);
}

}  // namespace fjord::mapreduce
