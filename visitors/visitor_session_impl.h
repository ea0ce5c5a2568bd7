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
    bool is_begun = false;               ///< Something of it was given.
    bool may_be_missing = false;         ///< It was not in a list, so perhaps nothing was ever put there.
    std::optional<std::uint16_t> avoid;  ///< The node that it was taken from, as that kept the visit waiting.
    bool even_damaged = false;           ///< Nobody has all of it; what is left is read.
    bool partly_wanted = false;  ///< Some documents are of another slice, or were given before the visit was resumed.
  };
  struct Run {
    std::uint64_t id = 0;
    std::uint16_t node = 0;
    rpc::Address address;
    std::set<BucketId> unfinished;
    std::uint64_t acknowledged = 0;
    std::uint64_t processor_us = 0;  ///< As it said last.
    unsigned silent_calls = 0;
    bool creating = true;
    bool polling = false;
    MonotonicTime last_event;  ///< It was created, or gave something.
  };
  struct Node {
    std::deque<BucketId> queue;
    unsigned runs = 0;
    MonotonicTime first_begun;  ///< When its first visitor was created.
    bool has_begun = false;
  };
  enum class Fault { NotHere, TryAgain, Permanent };

  static Fault classify(const Status& status);

  // Finding out (visitor_session_resolve.cpp).
  void tick();
  /// tick() not later than this.
  void wake_at(MonotonicTime time);
  /// Asks some distributor for what is newer, unless that was done a moment ago.
  void refresh_info();
  void take_info(const rpc::ClusterInfo& info);
  rpc::Address any_distributor();
  bool check_resume();
  /// Learns what the selection says about buckets; what does not parse is for the servers to refuse.
  void look_at_selection();
  /// True if the selection names its buckets, so that they need not be listed.
  bool locate();
  /// Adds the bucket, unless it need not be read.
  void add_bucket(BucketId bucket);
  void buckets_known();
  /// Replaces a bucket by its parts with so many bits, which are due now.
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
  /// The node with the fewest visitors of those that could have another one; null if there is none.
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

  // Relieving nodes that are slower than the others (visitor_session_backup.cpp).
  void relieve_stragglers();
  bool has_idle_node() const;
  void take_from_queue(std::uint16_t index, Node& node, Duration patience);
  Duration mean_bucket_time() const;

  void moved() { last_moved_ = clock_.now(); }
  void check_limits();
  void finish(Status status);
  void finish_if_done();

  /// `f(self, ...)` wherever an answer arrives, unless the session is gone or over.
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
  bool held_back_ = false;  ///< on_begin said that the next visitor has to wait.
  VisitProgress progress_;
  MonotonicTime started_;
  MonotonicTime last_moved_;
  Status last_reason_;

  std::optional<MonotonicTime> awake_at_;

  // Finding out.
  bool refreshing_ = false;
  MonotonicTime refreshed_{-1'000'000'000};
  bool listed_ = false;        ///< The buckets are known.
  bool named_ = false;         ///< They were not listed, so that some may not exist.
  std::uint64_t listing_ = 0;  ///< Number of the listing under way; 0: none.
  std::uint64_t listings_ = 0;
  std::size_t listing_open_ = 0;  ///< Distributors that have not answered it.
  std::vector<rpc::BucketNode> listing_found_;
  MonotonicTime next_listing_;
  Duration listing_backoff_{0};
  std::set<std::pair<MonotonicTime, BucketId>> due_;  ///< Buckets to ask for, and when.
  std::size_t settling_ = 0;                          ///< Answers that cancel() waits for.
  UniqueFunction<void()> settled_;

  PositionSet done_;
  PositionSet done_before_;  ///< By the visit that is resumed.
  std::optional<Selection> selection_;

  std::map<BucketId, Bucket> buckets_;
  std::map<std::uint16_t, Node> nodes_;
  std::map<std::uint64_t, Run> runs_;
  Duration bucket_time_{0};  ///< Of all that are done, from the event before in the same visitor.
};

}  // namespace fjord::visitors
