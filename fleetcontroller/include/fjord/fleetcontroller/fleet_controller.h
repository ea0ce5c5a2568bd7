#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fjord/common/runtime.h"
#include "fjord/fleetcontroller/cluster_state_store.h"
#include "fjord/rpc/transport.h"

namespace fjord::fleetcontroller {

class Controller;

struct FleetControllerOptions {
  /// Under which it takes part in elections: its address.
  std::string name = "fleetcontroller.0";
  /// What the cluster is made of when the store knows nothing yet. Afterwards the store counts.
  std::vector<rpc::Address> distributors;  ///< By index.
  std::vector<rpc::Address> storage;       ///< By index.
  std::string distribution;                ///< Text of the DistributionConfig.
  unsigned distribution_bits = 8;
  /// Names of live settings that the configuration file gives a value for.
  std::set<std::string> settings_from_file = {};

  // Defaults of live settings of the same names (live_config.cpp).
  Duration poll_interval = milliseconds(300);
  Duration poll_timeout = milliseconds(1500);
  /// A node that has not answered for so long is down.
  Duration down_after = milliseconds(1800);
  /// A node whose machine has refused connections for so long is down too; 0: that counts like silence.
  Duration refused_after = milliseconds(400);
  /// A distributor that was polled within this time may read from one replica; at most 5/6 of down_after.
  Duration lease = milliseconds(1500);
  Duration pending_max = seconds(20);
  Duration transition_time = Duration(0);
  unsigned crashes_max = 10;
  Duration crash_period = seconds(600);
  Duration stable_period = seconds(60);
  /// After it was elected the controller waits so long (and at least down_after) for nodes that were up before it calls
  /// them down.
  Duration start_grace = milliseconds(2500);
};

/// What a fleet controller says of itself, for /health.
struct FleetControllerHealth {
  std::string phase;    ///< "standby", "loading", "leading", or "stranded": nodes know more than the records do.
  std::string trouble;  ///< Why it leads and publishes nothing; empty: it does, or does not lead.
};

/// Polls every node, piggybacks the cluster state, and publishes a new version when something changed: first as
/// pending, then, when all have acknowledged it, as active. Of several controllers over one store one leads, and the
/// others wait and answer NotReady with its name. docs/design/0005-cluster-that-changes.md has the rules.
///
/// Threading: `handle` from anywhere; all else on its own executor.
/// Lifetime: `runtime`, `transport` and `store` outlive it; nothing calls it once its destructor has begun.
class FleetController final : public rpc::Service {
 public:
  /// Errors: InvalidArgument (options).
  static Result<std::unique_ptr<FleetController>> open(const FleetControllerOptions& options, Runtime& runtime,
                                                       rpc::Transport& transport, ClusterStateStore& store);
  ~FleetController() override;

  bool handle(rpc::Request& request, rpc::Responder& respond) override;
  /// From every thread.
  FleetControllerHealth health() const;

 private:
  explicit FleetController(std::unique_ptr<Controller> controller);
  std::unique_ptr<Controller> controller_;
};

}  // namespace fjord::fleetcontroller
