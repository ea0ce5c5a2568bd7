#pragma once

#include <cstdint>
#include <functional>
#include <map>
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
#include "fjord/visitors/bucket_space.h"
#include "fjord/visitors/visit_token.h"

namespace fjord::visitors {

struct VisitorSessionOptions {
  std::string library = "dump";
  std::vector<rpc::Parameter> parameters;
  std::string selection;
  bool ids_only = false;
  bool header_only = false;  ///< Bodies are not read, and header parts given as they are stored.
  std::string field_set;     ///< Which fields of documents are read (document/field_set.h); empty: all of them.
  /// Absent: every bucket of the cluster that holds something and that the selection allows.
  std::optional<std::vector<BucketId>> buckets;
  Timestamp from{0};             ///< Only versions that were written at or after this time.
  Timestamp to{0};               ///< And not after this one; 0: no limit.
  bool include_removed = false;  ///< Removed documents too, unless their ids say that the selection does not hold.
  /// Each bucket is given as it was at one moment, when its visitor began with it; a bucket that was split since it was
  /// listed: each of its parts. One that has to be read again is given again as a whole, under `on_bucket_dropped`,
  /// which has to be there; `deduplicate` does not count then.
  bool snapshot = false;
  /// Only documents in this part of the bucket tree: PositionRange::slice(k, n) for one of n clients.
  PositionRange slice;
  /// Goes on where a visit with the same fingerprint was; documents of parts that were done are not given again.
  std::optional<VisitToken> resume;
  /// A bucket that is waiting while the cluster gets more distribution bits is continued as its parts. Otherwise a
  /// visit fails then; that is right for visitors whose results are named after buckets.
  bool follow_bits = false;
  rpc::Priority priority = rpc::Priority::Background;  ///< Of its visitors on storage nodes that have many.
  /// Sessions with the same number share what one of them would get of a node's time; 0: the session is alone.
  std::uint64_t group = 0;
  std::uint32_t weight = 0;  ///< As CreateVisitor has it.
  /// Distributors to ask while `snapshot` is empty.
  std::vector<rpc::Address> bootstrap;

  std::uint32_t visitors_per_node = 4;
  std::uint32_t buckets_per_visitor = 0;  ///< 0: chosen so that a node's work is cut into a few rounds, at most 64.
  /// With buckets_per_visitor 0: the buckets of a node are dealt to its visitors at once, at most 64 to each.
  bool one_round = false;
  std::uint32_t buckets_at_once = 1;
  std::uint32_t docblock_bytes = 0;  ///< 0: the server's default
  std::uint64_t schema_version = 0;  ///< Servers need at least this one; raised to that of the snapshot.
  /// Documents of a bucket that has to be read again are given once. Keeps the gids of unfinished buckets in memory.
  bool deduplicate = true;

  Duration deadline{0};                      ///< For the whole visit; 0: none.
  Duration no_progress_limit = seconds(60);  ///< Fails with the last reason when nothing moved for so long.
  /// A bucket whose visitor reports an error (not: is not available now) is tried so often.
  unsigned bucket_tries_max = 5;
  /// When a storage node has nothing left to do, and another one has given nothing for so long and for three times the
  /// mean of a bucket, its buckets are begun again elsewhere, if they have another replica. Each bucket once. 0: never.
  Duration backup_after{0};
  Duration poll_wait = seconds(2);
  Duration call_timeout = seconds(5);
  Duration retry_first = milliseconds(50);
  Duration retry_max = seconds(2);

  /// Of all that decides which documents are given, and how; not of how fast.
  std::uint64_t fingerprint() const;
};

struct VisitProgress {
  std::uint64_t buckets_total = 0;  ///< 0 until the buckets are known.
  std::uint64_t buckets_done = 0;
  std::uint64_t buckets_repeated = 0;  ///< Times that a bucket was begun again.
  std::uint64_t buckets_relieved = 0;  ///< Of these, because a node kept the visit waiting.
  std::uint64_t docblock_bytes = 0;
  std::uint64_t documents_read = 0;        ///< In buckets that are done; 0 if the storage nodes do not say.
  std::uint64_t documents_matched = 0;     ///< Of these, removes included.
  std::uint64_t skipped_by_selection = 0;  ///< Buckets in which no document can match.
  std::uint64_t skipped_by_slice = 0;      ///< Buckets of other slices.
  std::uint64_t skipped_as_done = 0;       ///< Buckets that were done before.
  std::uint64_t processor_us = 0;          ///< Worked by processors for its visitors, if these measure it.
  bool located = false;                    ///< The selection named the buckets, so nobody was asked for all of them.
  std::map<std::uint16_t, std::uint64_t> buckets_by_node;  ///< Done, by the storage node that they were read from.
};

/// All on the session's executor; none is called after on_finished, cancel() or the session's destruction.
struct VisitorSessionCallbacks {
  /// Documents of one bucket. Returning acknowledges them; to be given no more for now, pause() the session.
  std::function<void(BucketId, std::string docblock)> on_docblock;
  /// Once a bucket. `result` is what the visitor said of it; empty also for a bucket that holds nothing.
  std::function<void(BucketId, std::string result)> on_bucket_done;
  /// The bucket was cut into parts, or is a snapshot that has to be read again: what was given of it is given again. If
  /// this is empty, only what was not given is.
  std::function<void(BucketId)> on_bucket_dropped;
  /// How many buckets there are, before the first of them is begun.
  std::function<void(std::uint64_t buckets)> on_buckets_known;
  /// Asked before a visitor is created for so many buckets: how long to wait until it is asked again; 0: none. Waiting
  /// counts as progress.
  std::function<Duration(std::size_t buckets)> on_begin;
  /// VisitProgress::processor_us has risen.
  std::function<void()> on_processor_time;
  /// OK only if every bucket was read to its end.
  std::function<void(Status)> on_finished;
};

/// The client half of a visit: finds the nodes, creates visitors there, polls them, and begins a bucket again elsewhere
/// when its node fails. Every document that matched throughout is seen.
///
/// Errors that a repetition would repeat (InvalidSelection, UnknownType, InvalidArgument, InvalidField, TooLarge,
/// NotImplemented, Unauthorized) end the visit at once; a bucket that is not available is asked for again until the
/// deadline, or until nothing has moved for `no_progress_limit`.
///
/// Threading: confined to `executor`. Lifetime: may be destroyed at any time on its executor, also inside a callback;
/// `transport`, `clock` and `snapshot` outlive it.
class VisitorSession {
 public:
  VisitorSession(VisitorSessionOptions options, VisitorSessionCallbacks callbacks, rpc::Transport& transport,
                 rpc::SnapshotHolder& snapshot, Clock& clock, Random random, Executor& executor);
  ~VisitorSession();
  VisitorSession(const VisitorSession&) = delete;
  VisitorSession& operator=(const VisitorSession&) = delete;

  void start();
  /// Destroys the visitors and ends without a further callback. `settled` (may be empty) runs when all nodes have
  /// answered, or did not in time.
  void cancel(UniqueFunction<void()> settled = {});
  /// Ends without a word to anybody, the nodes included, whose visitors end by themselves after a while. For when the
  /// executor is gone or going.
  void abandon();
  /// Stops polling (what is under way still arrives) and starts it again.
  void pause();
  void resume();
  /// For visitors that are created from now on; as in the options.
  void set_visitors(std::uint32_t per_node, std::uint32_t buckets_per_visitor);
  VisitProgress progress() const;
  /// What is done so far, including what was done before a resume. A bucket is in it when on_bucket_done was called.
  VisitToken token() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fjord::visitors
