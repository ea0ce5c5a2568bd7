#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fjord/document/document_id.h"
#include "fjord/document/selection.h"
#include "fjord/visitors/visitor_session.h"

namespace fjord::visitors {

class VisitorSession::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(VisitorSessionOptions options, VisitorSessionCallbacks callbacks, rpc::Transport& transport,
       rpc::SnapshotHolder& snapshot, Clock& clock, Random random, Executor& executor);

  void start();
  void cancel(UniqueFunction<void()> settled);
  void abandon() { finished_ = true; }
  void pause() { paused_ = true; }
  void resume();
  void set_visitors(std::uint32_t per_node, std::uint32_t buckets_per_visitor) {
    options_.visitors_per_node = per_node;
    options_.buckets_per_visitor = buckets_per_visitor;
    create_visitors();
  }
  VisitProgress progress() const { return progress_; }
  VisitToken token() const { return {options_.fingerprint(), done_}; }

 private:
  /// A bucket that is not done.
  struct Bucket {
    unsigned attempts = 0;  ///< Times begun.
    unsigned errors = 0;    ///< Times that its visitor reported an error.
    Duration backoff{0};
    std::unordered_set<GlobalId> given;
    bool is_begun = false;               ///< Some of its documents were given.
    bool may_be_missing = false;         ///< No list named it, so it may never have held a document.
    std::optional<std::uint16_t> avoid;  ///< The node that it was taken from because that node kept the visit waiting.
    bool even_damaged = false;           ///< No replica is intact: the remaining documents are read.
    bool partly_wanted =
        false;  ///< Some documents belong to another slice, or were given before the visit was resumed.
  };
  struct Run {
    std::uint64_t id = 0;
    std::uint16_t node = 0;
    rpc::Address address;
    std::set<BucketId> unfinished;
    std::uint64_t acknowledged = 0;
    std::uint64_t processor_us = 0;  ///< As reported last.
    unsigned silent_calls = 0;
    bool creating = true;
    bool polling = false;
    MonotonicTime last_event;  ///< Time of its creation or of its last event.
  };
  struct Node {
    std::deque<BucketId> queue;
    unsigned runs = 0;
    MonotonicTime first_begun;  ///< Time at which its first visitor was created.
    bool has_begun = false;
  };
  enum class Fault { NotHere, TryAgain, Permanent };

  static Fault classify(const Status& status);

  // Listing and resolving buckets (visitor_session_resolve.cpp).
  void tick();
  /// Calls tick() at this time or earlier.
  void wake_at(MonotonicTime time);
  /// Asks a random distributor for a newer cluster state and schema, at most once in a short interval.
  void refresh_info();
  void take_info(const rpc::ClusterInfo& info);
  rpc::Address any_distributor();
  bool check_resume();
  /// Parses the selection to learn which buckets can match. If it does not parse, the servers refuse it.
  void look_at_selection();
  /// Returns true if the selection names the buckets; they are then added without asking the distributors for a list.
  bool locate();
  /// Adds the bucket if it has to be read.
  void add_bucket(BucketId bucket);
  void buckets_known();
  /// Replaces a bucket by its parts with `bits` bits, which are due at once.
  void cut_bucket(BucketId bucket, unsigned bits);
  bool wants(const GlobalId& gid) const;
  void list_all();
  void on_listed(std::uint64_t listing, Result<rpc::GetBucketNodesReply> reply);
  void listing_failed(const Status& reason);
  void listing_complete();
  void resolve_due();
  void resolve(std::uint16_t distributor, std::vector<BucketId> buckets);
  void on_resolved(const std::vector<BucketId>& asked, Result<rpc::GetBucketNodesReply> reply);
  void on_bucket_node(const rpc::BucketNode& found);
  void again_later(BucketId bucket, const Status& reason);

  // Running visitors (visitor_session_run.cpp).
  void create_visitors();
  /// The node with the fewest visitors among those that can run another one; null if there is none.
  std::pair<const std::uint16_t, Node>* next_node(std::uint32_t limit);
  void create_visitor(std::uint16_t node, std::vector<BucketId> buckets);
  std::uint32_t batch_size(std::size_t queued, unsigned runs) const;
  void on_created(std::uint64_t run_id, Result<rpc::CreateVisitorReply> reply);
  void poll(Run& run);
  void on_polled(std::uint64_t run_id, Result<rpc::VisitorNextReply> reply);
  bool on_event(Run& run, rpc::VisitorEvent event);
  void give(BucketId bucket, std::string docblock);
  std::string without_unwanted(Bucket& bucket, std::string docblock) const;
  void bucket_complete(BucketId bucket, std::string result);
  void on_bucket_error(BucketId bucket, const Status& status);
  void drop_run(std::uint64_t run_id, const Status& reason);
  void abandon_queue(std::uint16_t node, const Status& reason);
  void destroy_visitor(const Run& run);
  bool node_up(std::uint16_t node) const;
  void drop_runs_of_dead_nodes();

  // Relieving nodes that are slower than others (visitor_session_backup.cpp).
  void relieve_stragglers();
  bool has_idle_node() const;
  void take_from_queue(std::uint16_t index, Node& node, Duration patience);
  Duration mean_bucket_time() const;

  void moved() { last_moved_ = clock_.now(); }
  void check_limits();
  void finish(Status status);
  void finish_if_done();

  /// Wraps a callback as `f(self, ...)`, which does nothing if the session is destroyed or finished.
  template <typename F>
  auto guarded(F f) {
    return [weak = weak_from_this(), f = std::move(f)](auto&&... arguments) mutable {
      const auto self = weak.lock();
      if (self != nullptr && !self->finished_) f(*self, std::forward<decltype(arguments)>(arguments)...);
    };
  }

  VisitorSessionOptions options_;
  VisitorSessionCallbacks callbacks_;
  rpc::Transport& transport_;
  rpc::SnapshotHolder& snapshot_;
  Clock& clock_;
  Random random_;
  Executor& executor_;

  bool finished_ = false;
  bool paused_ = false;
  bool held_back_ = false;  ///< on_begin has delayed the next visitor.
  VisitProgress progress_;
  MonotonicTime started_;
  MonotonicTime last_moved_;
  Status last_reason_;

  std::optional<MonotonicTime> awake_at_;

  // Listing and resolving buckets.
  bool refreshing_ = false;
  MonotonicTime refreshed_{-1'000'000'000};
  bool listed_ = false;        ///< The buckets are known.
  bool named_ = false;         ///< The buckets were named and not listed, so some may not exist.
  std::uint64_t listing_ = 0;  ///< Number of the listing in progress; 0: none.
  std::uint64_t listings_ = 0;
  std::size_t listing_open_ = 0;  ///< Distributors that have not answered the listing.
  std::vector<rpc::BucketNode> listing_found_;
  MonotonicTime next_listing_;
  Duration listing_backoff_{0};
  std::set<std::pair<MonotonicTime, BucketId>>
      due_;                   ///< Buckets whose nodes have to be resolved, by the time to do it.
  std::size_t settling_ = 0;  ///< Outstanding answers that cancel() waits for.
  UniqueFunction<void()> settled_;

  PositionSet done_;
  PositionSet done_before_;  ///< Parts done by the visit that is resumed.
  std::optional<Selection> selection_;

  std::map<BucketId, Bucket> buckets_;
  std::map<std::uint16_t, Node> nodes_;
  std::map<std::uint64_t, Run> runs_;
  Duration bucket_time_{0};  ///< Sum of the times between successive events of each visitor.
};

}  // namespace fjord::visitors
