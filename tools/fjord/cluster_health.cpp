#include "cluster_health.h"

#include <algorithm>
#include <fmt/format.h>

namespace fjord::cli {
namespace {

class Reasons {
 public:
  explicit Reasons(ClusterHealth& health) : health_(health) {}
  void add(int level, std::string reason) {
    health_.level = std::max(health_.level, level);
    health_.reasons.push_back(std::move(reason));
  }

 private:
  ClusterHealth& health_;
};

}  // namespace

ClusterHealth health_of(const rpc::GetStatusReply& status) {
  ClusterHealth health;
  Reasons reasons(health);
  std::size_t distributors_up = 0;
  for (const rpc::NodeStatus& node : status.nodes) {
    const bool is_distributor = node.node.starts_with("distributor.");
    if (node.state != "up" || !node.reason.empty()) {
      reasons.add(1, fmt::format("{} is {}{}", node.node, node.state, node.reason.empty() ? "" : ": " + node.reason));
      if (node.state != "up") continue;
    }
    if (node.last.state_version != status.info.state_version) {
      reasons.add(1, fmt::format("{} has not taken in state version {} yet", node.node, status.info.state_version));
    }
    if (!node.slow.empty()) reasons.add(1, fmt::format("{} is slow: {}", node.node, node.slow));
    if (is_distributor) {
      ++distributors_up;
      health.buckets += node.last.buckets;
      health.buckets_out_of_sync += node.last.buckets_out_of_sync;
      health.buckets_unavailable += node.last.buckets_unavailable;
      health.buckets_damaged += node.last.buckets_damaged;
    } else {
      health.document_copies += node.last.documents;
      health.bytes += node.last.bytes;
    }
  }
  const std::uint64_t bad = health.buckets_out_of_sync + health.buckets_unavailable;
  health.buckets_in_sync = health.buckets > bad ? health.buckets - bad : 0;
  if (health.buckets_out_of_sync > 0)
    reasons.add(1, fmt::format("{} buckets are out of sync", health.buckets_out_of_sync));
  if (health.buckets_damaged > 0)
    reasons.add(1, fmt::format("{} buckets have a damaged replica: `fjord bucket list`", health.buckets_damaged));
  if (health.buckets_unavailable > 0)
    reasons.add(2, fmt::format("{} buckets cannot be served: `fjord bucket list`", health.buckets_unavailable));
  if (distributors_up == 0) reasons.add(2, "no distributor is up");
  return health;
}

}  // namespace fjord::cli
