#include "controller_settings.h"

#include <algorithm>

#include "live_config.h"

namespace fjord::fleetcontroller {

Duration ControllerSettings::duration(std::string_view name, Duration otherwise) const {
  return milliseconds(
      value_or(records_.cluster().config(), name, std::chrono::duration_cast<milliseconds>(otherwise).count()));
}

Duration ControllerSettings::lease() const {
  return std::min(duration("controller.lease", options_.lease), down_after() * 5 / 6);
}

Duration ControllerSettings::maintenance_max() const {
  return milliseconds(value_or_default(records_.cluster().config(), "controller.maintenance_max"));
}

MonitorOptions ControllerSettings::monitor() const {
  MonitorOptions options;
  options.down_after = down_after();
  options.crash_period = duration("controller.crash_period", options_.crash_period);
  options.stable_period = duration("controller.stable_period", options_.stable_period);
  options.refused_after = duration("controller.refused_after", options_.refused_after);
  options.crashes_max =
      static_cast<unsigned>(value_or(records_.cluster().config(), "controller.crashes_max", options_.crashes_max));
  return options;
}

GeneratorOptions ControllerSettings::generator(MonotonicTime elected_at, WallTime now) const {
  const SettingValues& config = records_.cluster().config();
  const NodeTable& nodes = records_.cluster().nodes;
  const auto ratio = [&](std::string_view name) { return static_cast<double>(value_or(config, name, 0)) / 100; };
  GeneratorOptions options;
  options.distribution_bits = static_cast<unsigned>(
      value_or(config, "cluster.distribution_bits", static_cast<std::int64_t>(nodes.distribution_bits)));
  options.down_after = down_after();
  options.grace_until = elected_at + std::max(options_.start_grace, down_after());
  options.transition_time = transition_time();
  options.stop_grace = kStopGrace;
  options.maintenance_max = maintenance_max();
  options.wall_now_us = now.us;
  options.crashes_max = monitor().crashes_max;
  options.storage_up_ratio_min = ratio("controller.storage_up_ratio_min");
  options.distributors_up_ratio_min = ratio("controller.distributors_up_ratio_min");
  options.group_up_ratio_min = ratio("controller.group_up_ratio_min");
  options.exceptions = nodes.exceptions;
  options.exceptions_bits = static_cast<unsigned>(nodes.exceptions_bits);
  options.read_shares = nodes.read_shares;
  return options;
}

Result<DistributionConfig> ControllerSettings::distribution() const {
  FJORD_TRY_ASSIGN(DistributionConfig distribution, DistributionConfig::parse(records_.cluster().nodes.distribution));
  const std::int64_t redundancy =
      value_or(records_.cluster().config(), "cluster.redundancy", distribution.redundancy());
  return distribution.with_redundancy(static_cast<unsigned>(redundancy));
}

BaseSettings ControllerSettings::base() const {
  BaseSettings base;
  for (const SettingDeclaration& setting : settings()) {
    const bool is_own = setting.is_live && setting.used_by == settings_table::kController && setting.has_default();
    if (is_own) base[std::string(setting.name)] = {setting.default_value, kFromProgram};
  }
  const auto source = [&](const char* name) {
    return options_.settings_from_file.contains(name) ? kFromFile : kFromProgram;
  };
  const auto add_duration = [&](const char* name, Duration value) {
    base[name] = {std::chrono::duration_cast<milliseconds>(value).count(), source(name)};
  };
  add_duration(kPollInterval, options_.poll_interval);
  add_duration("controller.down_after", options_.down_after);
  add_duration("controller.refused_after", options_.refused_after);
  add_duration("controller.pending_max", options_.pending_max);
  add_duration("controller.transition_time", options_.transition_time);
  add_duration("controller.crash_period", options_.crash_period);
  add_duration("controller.stable_period", options_.stable_period);
  base["controller.crashes_max"] = {options_.crashes_max, kFromProgram};
  add_duration("controller.lease", std::min<Duration>(options_.lease, down_after() * 5 / 6));
  base["controller.lease"].yields = true;
  const NodeTable& nodes = records_.cluster().nodes;
  base["cluster.distribution_bits"] = {static_cast<std::int64_t>(nodes.distribution_bits), kFromRecord};
  if (const auto distribution = DistributionConfig::parse(nodes.distribution)) {
    base["cluster.redundancy"] = {distribution->redundancy(), kFromRecord};
  }
  return base;
}

}  // namespace fjord::fleetcontroller
