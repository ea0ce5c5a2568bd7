#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "context.h"
#include "maintenance/recovery.h"

namespace fjord::distributor {

/// A replica that has to be split, because nodes hold parts of its bucket with more bits.
struct Undivided {
  std::uint16_t node = 0;
  BucketId bucket;
  std::uint64_t epoch = 0;  ///< Epoch of its replica set.
};

/// Asks storage nodes for their buckets until all of them have answered. If a node never answers, the fleet controller
/// declares it down, and the new cluster state ends the question. Confined to the executor.
class ReportCollector {
 public:
  /// Reports by raw bucket id.
  using Reports = std::map<std::uint64_t, std::vector<ReplicaReport>>;
  struct Question {
    bool all = false;               ///< Asks for every bucket that this distributor owns.
    std::vector<BucketId> buckets;  ///< Without `all`: asks for these; a node reports those it has.
  };

  explicit ReportCollector(Context& context) : context_(context) {}

  /// Calls `done` once with the reports of all nodes, or never if a new cluster state comes first. Ends an earlier
  /// question.
  void ask(std::map<std::uint16_t, Question> questions, UniqueFunction<void(Reports)> done);
  /// Has these replicas split, of which none contains another one on its node. Calls `done` as above, with the reports
  /// of the halves.
  void divide(std::vector<Undivided> replicas, UniqueFunction<void(Reports)> done);

 private:
  void divide_one(std::size_t number);
  void ask_node(std::uint16_t node);
  void on_reports(std::uint16_t node, Result<rpc::GetBucketInfoReply> reply);

  Context& context_;
  std::map<std::uint16_t, Question> questions_;  ///< Questions without an answer yet.
  std::vector<Undivided> undivided_;
  std::size_t undivided_left_ = 0;
  Reports reports_;
  UniqueFunction<void(Reports)> done_;
};

/// The replicas that have to be split next, until no bucket contains another one. Pure. After a power loss a node may
/// have a bucket and parts of it; then the bucket is split first, which adds to its parts.
std::vector<Undivided> find_undivided(const ReportCollector::Reports& reports);

}  // namespace fjord::distributor
