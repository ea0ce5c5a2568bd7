#pragma once

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
#include "progress.h"
#include "record_source.h"

namespace fjord::cli {

struct FeedRunOptions {
  Duration timeout{0};                ///< Timeout of one operation, retries included.
  std::uint64_t errors_shown = 100;   ///< Most messages about single records; further errors are only counted.
  std::size_t window_operations = 0;  ///< 0: the feeder's default.
  rpc::Priority priority = rpc::Priority::Default;
  Progress::When progress = Progress::When::Auto;
  /// File that holds the progress; an existing one resumes the feed. It is removed when all is done. Empty: none. Only
  /// for a single input file of operations that may be repeated.
  std::string resume_file;
};

/// Feeds files into a cluster: one thread reads, several parse, one submits in the order of the records. The feed
/// counts a malformed or refused record, prints a message with file and line, and continues.
class FeedRun {
 public:
  FeedRun(AsyncClient& client, const FeedRunOptions& options);
  ~FeedRun();

  /// Reads FeedRunOptions::resume_file. Errors: InvalidArgument if it belongs to another input; IoError.
  Status load_progress(const std::string& input);
  /// Feeds one file. Returns when all its records are submitted.
  void feed(RecordSource& source);
  /// Counts an input that failed as a whole, such as a file that cannot be opened.
  void fail(const Status& status);
  /// Waits for all results. Returns the summary as JSON.
  std::string finish();
  /// Returns 0 if all records are stored, 5 for a part of them, else 1, or the code of the error that made all files
  /// fail as a whole.
  int exit_code() const;

 private:
  struct Batch;
  struct Pipeline;
  void read(RecordSource& source, Pipeline& pipeline);
  void parse_batches(const RecordSource& source, Pipeline& pipeline);
  void submit_batches(Pipeline& pipeline);
  void note_done(std::uint64_t line, bool in_doubt);
  void on_result(std::uint64_t tag, const OperationOutcome& outcome);
  void record_error(const std::string& file, std::uint64_t line, const Status& status);
  void show_error(const std::string& text);
  std::uint64_t failed_total() const;

  FeedRunOptions options_;
  const MonotonicTime start_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::map<StatusCode, std::uint64_t> unread_ FJORD_GUARDED_BY(mutex_);  ///< Records that failed before submission.
  std::vector<Status> whole_failures_ FJORD_GUARDED_BY(mutex_);          ///< Arguments of fail().
  std::uint64_t errors_ FJORD_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> files_ FJORD_GUARDED_BY(mutex_);  ///< A tag is file index << 40 | line.
  std::string input_;
  std::uint64_t skipped_through_ = 0;  ///< Last line that an earlier run has stored.
  std::set<std::uint64_t> open_lines_ FJORD_GUARDED_BY(mutex_);
  std::uint64_t last_line_ FJORD_GUARDED_BY(mutex_) = 0;  ///< Last submitted line.
  MonotonicTime next_save_ FJORD_GUARDED_BY(mutex_);
  FeedStats stats_;
  Progress progress_;
  Feeder feeder_;
};

}  // namespace fjord::cli
