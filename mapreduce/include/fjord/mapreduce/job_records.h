#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fjord/client/client_options.h"
#include "fjord/common/result.h"
#include "fjord/common/runtime.h"
#include "fjord/common/unique_function.h"
#include "fjord/mapreduce/document_sink.h"
#include "fjord/mapreduce/job_state.h"
#include "fjord/rpc/transport.h"
#include "fjord/visitors/mailbox.h"

namespace fjord::mapreduce {

/// The records of jobs. With a record a job does not depend on one process (docs/design/0010-durable-jobs.md).
///
/// Threading: callable from any thread; `done` runs once on the executor behind `reply_to`, or never if that mailbox is
/// closed.
class JobRecords {
 public:
  template <typename T>
  using Done = UniqueFunction<void(T)>;

  virtual ~JobRecords() = default;

  /// Reads the record of a job. Errors: NotFound; Corruption; those of a get.
  virtual void read(std::string job, visitors::Mailbox reply_to, Done<Result<JobState>> done) = 0;
  /// Replaces the job's record by `record` if the stored revision is `expected`; 0: if there is no record. Errors:
  /// TestAndSetFailed if the stored revision differs; those of a put, after which the old or the new record may be
  /// stored.
  virtual void write(JobState record, std::uint64_t expected, visitors::Mailbox reply_to, Done<Status> done) = 0;
  virtual void remove(std::string job, std::uint64_t expected, visitors::Mailbox reply_to, Done<Status> done) = 0;
  /// Lists all records. list_headers() reads no bodies. Records that cannot be read are left out. Errors: those of a
  /// visit.
  virtual void list(visitors::Mailbox reply_to, Done<Result<std::vector<JobState>>> done) = 0;
  virtual void list_headers(visitors::Mailbox reply_to, Done<Result<std::vector<JobRecordHeader>>> done) = 0;

  /// These three store, read and remove the results of a job, which are kept in a document beside its record.
  virtual void write_rows(std::string job, const JobRows& rows, visitors::Mailbox reply_to, Done<Status> done) = 0;
  virtual void read_rows(std::string job, visitors::Mailbox reply_to, Done<Result<JobRows>> done) = 0;
  virtual void remove_rows(std::string job, visitors::Mailbox reply_to, Done<Status> done) = 0;

  /// The sink for documents that the runner of a job puts. Lives as long as the records.
  virtual DocumentSink& sink() = 0;
};

/// Records as documents of type fjord_job in the store itself. All records are in one bucket, so that one visit finds
/// them.
///
/// Threading: as JobRecords; it has executors of its own. Lifetime: `runtime` and `transport` outlive it.
class StoredJobRecords final : public JobRecords {
 public:
  StoredJobRecords(ClientOptions options, Runtime& runtime, rpc::Transport& transport);
  ~StoredJobRecords() override;

  void read(std::string job, visitors::Mailbox reply_to, Done<Result<JobState>> done) override;
  void write(JobState record, std::uint64_t expected, visitors::Mailbox reply_to, Done<Status> done) override;
  void remove(std::string job, std::uint64_t expected, visitors::Mailbox reply_to, Done<Status> done) override;
  void list(visitors::Mailbox reply_to, Done<Result<std::vector<JobState>>> done) override;
  void list_headers(visitors::Mailbox reply_to, Done<Result<std::vector<JobRecordHeader>>> done) override;
  void write_rows(std::string job, const JobRows& rows, visitors::Mailbox reply_to, Done<Status> done) override;
  void read_rows(std::string job, visitors::Mailbox reply_to, Done<Result<JobRows>> done) override;
  void remove_rows(std::string job, visitors::Mailbox reply_to, Done<Status> done) override;
  DocumentSink& sink() override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fjord::mapreduce
