#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/executor.h"
#include "fjord/common/random.h"
#include "fjord/document/timestamp.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"
#include "fjord/visitors/change_cursor.h"

namespace fjord::visitors {

struct ChangeFeedOptions {
  std::string selection;
  std::string field_set;  ///< Fields of the documents in the feed; empty: all fields.
  /// Continues from this cursor. Absent: the feed gives every existing document once, then the changes.
  std::optional<ChangeCursor> resume;
  bool from_now = false;  ///< Without a cursor: skips existing documents and gives only later changes.
  /// Addresses of distributors, used while `snapshot` is empty.
  std::vector<rpc::Address> bootstrap;
  Duration poll_interval = milliseconds(500);  ///< Time between two rounds once all changes were read.
  std::uint32_t block_bytes = 0;  ///< Maximum size of one answer, the only buffer; 0: the server's default.
  std::uint32_t buckets_per_call = 256;
  Duration call_timeout = seconds(5);
  Duration retry = milliseconds(200);

  /// Hash of selection and field set. A cursor is valid only for a feed with the same fingerprint.
  std::uint64_t fingerprint() const;
};

struct ChangeFeedProgress {
  std::uint64_t buckets = 0;      ///< Buckets that the distributors named in the last round.
  std::uint64_t waiting = 0;      ///< Buckets of the last round that cannot be read while their replicas are repaired.
  std::uint64_t begun_again = 0;  ///< Number of times that a bucket was given again from its beginning.
  std::uint64_t changes = 0;      ///< Changes given, including repeated ones.
};

/// All run on the feed's executor. None runs after on_end, cancel() or the feed's destruction.
struct ChangeFeedCallbacks {
  /// Changes of one bucket in ascending order of timestamp. A removed entry stands for a document that was removed or
  /// that no longer matches the selection. After the callback returns, cursor() includes the changes. `again`: the
  /// bucket is given from its beginning again.
  std::function<void(BucketId, std::string docblock, bool again)> on_changes;
  /// cursor() has recorded when new buckets were listed, without new changes. A subscriber stores this cursor:
  /// otherwise a first copy that is resumed after removes were dropped ends with on_resync. May be empty.
  std::function<void()> on_listed;
  /// Every bucket was read up to the bound that was stable when the round began.
  std::function<void()> on_caught_up;
  /// Removes before `horizon` were dropped before the subscriber received all of them. It has to copy all documents
  /// again. The feed ends.
  std::function<void(Timestamp horizon)> on_resync;
  /// A permanent error, such as a selection that does not parse. The feed ends.
  std::function<void(Status)> on_end;
};

/// The client half of a subscription: gives all changes of the documents that match a selection, at least once, in
/// order within each document.
///
/// Asks the distributors for the buckets, and storage nodes for the changes of each since the cursor's position. No
/// node keeps state for subscribers; the feed buffers one answer a storage node. Transient errors are retried for ever.
///
/// Threading: confined to `executor`. Lifetime: may be destroyed at any time on its executor, also inside a callback;
/// `transport`, `clock` and `snapshot` outlive it.
class ChangeFeed {
 public:
  ChangeFeed(ChangeFeedOptions options, ChangeFeedCallbacks callbacks, rpc::Transport& transport,
             rpc::SnapshotHolder& snapshot, Clock& clock, Random random, Executor& executor);
  ~ChangeFeed();
  ChangeFeed(const ChangeFeed&) = delete;
  ChangeFeed& operator=(const ChangeFeed&) = delete;

  void start();
  void cancel();
  /// Sends no new requests; answers in flight still arrive.
  void pause();
  void resume();
  const ChangeCursor& cursor() const;
  const ChangeFeedProgress& progress() const;
  /// Error of the last failed call; OK if no call has failed.
  const Status& last_problem() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fjord::visitors
