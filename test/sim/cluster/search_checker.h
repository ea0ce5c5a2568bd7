#pragma once

#include <cstdint>
#include <string>

#include "fjord/sim/sim_cluster.h"
#include "fjord/sim/sim_transport.h"

namespace fjord::sim {

/// Watches the answers of storage nodes to searches for I18: a node searches only slices of which it holds a whole
/// replica as a member of its set, and under the state that the question names.
class SearchChecker final : public NetworkObserver {
 public:
  /// Lets the checker look into storage nodes. Lifetime: the cluster outlives its messages.
  void watch(SimCluster& cluster) { cluster_ = &cluster; }
  SeeReply see_request(const std::string& from, const std::string& to, const rpc::Request& request) override;
  const std::string& failure() const { return failure_; }
  std::uint64_t answers() const { return answers_; }

 private:
  void see_answer(const std::string& node, const rpc::SearchSlices& question, const rpc::SearchSlicesReply& answer);

  SimCluster* cluster_ = nullptr;
  std::uint64_t answers_ = 0;
  std::string failure_;
};

}  // namespace fjord::sim
