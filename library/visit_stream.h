#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fjord/common/thread_annotations.h"
#include "fjord/library/detail/client_core.h"
#include "fjord/visitors/visitor_session.h"

namespace fjord {

/// A bucket as one slice sees it; adjacent slices share the bucket at their border.
struct VisitedBucket {
  std::size_t slice = 0;
  BucketId bucket;
  friend auto operator<=>(const VisitedBucket&, const VisitedBucket&) = default;
};

/// One item of a visit: a block of documents, or the end of a bucket.
struct VisitItem {
  VisitedBucket from;
  bool is_bucket_end = false;
  std::string docblock;
};

/// The half of a visit on the executor: sessions whose blocks wait in a bounded queue. The sessions pause while the
/// queue is full, so that storage nodes stop reading.
///
/// Threading: pop(), stop() and progress() on any thread; start() and close() on a thread that is not the executor.
class VisitStream {
 public:
  /// Opens one session for each element of `sessions`.
  VisitStream(ClientCore& core, std::vector<visitors::VisitorSessionOptions> sessions, std::size_t buffer_bytes);
  ~VisitStream();
  VisitStream(const VisitStream&) = delete;
  VisitStream& operator=(const VisitStream&) = delete;

  Status start();
  /// Waits for the next item. Returns false at the end of the stream; result() says why it ended.
  bool pop(VisitItem& item);
  /// Returns OK if all items were given.
  Status result() const;
  /// Ends the stream early; pop() returns false from then on.
  void stop(Status why);
  visitors::VisitProgress progress() const;

 private:
  void open_sessions(std::vector<visitors::VisitorSessionOptions> options);
  visitors::VisitorSessionCallbacks callbacks_of(std::size_t slice, bool snapshot);
  void push(VisitItem item);
  void note_progress();
  void finish(const Status& status);

  ClientCore& core_;
  const std::size_t buffer_bytes_;
  rpc::SnapshotHolder snapshots_;
  std::vector<visitors::VisitorSessionOptions> options_;
  // Used on the executor only.
  std::vector<std::unique_ptr<visitors::VisitorSession>> sessions_;
  std::map<VisitedBucket, std::vector<std::string>> held_;  ///< Blocks of incomplete buckets of a snapshot visit.
  std::size_t running_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<VisitItem> items_ FJORD_GUARDED_BY(mutex_);
  std::size_t bytes_ FJORD_GUARDED_BY(mutex_) = 0;
  bool paused_ FJORD_GUARDED_BY(mutex_) = false;
  std::optional<Status> result_ FJORD_GUARDED_BY(mutex_);
  visitors::VisitProgress progress_ FJORD_GUARDED_BY(mutex_);
};

}  // namespace fjord
