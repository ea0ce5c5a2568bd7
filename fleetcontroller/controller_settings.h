#pragma once

#include <string_view>

#include "fjord/cluster/distribution.h"
#include "fjord/common/clock.h"
#include "fjord/fleetcontroller/fleet_controller.h"
#include "leader_records.h"
#include "node_monitor.h"
#include "settings_in_force.h"
#include "state_generator.h"

namespace fjord::fleetcontroller {

/// The settings of the fleet controller that are in force: those of the live configuration, else of the options.
///
/// Threading: confined to the controller's executor.
class ControllerSettings {
 public:
  ControllerSettings(const FleetControllerOptions& options, const LeaderRecords& records)
      : options_(options), records_(records) {}

  Duration down_after() const { return duration("controller.down_after", options_.down_after); }
  Duration pending_max() const { return duration("controller.pending_max", options_.pending_max); }
  Duration transition_time() const { return duration("controller.transition_time", options_.transition_time); }
  Duration lease() const;
  Duration maintenance_max() const;
  MonitorOptions monitor() const;
  GeneratorOptions generator(MonotonicTime elected_at, WallTime now) const;
  /// Returns the distribution of the record with the redundancy in force.
  Result<DistributionConfig> distribution() const;
  /// Returns the settings with which this controller started: the values of the options, and the declared defaults of
  /// its other settings.
  BaseSettings base() const;

 private:
  Duration duration(std::string_view name, Duration otherwise) const;

  const FleetControllerOptions& options_;
  const LeaderRecords& records_;
};

}  // namespace fjord::fleetcontroller
