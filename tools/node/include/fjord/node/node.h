#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fjord/common/result.h"
#include "fjord/config/cluster_config.h"

namespace fjord::fleetcontroller {
class ClusterStateStore;
}

namespace fjord {

/// Makes a store that is outside of this module, so that only programs that use it link its library.
using StateStoreFactory =
    std::function<std::unique_ptr<fleetcontroller::ClusterStateStore>(const config::ClusterConfig& config)>;

/// One process of a cluster on the real machine: everything that a role consists of, put together. Several of them may
/// live in one process of the operating system (`fjord dev`).
///
/// Threading: made and destroyed on a thread that is none of its own. Destroying it stops it: no call is answered after
/// that, and what was acknowledged is stored.
class Node {
 public:
  virtual ~Node() = default;

  /// Opens the data, locks the folder and listens. Errors: InvalidArgument if the configuration has no such process;
  /// AlreadyExists if another process uses the folder; IoError for an address that is taken; those of the engine.
  /// `zookeeper` makes the store of a fleet controller whose configuration names one.
  static Result<std::unique_ptr<Node>> start(const config::ClusterConfig& config, config::ProcessName name,
                                             const StateStoreFactory& zookeeper = nullptr);

  virtual const std::string& address() const = 0;
  /// Empty if it has none.
  virtual std::string http_address() const = 0;
};

}  // namespace fjord
