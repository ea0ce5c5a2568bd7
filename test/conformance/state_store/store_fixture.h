#pragma once

#include <memory>
#include <string>

#include "fjord/fleetcontroller/cluster_state_store.h"

namespace fjord::fleetcontroller::test {

/// The shared records of one kind of store; makes the members that access them.
class StoreFixture {
 public:
  virtual ~StoreFixture() = default;
  virtual std::unique_ptr<ClusterStateStore> make_member() = 0;
  /// True if several members may exist at once.
  virtual bool has_elections() const = 0;
};

std::unique_ptr<StoreFixture> make_memory_fixture();
std::unique_ptr<StoreFixture> make_leveldb_fixture();
/// Starts a server on a free local port, in a temporary folder; it ends with the fixture. Returns null, with a reason
/// on standard error, if ZooKeeper is not installed.
std::unique_ptr<StoreFixture> make_zookeeper_fixture();

}  // namespace fjord::fleetcontroller::test
