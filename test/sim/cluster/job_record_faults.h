#pragma once

#include <map>
#include <string>

#include "fjord/mapreduce/job_records.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {

/// The records of jobs as a distributor with a bug sees them:
/// - Bug::LoseDeadLetters: a job that is taken over has no dead letters.
/// - Bug::CountAgainAfterTakeover: a job that is taken over has no done bucket, yet still counts the done buckets.
/// - Bug::IgnoreOwners: a job that this process has written once always seems to be its own.
class FaultyJobRecords final : public mapreduce::JobRecords {
 public:
  FaultyJobRecords(mapreduce::JobRecords& records, Bug bug) : records_(records), bug_(bug) {}

  void read(std::string job, visitors::Mailbox reply_to, Done<Result<mapreduce::JobState>> done) override;
  void write(mapreduce::JobState record, std::uint64_t expected, visitors::Mailbox reply_to,
             Done<Status> done) override;
  void remove(std::string job, std::uint64_t expected, visitors::Mailbox reply_to, Done<Status> done) override {
    records_.remove(std::move(job), expected, std::move(reply_to), std::move(done));
  }
  void list(visitors::Mailbox reply_to, Done<Result<std::vector<mapreduce::JobState>>> done) override {
    records_.list(std::move(reply_to), std::move(done));
  }
  void list_headers(visitors::Mailbox reply_to, Done<Result<std::vector<mapreduce::JobRecordHeader>>> done) override {
    records_.list_headers(std::move(reply_to), std::move(done));
  }
  void write_rows(std::string job, const mapreduce::JobRows& rows, visitors::Mailbox reply_to,
                  Done<Status> done) override {
    records_.write_rows(std::move(job), rows, std::move(reply_to), std::move(done));
  }
  void read_rows(std::string job, visitors::Mailbox reply_to, Done<Result<mapreduce::JobRows>> done) override {
    records_.read_rows(std::move(job), std::move(reply_to), std::move(done));
  }
  void remove_rows(std::string job, visitors::Mailbox reply_to, Done<Status> done) override {
    records_.remove_rows(std::move(job), std::move(reply_to), std::move(done));
  }
  mapreduce::DocumentSink& sink() override { return records_.sink(); }

 private:
  void change(mapreduce::JobState& found) const;

  mapreduce::JobRecords& records_;
  const Bug bug_;
  std::map<std::string, mapreduce::JobRecordHeader> written_;  ///< By job: header that was written last.
};

}  // namespace fjord::sim
