#pragma once

#include <memory>
#include <string>

#include "fjord/common/random.h"
#include "fjord/fleetcontroller/cluster_state_store.h"

namespace fjord::fleetcontroller {

struct ZooKeeperOptions {
  std::string servers;          ///< "host:port,host:port,...": all servers of the ensemble.
  std::string root = "/fjord";  ///< Path of the cluster's ZooKeeper nodes, one for each cluster; created if missing.
  Duration session_timeout = seconds(6);
};

/// The store in a ZooKeeper ensemble, for clusters with several fleet controllers.
///
/// Below `root`: election/ has an ephemeral sequential node for each member. The lowest one leads, and its number plus
/// one is the term. records/ has a node for each record. fence holds the term of the newest leader. A new leader writes
/// the fence before on_change reports its leadership, and every write checks that the fence is still its own. confirm()
/// writes the leader's own node, which needs a quorum. A record has to be smaller than ZooKeeper's limit for a node (1
/// MiB by default).
///
/// Threading: as the interface. ZooKeeper's threads only post to the executor. Lifetime: as the interface.
class ZooKeeperStateStore final : public ClusterStateStore {
 public:
  /// campaign() connects, and retries servers that cannot be reached without limit.
  ZooKeeperStateStore(ZooKeeperOptions options, Random random);
  ~ZooKeeperStateStore() override;

  void campaign(const std::string& name, Executor& executor, OnLeadership on_change) override;
  void resign() override;
  void leave() override;
  void confirm(std::uint64_t term, OnConfirmed done) override;
  Duration session_timeout() const override;
  void read(std::string_view record, OnRead done) override;
  void write(std::uint64_t term, std::string_view record, std::uint64_t expected, std::string content,
             OnWritten done) override;

 private:
  class Member;
  std::shared_ptr<Member> member_;
};

}  // namespace fjord::fleetcontroller
