#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fjord/client/feeder.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/library/files.h"
#include "record_source.h"

namespace fjord {

/// An import of several files: one thread reads, several parse, one submits in the order of the records. The run counts
/// a malformed or refused record, reports it with file and line, and continues.
class ImportRun {
 public:
  /// `options` must outlive the run.
  ImportRun(AsyncClient& client, const ImportOptions& options);
  ~ImportRun();

  /// Reads the progress file. Errors: InvalidArgument if it belongs to another input; IoError.
  Status load_progress(const std::string& input);
  /// Reads one file. Returns when all its records are submitted, or after a stop request.
  void feed(RecordSource& source);
  /// Counts a file that cannot be opened.
  void fail(const Status& status);
  /// Waits for all results.
  ImportSummary finish();

 private:
  struct Batch;
  struct Pipeline;
  void read(RecordSource& source, Pipeline& pipeline);
  void parse_batches(const RecordSource& source, Pipeline& pipeline);
  void submit_batches(Pipeline& pipeline);
  void note_done(std::uint64_t line, bool in_doubt);
  /// Writes the last line before which every record is stored or refused.
  void save_progress();
  /// Returns whether create_only left a document as it is.
  bool is_existing(const OperationOutcome& outcome) const;
  void on_result(std::uint64_t tag, const OperationOutcome& outcome);
  /// Makes a put one that creates its document. Errors: InvalidArgument for other operations.
  static Status make_create_only(rpc::Operation& operation);
  void count_failure(ImportFailure failure);
  void report(const ImportFailure& failure);
  std::uint64_t failed_total() const;

  const ImportOptions& options_;
  const MonotonicTime start_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::map<StatusCode, std::uint64_t> unread_ FJORD_GUARDED_BY(mutex_);  ///< Failures before submission.
  std::atomic<std::uint64_t> replaced_ = 0;
  std::atomic<std::uint64_t> existing_ = 0;
  std::vector<Status> unreadable_ FJORD_GUARDED_BY(mutex_);  ///< Files that could not be opened.
  std::mutex report_mutex_;                                  ///< Held while on_failure runs.
  std::vector<std::string> files_ FJORD_GUARDED_BY(mutex_);  ///< Names; a tag is index << 40 | line.
  std::string input_;
  std::uint64_t skipped_through_ = 0;  ///< Last line that an earlier run has stored.
  std::set<std::uint64_t> open_lines_ FJORD_GUARDED_BY(mutex_);
  std::uint64_t last_line_ FJORD_GUARDED_BY(mutex_) = 0;  ///< Last submitted line.
  MonotonicTime next_save_ FJORD_GUARDED_BY(mutex_);
  bool is_complete_ = true;  ///< No file ended early: by an error while it was read, or by a stop request.
  Feeder feeder_;
};

}  // namespace fjord
