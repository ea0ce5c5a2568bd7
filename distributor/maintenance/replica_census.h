#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "context.h"

namespace fjord::distributor {

/// Asks storage nodes whether they still have the replicas that the distributor counts on, some buckets at a time in
/// turns. A replica can only go by an order of its owner; if one is missing nevertheless, its files or those of the
/// node were removed, and the bucket has to be collected again. Confined to the executor.
class ReplicaCensus {
 public:
  /// `on_missing` is called with buckets of which a member has no replica, and not again before forget().
  ReplicaCensus(Context& context, std::function<void(const std::vector<BucketId>&)> on_missing)
      : context_(context), on_missing_(std::move(on_missing)) {}

  /// Asks about the next buckets, unless an answer about earlier ones has not come yet.
  void look();
  /// Drops the questions that have no answer yet.
  void forget();

 private:
  /// Entries whose replicas were asked for.
  using Asked = std::vector<BucketTicket>;
  void ask(std::uint16_t node, Asked asked);
  void report_missing();
  void on_reports(std::uint16_t node, const Asked& asked, const rpc::GetBucketInfoReply& reply);

  Context& context_;
  std::function<void(const std::vector<BucketId>&)> on_missing_;
  std::uint64_t cursor_ = 0;  ///< Key of the bucket at which the next look begins.
  std::uint64_t round_ = 0;   ///< Answers to questions of an earlier round are dropped.
  std::size_t questions_ = 0;
  std::set<BucketId> missing_;  ///< Buckets that the answers of this round have shown to lack a replica.
};

}  // namespace fjord::distributor
