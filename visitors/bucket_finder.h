#pragma once

#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "session_context.h"
#include "visit_buckets.h"

namespace fjord::visitors {

/// Finds the buckets of a visit and the storage node to read each from, by asking the distributors. Finds a bucket
/// again after a pause when its node could not read it.
///
/// Threading: confined to the session's executor.
class BucketFinder {
 public:
  struct Events {
    std::function<void(BucketId, std::uint16_t node)> found;  ///< The bucket may be read from this node.
    std::function<void()> caught_up;                          ///< All buckets that could be found now are found.
    std::function<void()> snapshot_came;                      ///< The first cluster state is known.
    std::function<void()> nodes_changed;                      ///< A newer cluster state is known.
  };

  BucketFinder(SessionContext& context, VisitBuckets& buckets, Events events)
      : context_(context), buckets_(buckets), events_(std::move(events)) {}

  /// `self` keeps the session alive while an answer is handled. To be called before anything else.
  void set_self(std::weak_ptr<BucketFinder> self) { self_ = std::move(self); }
  bool is_over() const { return context_.finished; }

  /// Names the buckets of the visit, so that the distributors are not asked for a list.
  void name_buckets(const std::vector<BucketId>& buckets);
  /// Does all work that is due and that no answer triggers.
  void tick();
  /// Finds the bucket again after a pause, which grows with each repetition.
  void again_later(BucketId bucket, const Status& reason);
  /// Asks a random distributor for a newer cluster state and schema, at most once in a short interval.
  void refresh_info();

  /// Returns true if all buckets of the visit are known.
  bool is_listed() const { return is_listed_; }
  /// Returns true if buckets wait for being found again.
  bool has_waiting() const { return !due_.empty(); }

 private:
  /// Parses the selection to find out which buckets can match. If it does not parse, the servers refuse it.
  void parse_selection();
  /// Returns true if the selection names the buckets; they are then added without asking the distributors for a list.
  bool locate();
  void add_named(BucketId bucket);
  void buckets_known();
  void list_all();
  void on_listed(std::uint64_t listing, Result<rpc::GetBucketNodesReply> reply);
  void listing_failed(const Status& reason);
  void listing_complete();
  void find_due();
  void ask(std::uint16_t distributor, std::vector<BucketId> buckets);
  void on_answer(const std::vector<BucketId>& asked, Result<rpc::GetBucketNodesReply> reply);
  void on_bucket_node(const rpc::BucketNode& found);
  void take_info(const rpc::ClusterInfo& info);

  SessionContext& context_;
  VisitBuckets& buckets_;
  Events events_;
  std::weak_ptr<BucketFinder> self_;

  bool is_refreshing_ = false;
  MonotonicTime refreshed_{-1'000'000'000};
  bool is_listed_ = false;
  bool is_named_ = false;      // The buckets were named and not listed, so some may not exist.
  std::uint64_t listing_ = 0;  // Number of the listing in progress; 0: none.
  std::uint64_t last_listing_ = 0;
  std::size_t listing_open_ = 0;  // Distributors that have not answered the listing.
  std::vector<rpc::BucketNode> listing_found_;
  MonotonicTime next_listing_;
  Duration listing_backoff_{0};
  std::set<std::pair<MonotonicTime, BucketId>> due_;  // Buckets whose nodes have to be found, by the time to do it.
};

}  // namespace fjord::visitors
