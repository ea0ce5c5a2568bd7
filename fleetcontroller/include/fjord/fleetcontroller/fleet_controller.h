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
  /// Name in elections: the controller's address.
  std::string name = "fleetcontroller.0";
  // The nodes and their distribution when the store is still empty. Afterwards the store's record counts.
  std::vector<rpc::Address> distributors;  ///< Addresses by index.
  std::vector<rpc::Address> storage;       ///< Addresses by index.
  std::string distribution;                ///< Text of the DistributionConfig.
  unsigned distribution_bits = 8;
  /// Names of the live settings that have a value in the configuration file.
  std::set<std::string> settings_from_file = {};

  // Defaults of the live settings with the same names (live_config.cpp).
  Duration poll_interval = milliseconds(300);
  Duration poll_timeout = milliseconds(1500);
  /// Time without an answer after which a node is down.
  Duration down_after = milliseconds(1800);
  /// Time of refused connections after which a node is down; 0: refusals count as silence.
  Duration refused_after = milliseconds(400);
  /// Time after a poll in which a distributor may read from a single replica; at most 5/6 of down_after.
  Duration lease = milliseconds(1500);
  Duration pending_max = seconds(20);
  Duration transition_time = Duration(0);
  unsigned crashes_max = 10;
  Duration crash_period = seconds(600);
  Duration stable_period = seconds(60);
  /// Time after the election, at least down_after, in which nodes that were up are not declared down for silence.
  Duration start_grace = milliseconds(2500);
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
