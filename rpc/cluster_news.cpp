#include "fjord/rpc/cluster_news.h"

namespace fjord::rpc {

GetClusterInfo question_for_news(const SnapshotHolder& snapshots) {
  GetClusterInfo question;
  if (const auto known = snapshots.get()) {
    question.known_state_version = known->state_version();
    question.known_schema_version = known->schema_version();
    question.known_cluster_id = known->info().cluster_id;
  }
  return question;
}

Result<bool> take_news(SnapshotHolder& snapshots, const Result<GetClusterInfoReply>& answer) {
  if (!answer) return answer.error();
  if (!answer->status) return answer->status;
  if (answer->info.state_version == 0 && answer->info.schema_version == 0) return false;
  return snapshots.update(answer->info);
}

std::vector<std::uint16_t> distributors_up(const ClusterSnapshot& snapshot) {
  std::vector<std::uint16_t> up;
  for (std::size_t i = 0; i < snapshot.info().distributor_addresses.size(); ++i) {
    const auto index = static_cast<std::uint16_t>(i);
    if (snapshot.state().is_up(NodeId::distributor(index))) up.push_back(index);
  }
  return up;
}

Address any_distributor(const ClusterSnapshot* snapshot, const std::vector<Address>& bootstrap, Random& random) {
  if (snapshot != nullptr) {
    const std::vector<std::uint16_t> up = distributors_up(*snapshot);
    const std::vector<Address>& all = snapshot->info().distributor_addresses;
    if (!up.empty()) return all[up[random.below(up.size())]];
    if (!all.empty()) return all[random.below(all.size())];
  }
  return bootstrap.empty() ? Address() : bootstrap[random.below(bootstrap.size())];
}

}  // namespace fjord::rpc
