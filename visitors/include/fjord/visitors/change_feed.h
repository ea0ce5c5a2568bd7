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
#include "fjord/visitors/change_token.h"

namespace fjord::visitors {

struct ChangeFeedOptions {
  std::string selection;
  std::string field_set;  ///< Of the documents that are given; empty: all fields.
  /// Goes on from there. Absent: from the beginning, so that all documents are given once, and then what changes.
  std::optional<ChangeToken> resume;
  bool from_now = false;  ///< Without a token: what is there is not given, only what changes from now on.
  /// Distributors to ask while `snapshot` is empty.
  std::vector<rpc::Address> bootstrap;
  Duration poll_interval = milliseconds(500);  ///< Between two looks at the cluster when nothing is left.
  std::uint32_t block_bytes = 0;               ///< Of one answer, which is all that is kept; 0: the server's default.
  std::uint32_t buckets_per_call = 256;
  Duration call_timeout = seconds(5);
  Duration retry = milliseconds(200);

  /// Of the question that the token answers.
  std::uint64_t fingerprint() const;
};

struct ChangeFeedProgress {
  std::uint64_t buckets = 0;     ///< That the distributors named in the last round.
  std::uint64_t waiting = 0;     ///< Of these, whose changes cannot be read now: their replicas are being repaired.
  std::uint64_t begun_anew = 0;  ///< Times that a bucket was given from its beginning again.
  std::uint64_t changes = 0;     ///< Given, repetitions included.
};

/// All on the feed's executor; none is called after on_end, cancel() or the feed's destruction.
struct ChangeFeedCallbacks {
  /// Changes of one bucket by rising timestamp: documents, and removed entries for what is removed or is no longer
  /// among the selected documents. When it has returned they are in token(). `again`: the bucket is given from its
  /// beginning.
  std::function<void(BucketId, std::string docblock, bool again)> on_changes;
  /// Nothing new was given, but token() knows of buckets that it did not know of: of which time they were listed. Only
  /// with that can a token of an unfinished first copy be resumed when removes were dropped before. May be empty.
  std::function<void()> on_listed;
  /// Every bucket was read up to what was stable when the round began.
  std::function<void()> on_caught_up;
  /// Removes before this time are forgotten, and the subscriber has not been told of all of them: its copy has to be
  /// made anew. The feed ends.
  std::function<void(Timestamp horizon)> on_resync;
  /// An error that would come again, such as a selection that does not parse. The feed ends.
  std::function<void(Status)> on_end;
};

/// The client half of a subscription: all changes of documents that a selection names, at least once, in order within
/// each document.
///
/// It asks the distributors for the buckets, and storage nodes for what changed in each since the token's position.
/// Nothing is kept for subscribers anywhere; what is buffered is one answer a storage node. Transient errors are
/// retried for ever.
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
  /// Asks for no more; what is under way still arrives.
  void pause();
  void resume();
  const ChangeToken& token() const;
  const ChangeFeedProgress& progress() const;
  /// Why the last call failed; OK if nothing did yet.
  const Status& last_problem() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fjord::visitors
