#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "context.h"
#include "maintenance/recovery.h"

namespace fjord::distributor {

/// A replica of a bucket that other nodes hold with more bits.
struct Undivided {
  std::uint16_t node = 0;
  BucketId bucket;
  std::uint64_t epoch = 0;  ///< Of its replica set.
};

/// Asks storage nodes what they hold, until all of them have answered. A node that does not answer will be found dead
/// by the fleet controller, and a new cluster state ends the question. Confined to the executor.
class ReportCollector {
 public:
  /// By raw bucket id.
  using Reports = std::map<std::uint64_t, std::vector<ReplicaReport>>;
  struct Question {
    bool all = false;               ///< Every bucket that this distributor owns.
    std::vector<BucketId> buckets;  ///< Otherwise those of these that are there.
  };

  explicit ReportCollector(Context& context) : context_(context) {}

  /// `done` is called once with what all nodes said, and not at all if a new cluster state comes first. Ends an earlier
  /// question.
  void ask(std::map<std::uint16_t, Question> questions, UniqueFunction<void(Reports)> done);
  /// Has replicas split, of which none contains another one on its node; `done` as above, with the reports of the
  /// halves.
  void divide(std::vector<Undivided> replicas, UniqueFunction<void(Reports)> done);

 private:
  void divide_one(std::size_t number);
  void ask_node(std::uint16_t node);
  void on_reports(std::uint16_t node, Result<rpc::GetBucketInfoReply> reply);

  Context& context_;
  std::map<std::uint16_t, Question> questions_;  ///< Not answered yet.
  std::vector<Undivided> undivided_;
  std::size_t undivided_left_ = 0;
  Reports reports_;
  UniqueFunction<void(Reports)> done_;
};

/// The replicas that have to be split next until no bucket contains another one: pure. After a loss of power a node may
/// have a bucket and parts of it; then first the bucket, which adds to its parts.
std::vector<Undivided> find_undivided(const ReportCollector::Reports& reports);

}  // namespace fjord::distributor
