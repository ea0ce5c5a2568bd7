#pragma once

#include <memory>
#include <string>

#include "fjord/common/random.h"
#include "fjord/fleetcontroller/cluster_state_store.h"

namespace fjord::fleetcontroller {

struct ZooKeeperOptions {
  std::string servers;          ///< "host:port,host:port,...", the whole ensemble.
  std::string root = "/fjord";  ///< Where the cluster's nodes are; made if it is not there. One path a cluster.
  Duration session_timeout = seconds(6);
};

/// The store in a ZooKeeper ensemble, for clusters with several fleet controllers.
///
/// Below `root`: election/ has an ephemeral sequential node a member, the lowest leads and its number is the term;
/// records/ has a node a record; fence holds the term of the newest leader. A new leader writes the fence before it is
/// told that it leads, and every write checks that the fence is still its own. A leader confirms itself with a write to
/// its own node, which a quorum has to agree to. A record has to be smaller than ZooKeeper's limit for a node (1 MiB as
/// it comes).
///
/// Threading: as the interface. ZooKeeper's threads only post to the executor. Lifetime: as the interface.
class ZooKeeperStateStore final : public ClusterStateStore {
 public:
  /// Connects when campaign() is called; a server that cannot be reached is tried again for ever.
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
