#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fjord/common/runtime.h"
#include "fjord/rpc/transport.h"

namespace fjord::fleetcontroller {

struct FleetControllerOptions {
  std::vector<rpc::Address> distributors;  ///< By index.
  std::vector<rpc::Address> storage;       ///< By index.
  std::string distribution;                ///< Text of the DistributionConfig.
  unsigned distribution_bits = 8;
  /// Where the state and the schemas are kept over restarts.
  std::string directory;
  Duration poll_interval = milliseconds(300);
  Duration poll_timeout = milliseconds(1500);
  /// A node that has not answered for so long is down.
  Duration down_after = milliseconds(1800);
  /// After its own start the controller waits so long for nodes that were up before it calls them down.
  Duration start_grace = milliseconds(2500);
};

/// Polls every node, piggybacks the cluster state, and publishes a new version when something changed. Keeps version
/// and schemas in a file, so that versions rise over restarts.
///
/// Threading: `handle` from anywhere; all else on its own executor.
/// Lifetime: `runtime` and `transport` outlive it; nothing calls it once its destructor has begun.
class FleetController final : public rpc::Service {
 public:
  /// Errors: InvalidArgument (distribution), Corruption or IoError (the state file).
  static Result<std::unique_ptr<FleetController>> open(const FleetControllerOptions& options, Runtime& runtime,
                                                       rpc::Transport& transport);
  ~FleetController() override;

  bool handle(rpc::Request& request, rpc::Responder& respond) override;

 private:
  class Impl;
  explicit FleetController(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fjord::fleetcontroller
