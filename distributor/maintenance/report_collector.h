#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "context.h"
#include "maintenance/recovery.h"

namespace fjord::distributor {

/// A replica that has to be split, because nodes hold parts of its bucket, which use more bits.
struct Undivided {
  std::uint16_t node = 0;
  BucketId bucket;
  std::uint64_t epoch = 0;  ///< Epoch of the replica's set.
};

/// Asks storage nodes for their buckets until all of them have answered. If a node never answers, the fleet controller
/// declares it down, and the new cluster state ends the collection. Confined to the executor.
class ReportCollector {
 public:
  /// Reports by raw bucket id.
  using Reports = std::map<std::uint64_t, std::vector<ReplicaReport>>;
  struct Question {
    bool all = false;               ///< True: asks for every bucket that this distributor owns.
    std::vector<BucketId> buckets;  ///< Without `all`: asks for these buckets; a node reports those that it has.
  };

  explicit ReportCollector(Context& context) : context_(context) {}

  /// Calls `done` once with the reports of all nodes, or never if a new cluster state comes first. Ends an earlier
  /// collection.
  void ask(std::map<std::uint16_t, Question> questions, UniqueFunction<void(Reports)> done);
  /// Asks storage nodes to split these replicas. None contains another one on its node. Calls `done` like ask(), with
  /// the reports of the halves.
  void divide(std::vector<Undivided> replicas, UniqueFunction<void(Reports)> done);

 private:
  void divide_one(std::size_t number);
  void ask_node(std::uint16_t node);
  void on_reports(std::uint16_t node, Result<rpc::GetBucketInfoReply> reply);

  Context& context_;
  std::map<std::uint16_t, Question> questions_;  ///< Questions that have no answer yet, by node.
  std::vector<Undivided> undivided_;
  std::size_t undivided_left_ = 0;
  Reports reports_;
  UniqueFunction<void(Reports)> done_;
};

/// Returns the replicas that have to be split next; repeated until no bucket contains another one. Pure. After a power
/// loss, a node may have a bucket and also parts of it; then the bucket is split first, and its entries are added to
/// its parts.
std::vector<Undivided> find_undivided(const ReportCollector::Reports& reports);

}  // namespace fjord::distributor
