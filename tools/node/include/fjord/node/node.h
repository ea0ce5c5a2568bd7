#pragma once

#include <memory>
#include <string>

#include "fjord/common/result.h"
#include "fjord/config/cluster_config.h"

namespace fjord {

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
  static Result<std::unique_ptr<Node>> start(const config::ClusterConfig& config, config::ProcessName name);

  virtual const std::string& address() const = 0;
  /// Empty if it has none.
  virtual std::string http_address() const = 0;
};

}  // namespace fjord
