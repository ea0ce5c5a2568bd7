#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fjord/common/runtime.h"
#include "fjord/common/setting.h"
#include "fjord/fleetcontroller/cluster_state_store.h"
#include "fjord/rpc/transport.h"

namespace fjord::fleetcontroller {

class Controller;

struct FleetControllerOptions {
  /// Name in elections: the controller's address.
  std::string name = "fleetcontroller.0";
  // The nodes and their distribution when the store is still empty. Afterwards the store's record counts.
  std::vector<rpc::Address> distributors;  ///< Addresses by index.
  std::vector<rpc::Address> storage;       ///< Addresses by index.
  std::string distribution;                ///< Text of the DistributionConfig.
  unsigned distribution_bits = setting_default("cluster.distribution_bits");
  /// Names of the live settings that have a value in the configuration file.
  std::set<std::string> settings_from_file = {};

  // The next members are defaults of the live settings with the same names (live_config.cpp).
  Duration poll_interval = milliseconds(setting_default("fleetcontroller.poll_interval_ms"));
  Duration poll_timeout = milliseconds(setting_default("fleetcontroller.poll_timeout_ms"));
  /// Time without an answer after which a node is down.
  Duration down_after = milliseconds(setting_default("controller.down_after"));
  /// Time of refused connections after which a node is down; 0: refusals count as silence.
  Duration refused_after = milliseconds(setting_default("controller.refused_after"));
  /// Time after a poll in which a distributor may read from a single replica; at most 5/6 of down_after.
  Duration lease = milliseconds(setting_default("controller.lease"));
  Duration pending_max = milliseconds(setting_default("controller.pending_max"));
  Duration transition_time = milliseconds(setting_default("controller.transition_time"));
  unsigned crashes_max = setting_default("controller.crashes_max");
  Duration crash_period = milliseconds(setting_default("controller.crash_period"));
  Duration stable_period = milliseconds(setting_default("controller.stable_period"));
  /// Time after the election, at least down_after, in which nodes that were up are not declared down for silence.
  Duration start_grace = milliseconds(setting_default("fleetcontroller.start_grace_ms"));
};

/// Health of a fleet controller, for /health.
struct FleetControllerHealth {
  std::string phase;    ///< "standby", "loading", "leading", or "stranded": nodes know more than the records.
  std::string trouble;  ///< Why a leader publishes nothing; empty: it publishes, or does not lead.
};

/// Polls every node, sends the cluster state with the polls, and publishes a new version after a change: first as
/// pending, and as active when all nodes have acknowledged it. Of several controllers over one store one leads. The
/// others answer NotReady with the name of the leader. docs/design/0005-cluster-that-changes.md has the rules.
///
/// Threading: any thread may call `handle`; everything else runs on the controller's own executor.
/// Lifetime: `runtime`, `transport` and `store` outlive it. It must not be called once its destructor has begun.
class FleetController final : public rpc::Service {
 public:
  /// Errors: InvalidArgument if the options are invalid.
  static Result<std::unique_ptr<FleetController>> open(const FleetControllerOptions& options, Runtime& runtime,
                                                       rpc::Transport& transport, ClusterStateStore& store);
  ~FleetController() override;

  bool handle(rpc::Request& request, rpc::Responder& respond) override;
  /// Threading: any thread.
  FleetControllerHealth health() const;

 private:
  explicit FleetController(std::unique_ptr<Controller> controller);
  std::unique_ptr<Controller> controller_;
};

}  // namespace fjord::fleetcontroller
