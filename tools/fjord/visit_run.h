#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fjord/client/connect.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/visitors/visitor_session.h"

namespace fjord::cli {

/// One bucket of one slice; slices share the buckets at their borders.
struct VisitedBucket {
  std::size_t slice = 0;
  BucketId bucket;
  friend auto operator<=>(const VisitedBucket&, const VisitedBucket&) = default;
};

struct VisitRunOptions {
  visitors::VisitorSessionOptions session;
  /// So many slices are visited at once; 1: only the one of `session`.
  std::size_t slices = 1;
  /// One a slice, or none.
  std::vector<visitors::VisitToken> resume;
};

/// All on the connection's executor. An error ends the visit with it.
struct VisitRunCallbacks {
  std::function<Status(const VisitedBucket&, const std::string& docblock)> on_docblock;
  std::function<Status(const VisitedBucket&)> on_bucket_done;
  /// May be empty: VisitorSessionCallbacks::on_bucket_dropped.
  std::function<void(const VisitedBucket&)> on_bucket_dropped;
};

/// A visit for a command that waits for it.
/// Threading: run() on the thread of the command, interrupt() on any; the rest on the connection's executor, or when
/// run() has returned.
class VisitRun {
 public:
  VisitRun(Connection& connection, VisitRunOptions options, VisitRunCallbacks callbacks);
  ~VisitRun();

  /// Returns when all slices were visited, one failed, or stop() was called.
  Status run();
  /// Ends the visit early, from a callback about `bucket`, whose documents may not all have been dealt with; run()
  /// returns OK.
  void stop(const VisitedBucket& bucket);
  /// Ends the visit between two callbacks; run() returns `why`. From any thread.
  void interrupt(Status why);
  void pause();
  void resume();
  /// Of all slices together.
  visitors::VisitProgress progress() const;
  /// 0 to 1; negative while it is not known.
  double part_done() const;
  /// What of the buckets callbacks were called for; when it has ended early, without the bucket it ended with.
  std::vector<visitors::VisitToken> tokens() const;

 private:
  void start();
  void start_slice(std::size_t slice);
  void end(const Status& status, const VisitedBucket* unfinished = nullptr);

  Connection& connection_;
  VisitRunOptions options_;
  VisitRunCallbacks callbacks_;
  rpc::SnapshotHolder snapshots_;
  std::vector<std::unique_ptr<visitors::VisitorSession>> sessions_;
  std::size_t left_ = 0;
  bool ended_ = false;
  std::optional<visitors::VisitProgress> final_progress_;  ///< Once the sessions are gone.
  std::vector<visitors::VisitToken> final_tokens_;         ///< Once it has ended.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Status> result_ FJORD_GUARDED_BY(mutex_);
  bool is_over_ FJORD_GUARDED_BY(mutex_) = false;
  bool settled_ FJORD_GUARDED_BY(mutex_) = false;
};

/// Replaces the file, so that after a crash it is the old or the new one. Errors: IoError with the path.
Status replace_file(const std::string& path, const std::string& content);
/// Errors: NotFound, IoError with the path.
Result<std::string> read_small_file(const std::string& path);

/// A time of an option: "2026-11-21T19:00:00Z", "15m" or "2h" or "3d" (so long ago), seconds since 1970, or
/// microseconds since 1970 as "1763751600000000us". Errors: InvalidArgument.
Result<Timestamp> parse_time(const std::string& text, std::int64_t now_us);
/// What was read and what was not, and why: lines for people.
std::string explain_text(const visitors::VisitProgress& progress, double seconds);
/// The same as a JSON object.
std::string explain_json(const visitors::VisitProgress& progress, double seconds);

}  // namespace fjord::cli
