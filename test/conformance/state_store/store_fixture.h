#pragma once

#include <memory>
#include <string>

#include "fjord/fleetcontroller/cluster_state_store.h"

namespace fjord::fleetcontroller::test {

/// What keeps the records of one kind of store, and makes members of it.
class StoreFixture {
 public:
  virtual ~StoreFixture() = default;
  virtual std::unique_ptr<ClusterStateStore> make_member() = 0;
  /// Several may be there at once.
  virtual bool has_elections() const = 0;
};

std::unique_ptr<StoreFixture> make_memory_fixture();
std::unique_ptr<StoreFixture> make_leveldb_fixture();
/// Starts a server on a free port of this machine, in a temporary folder; it ends with the fixture. Null, with a reason
/// on standard error, if ZooKeeper is not installed.
std::unique_ptr<StoreFixture> make_zookeeper_fixture();

}  // namespace fjord::fleetcontroller::test
