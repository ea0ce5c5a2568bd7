#pragma once

#include <memory>

#include "fjord/common/random.h"
#include "fjord/rpc/transport.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {

/// Faults of a distributor, made from outside: what it sends and receives is changed as if it had the bug. Without a
/// bug of a distributor everything passes unchanged. Confined to the simulation's thread.
class DistributorFaults {
 public:
  /// `transport` outlives this, and this outlives the distributor.
  DistributorFaults(Bug bug, rpc::Transport& transport, Random random);
  ~DistributorFaults();

  /// The transport that the distributor gets.
  rpc::Transport& transport() { return *transport_; }
  /// Returns the service that stands in for the distributor's `service`, which outlives this object.
  rpc::Service& wrap(rpc::Service& service);

 private:
  Bug bug_;
  std::unique_ptr<rpc::Transport> transport_;
  std::unique_ptr<rpc::Service> service_;
};

}  // namespace fjord::sim
