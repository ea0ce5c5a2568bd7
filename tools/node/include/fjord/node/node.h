#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fjord/common/clock.h"
#include "fjord/common/result.h"
#include "fjord/config/cluster_config.h"

namespace fjord::fleetcontroller {
class ClusterStateStore;
}

namespace fjord {

/// Creates a store that another module implements, so that only programs that use it link its library.
using StateStoreFactory =
    std::function<std::unique_ptr<fleetcontroller::ClusterStateStore>(const config::ClusterConfig& config)>;

/// One node of a cluster: all parts of its role on real threads, files and sockets. One process of the operating system
/// can hold several nodes (`fjord dev`).
///
/// Threading: created and destroyed on a thread that does not belong to the node. The destructor stops the node: it
/// answers no call afterwards, and all acknowledged writes are stored.
class Node {
 public:
  virtual ~Node() = default;

  /// Opens the data, locks the folder and listens. Errors: InvalidArgument if the configuration has no such process;
  /// AlreadyExists if another process uses the folder; IoError if the address is taken; those of the engine.
  /// `zookeeper` creates the store of a fleet controller whose configuration names ZooKeeper servers.
  static Result<std::unique_ptr<Node>> start(const config::ClusterConfig& config, config::ProcessName name,
                                             const StateStoreFactory& zookeeper = nullptr);

  /// Makes a node of the cluster say from now on that it stops, in its answers to the fleet controller. It goes on
  /// serving. Without this, an end counts as a crash.
  virtual void announce_stop() {}
  /// Waits at most for `max` until the cluster counts on this node no more; to be called after announce_stop(). Returns
  /// false if it still does, which the fleet controller may take for a crash when the node ends.
  virtual bool wait_until_not_counted_on(Duration max) {
    static_cast<void>(max);
    return true;
  }

  virtual const std::string& address() const = 0;
  /// Returns host:port of the HTTP server; empty without one.
  virtual std::string http_address() const = 0;
};

}  // namespace fjord
