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
#include "fjord/visitors/session_cursor.h"

namespace fjord::visitors {

struct VisitorSessionOptions {
  std::string library = "dump";
  std::vector<rpc::Parameter> parameters;
  std::string selection;
  bool ids_only = false;
  bool header_only = false;  ///< Gives header parts as they are stored, without reading bodies.
  std::string field_set;     ///< Fields of documents to read (document/field_set.h); empty: all fields.
  /// Absent: all buckets of the cluster that hold something and can match the selection.
  std::optional<std::vector<BucketId>> buckets;
  Timestamp from{0};             ///< Only versions written at or after this time.
  Timestamp to{0};               ///< Only versions written at or before this time; 0: no limit.
  bool include_removed = false;  ///< Also gives removed documents, unless their ids rule out the selection.
  /// Gives each bucket as it was when its visitor began with it. The parts of a bucket that was split after it was
  /// listed are separate snapshots. A bucket that is read again is given again as a whole, after `on_bucket_dropped`,
  /// which must be set; `deduplicate` is ignored.
  bool snapshot = false;
  /// Only documents in this part of the bucket tree. With n clients, client k uses PositionRange::slice(k, n).
  PositionRange slice;
  /// Continues a visit with the same options (fingerprint() has them in one number). Documents in the parts that were
  /// done are not given again.
  std::optional<SessionCursor> resume;
  /// Splits waiting buckets into parts when the cluster gets more distribution bits. If false the visit fails then,
  /// which is right for visitors whose results are named after buckets.
  bool follow_bits = false;
  rpc::Priority priority = rpc::Priority::Background;  ///< Priority of its visitors in the queues of storage nodes.
  /// Sessions of one group share one share of a node's time. 0: the session is a group of its own.
  std::uint64_t group = 0;
  std::uint32_t weight = 0;  ///< Weight of the group, as in rpc::CreateVisitor.
  /// Addresses of distributors, used while `snapshot` is empty.
  std::vector<rpc::Address> bootstrap;

  std::uint32_t visitors_per_node = 4;
  std::uint32_t buckets_per_visitor = 0;  ///< 0: a node's buckets are cut into a few rounds, at most 64 buckets each.
  /// With buckets_per_visitor 0: divides the buckets of a node among its visitors at once, at most 64 each.
  bool one_round = false;
  std::uint32_t buckets_at_once = 1;
  std::uint32_t docblock_bytes = 0;  ///< 0: the server's default
  std::uint64_t schema_version = 0;  ///< Minimum schema version of the servers; raised to that of the snapshot.
  /// Gives documents of a bucket that is read again only once. Keeps the gids of unfinished buckets in memory.
  bool deduplicate = true;

  Duration deadline{0};  ///< Maximum time for the whole visit; 0: none.
  Duration no_progress_limit =
      seconds(60);  ///< Time without progress after which the visit fails with the last reason.
  /// Maximum number of times that the visitor may report an error other than "not available now" for one bucket.
  unsigned bucket_tries_max = 5;
  /// Starts buckets again on another replica if their node has given nothing for too long while another storage node is
  /// idle. Too long: this time, and three times the mean time of a bucket. At most once per bucket. 0: never.
  Duration backup_after{0};
  Duration poll_wait = seconds(2);
  Duration call_timeout = seconds(5);
  Duration retry_first = milliseconds(50);
  Duration retry_max = seconds(2);

  /// Hash of all options that decide which documents are given and how, but not how fast.
  std::uint64_t fingerprint() const;
};

struct VisitProgress {
  std::uint64_t buckets_total = 0;  ///< 0 until the buckets are listed.
  std::uint64_t buckets_done = 0;
  std::uint64_t buckets_repeated = 0;  ///< Number of times that a bucket was started again.
  std::uint64_t buckets_relieved = 0;  ///< Repeated buckets taken from nodes that kept the visit waiting.
  std::uint64_t docblock_bytes = 0;
  std::uint64_t documents_read = 0;        ///< Documents in finished buckets; 0 if the storage nodes do not report it.
  std::uint64_t documents_matched = 0;     ///< Documents among these that matched, including removed ones.
  std::uint64_t documents_open = 0;        ///< Documents that were visited in buckets that are not finished.
  std::uint64_t skipped_by_selection = 0;  ///< Buckets in which no document can match.
  std::uint64_t skipped_by_slice = 0;      ///< Buckets outside of this slice.
  std::uint64_t skipped_as_done = 0;       ///< Buckets that were done before the visit was resumed.
  std::uint64_t processor_us = 0;  ///< Processor time of its visitors in microseconds, as far as they measure it.
  bool located = false;  ///< The selection named the buckets, so the distributors were not asked for all of them.
  std::map<std::uint16_t, std::uint64_t> buckets_by_node;  ///< Finished buckets, by the storage node that read them.
};

/// All run on the session's executor. None runs after on_finished, cancel() or the session's destruction.
struct VisitorSessionCallbacks {
  /// Documents of one bucket. Returning acknowledges them. A caller that can take no more calls pause().
  std::function<void(BucketId, std::string docblock)> on_docblock;
  /// Called once for each bucket. `result` is the visitor's result; also empty for a bucket without documents.
  std::function<void(BucketId, std::string result)> on_bucket_done;
  /// Discards the documents of a bucket that was cut into parts, or of a snapshot that has to be read again; all of
  /// them are given again. If this is empty, only the missing documents are given.
  std::function<void(BucketId)> on_bucket_dropped;
  /// Number of buckets, called before the first visitor is created.
  std::function<void(std::uint64_t buckets)> on_buckets_known;
  /// Called before a visitor is created for `buckets` buckets. Returns how long to wait before the next call; 0 to
  /// start. Waiting counts as progress.
  std::function<Duration(std::size_t buckets)> on_begin;
  /// VisitProgress::processor_us has risen.
  std::function<void()> on_processor_time;
  /// OK only if every bucket was read to its end.
  std::function<void(Status)> on_finished;
};

/// The client half of a visit: finds the nodes, creates and polls visitors, and starts a bucket again elsewhere when
/// its node fails. Gives every document that matches during the whole visit.
///
/// Permanent errors (InvalidSelection, UnknownType, InvalidArgument, InvalidField, TooLarge, NotImplemented,
/// Unauthorized) end the visit at once. A bucket that is not available is retried until the deadline, or until the
/// visit has made no progress for `no_progress_limit`.
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
  /// Destroys the visitors and ends without further callbacks. `settled` (may be empty) runs when all nodes have
  /// answered or timed out.
  void cancel(UniqueFunction<void()> settled = {});
  /// Ends without any message. The visitors on the nodes expire by themselves. For use when the executor is stopped or
  /// about to stop.
  void abandon();
  /// pause() stops polling; answers in flight still arrive. resume() starts polling again.
  void pause();
  void resume();
  /// Changes the options of the same names for visitors created from this call on.
  void set_visitors(std::uint32_t per_node, std::uint32_t buckets_per_visitor);
  VisitProgress progress() const;
  /// Finished parts, including those from before a resume. A bucket is included from its on_bucket_done on.
  SessionCursor cursor() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fjord::visitors
