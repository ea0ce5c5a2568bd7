#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fjord/common/callback_guard.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/library/detail/client_core.h"
#include "fjord/library/detail/visited_bucket.h"
#include "fjord/library/pending.h"
#include "fjord/visitors/visitor_session.h"
#include "ready_wait.h"

namespace fjord {

/// One item of a visit.
struct VisitItem {
  enum class Kind {
    Documents,      ///< A block of documents.
    BucketEnd,      ///< All documents of the bucket were given.
    BucketDropped,  ///< The documents of the bucket are given again, perhaps as those of its halves.
  };
  VisitedBucket from;
  Kind kind = Kind::Documents;
  std::string docblock;
};

/// The half of a visit on the executor: sessions whose blocks wait in a bounded queue. The sessions pause while the
/// queue is full, so that storage nodes stop reading.
///
/// Threading: pop(), stop() and progress() on any thread; start() on a thread that is not the executor. The destructor
/// waits for the executor on another thread.
class VisitStream {
 public:
  /// Whether the stream may take back documents that it has given.
  enum class Drops {
    Never,  ///< The stream gives only missing documents again. It holds the buckets of a snapshot until they are
            ///< complete.
    Tell,   ///< The reader discards the documents of a bucket after BucketDropped.
  };
  /// Opens one session for each element of `sessions`.
  VisitStream(ClientCore& core, std::vector<visitors::VisitorSessionOptions> sessions, std::size_t buffer_bytes,
              Drops drops = Drops::Never);
  ~VisitStream();
  VisitStream(const VisitStream&) = delete;
  VisitStream& operator=(const VisitStream&) = delete;

  Status start();
  /// Waits for the next item. Returns false at the end of the stream; result() says why it ended.
  bool pop(VisitItem& item);
  /// Returns true if pop() would wait.
  bool is_empty() const;
  /// Ends as OK when pop() may not have to wait, and as Cancelled if the stream is destroyed before. It ends on the
  /// executor, or at once. Only one call may wait at a time.
  Pending<Status> ready();
  /// Returns OK if all items were given.
  Status result() const;
  /// Ends the stream early; pop() returns false from then on.
  void stop(Status why);
  visitors::VisitProgress progress() const;

 private:
  void open_sessions(std::vector<visitors::VisitorSessionOptions> options);
  visitors::VisitorSessionCallbacks callbacks_of(std::size_t slice, bool holds);
  void push(VisitItem item);
  void note_progress();
  void finish(const Status& status);
  bool has_result() const;
  void end_sessions();
  void wake() FJORD_REQUIRES(mutex_);
  /// Posts `f(*this)` to the executor, where it does nothing after the end of the stream.
  template <typename F>
  void post(F f);

  ClientCore& core_;
  const std::size_t buffer_bytes_;
  const Drops drops_;
  rpc::SnapshotHolder snapshots_{rpc::SnapshotHolder::Follows::AnyCluster};
  std::vector<visitors::VisitorSessionOptions> options_;
  // Used on the executor only.
  CallbackGuard guard_;
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
  ReadyWait wait_;  ///< The wait of ready(); under mutex_, except for its end.
};

}  // namespace fjord
