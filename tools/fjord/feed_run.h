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
  Duration timeout{0};                ///< Of one operation, retries included.
  std::uint64_t errors_shown = 100;   ///< Messages about single records; the rest is only counted.
  std::size_t window_operations = 0;  ///< 0: the feeder's default.
  rpc::Priority priority = rpc::Priority::Default;
  Progress::When progress = Progress::When::Auto;
  /// Keeps how far a file is, and goes on from there if it exists already; gone when all is done. Empty: none. For
  /// operations that may be repeated, and one file.
  std::string resume_file;
};

/// Feeds files into a cluster: one thread reads, some parse, one submits in the order of the records. A record that
/// cannot be understood or is refused gets a message with file and line, is counted, and the feed goes on.
class FeedRun {
 public:
  FeedRun(AsyncClient& client, const FeedRunOptions& options);
  ~FeedRun();

  /// Reads the file of the options. Errors: InvalidArgument if it is of another input; IoError.
  Status load_progress(const std::string& input);
  /// Feeds one file; returns when all of it is submitted.
  void feed(RecordSource& source);
  /// Counts something that failed as a whole, such as a file that cannot be opened.
  void fail(const Status& status);
  /// Waits for all results. Returns the summary as JSON.
  std::string finish();
  /// 0: all is stored; 5: a part; 1: nothing, or the code of what was wrong with all files as a whole.
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
  std::map<StatusCode, std::uint64_t> unread_ FJORD_GUARDED_BY(mutex_);  ///< Failed before they were submitted.
  std::vector<Status> whole_failures_ FJORD_GUARDED_BY(mutex_);          ///< What fail() was called with.
  std::uint64_t errors_ FJORD_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> files_ FJORD_GUARDED_BY(mutex_);  ///< A tag is file index << 40 | line.
  std::string input_;
  std::uint64_t skipped_through_ = 0;  ///< Lines up to here were done by an earlier run.
  std::set<std::uint64_t> open_lines_ FJORD_GUARDED_BY(mutex_);
  std::uint64_t last_line_ FJORD_GUARDED_BY(mutex_) = 0;  ///< Of those that were submitted.
  MonotonicTime next_save_ FJORD_GUARDED_BY(mutex_);
  FeedStats stats_;
  Progress progress_;
  Feeder feeder_;
};

}  // namespace fjord::cli
