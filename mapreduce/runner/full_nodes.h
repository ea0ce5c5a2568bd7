#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "fjord/common/executor.h"
#include "fjord/common/unique_function.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"

namespace fjord::mapreduce {

/// Storage nodes that refuse puts for lack of space, and the buckets that they hold.
class FullNodes {
 public:
  /// `reason`: measured use, limit and setting.
  void add(std::uint16_t node, std::string reason) { nodes_[node] = std::move(reason); }
  void add_bucket(BucketId bucket) {
    buckets_.insert(bucket);
    bits_.insert(bucket.used_bits());
  }

  bool is_empty() const { return nodes_.empty(); }
  const std::map<std::uint16_t, std::string>& nodes() const { return nodes_; }
  /// True if a document with this location is refused: its bucket belongs on one of the nodes, or one of them holds it
  /// although it should not, as a node does that is being emptied.
  bool refuse(const rpc::ClusterSnapshot& snapshot, std::uint64_t location) const;
  /// Returns the nodes with their reasons.
  std::string describe() const;

 private:
  std::map<std::uint16_t, std::string> nodes_;
  std::set<BucketId> buckets_;
  std::set<unsigned> bits_;  ///< Numbers of bits of the members of `buckets_`.
};

/// Asks all storage nodes whether they have space, and the full ones for their buckets. `known`: nodes that have
/// refused a put and count as full whatever they answer. A node that does not answer within a second counts as not
/// full. `done` runs later, on `executor`.
void ask_for_full_nodes(rpc::Transport& transport, const rpc::ClusterSnapshot& snapshot, Executor& executor,
                        FullNodes known, UniqueFunction<void(FullNodes)> done);

}  // namespace fjord::mapreduce
