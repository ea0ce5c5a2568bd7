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
#include "fjord/library/detail/visited_bucket.h"
#include "fjord/visitors/visitor_session.h"

namespace fjord::cli {

struct VisitRunOptions {
  visitors::VisitorSessionOptions session;
  /// Number of slices visited in parallel; 1: only the slice of `session`.
  std::size_t slices = 1;
  /// One token for each slice, or empty.
  std::vector<visitors::VisitToken> resume;
};

/// Callbacks on the connection's executor. The visit ends with the error that a callback returns.
struct VisitRunCallbacks {
  std::function<Status(const VisitedBucket&, const std::string& docblock)> on_docblock;
  std::function<Status(const VisitedBucket&)> on_bucket_done;
  /// VisitorSessionCallbacks::on_bucket_dropped. Optional.
  std::function<void(const VisitedBucket&)> on_bucket_dropped;
};

/// A visit that a command waits for.
/// Threading: run() on the command's thread, interrupt() on any thread; the other members on the connection's executor,
/// or after run() has returned.
class VisitRun {
 public:
  VisitRun(Connection& connection, VisitRunOptions options, VisitRunCallbacks callbacks);
  ~VisitRun();

  /// Returns when all slices have been visited, a slice has failed, or stop() was called.
  Status run();
  /// Ends the visit early; run() returns OK. Called from a callback about `bucket`, which does not count as done, as
  /// some of its documents may be unhandled.
  void stop(const VisitedBucket& bucket);
  /// Ends the visit between two callbacks; run() returns `why`.
  void interrupt(Status why);
  void pause();
  void resume();
  /// Returns the progress of all slices together.
  visitors::VisitProgress progress() const;
  /// Returns the fraction done, 0 to 1; negative if not known yet.
  double part_done() const;
  /// Returns one token for each slice with the buckets whose callbacks have run; without the bucket of stop().
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
  std::optional<visitors::VisitProgress> final_progress_;  ///< Set when the sessions are destroyed.
  std::vector<visitors::VisitToken> final_tokens_;         ///< Set when the visit has ended.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Status> result_ FJORD_GUARDED_BY(mutex_);
  bool is_over_ FJORD_GUARDED_BY(mutex_) = false;
  bool settled_ FJORD_GUARDED_BY(mutex_) = false;
};

}  // namespace fjord::cli
