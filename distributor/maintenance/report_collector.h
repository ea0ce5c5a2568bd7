#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "context.h"
#include "maintenance/recovery.h"

namespace fjord::distributor {

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

 private:
  void ask_node(std::uint16_t node);
  void on_reports(std::uint16_t node, Result<rpc::GetBucketInfoReply> reply);

  Context& context_;
  std::map<std::uint16_t, Question> questions_;  ///< Not answered yet.
  Reports reports_;
  UniqueFunction<void(Reports)> done_;
};

}  // namespace fjord::distributor
