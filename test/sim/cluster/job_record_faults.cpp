#include "job_record_faults.h"

#include <memory>
#include <utility>

#include "fjord/visitors/session_cursor.h"

namespace fjord::sim {

void FaultyJobRecords::read(std::string job, visitors::Mailbox reply_to, Done<Result<mapreduce::JobState>> done) {
  auto answer = std::make_shared<Done<Result<mapreduce::JobState>>>(std::move(done));
  records_.read(std::move(job), std::move(reply_to), [this, answer](Result<mapreduce::JobState> found) {
    if (found) change(*found);
    (*answer)(std::move(found));
  });
}

void FaultyJobRecords::write(mapreduce::JobState record, std::uint64_t expected, visitors::Mailbox reply_to,
                             Done<Status> done) {
  written_[record.job_id] = record;
  records_.write(std::move(record), expected, std::move(reply_to), std::move(done));
}

void FaultyJobRecords::change(mapreduce::JobState& found) const {
  if (bug_ == Bug::LoseDeadLetters) found.dead_letters.clear();
  const bool has_cursor = found.phase == rpc::JobPhase::Map && !found.resume.empty();
  if (bug_ == Bug::CountAgainAfterTakeover && has_cursor) found.resume = visitors::SessionCursor().to_text();
  const auto mine = written_.find(found.job_id);
  if (bug_ != Bug::IgnoreOwners || mine == written_.end()) return;
  found.owner = mine->second.owner;
  found.owner_id = mine->second.owner_id;
  found.epoch = mine->second.epoch;
}

}  // namespace fjord::sim
