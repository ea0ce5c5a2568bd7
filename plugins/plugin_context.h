#pragma once

#include "fjord/common/metrics.h"
#include "fjord/plugins/plugin_directory.h"
#include "idle_processes.h"

namespace fjord::plugins {

/// State shared by all visitors and applications of plugins. Lifetime: `metrics` outlives it.
struct PluginContext {
  PluginContext(PluginOptions plugin_options, MetricRegistry& metrics);

  /// Counts and logs a failed call of a plugin, except a cancelled one.
  void say(const Status& failed_call) const;

  PluginOptions options;
  Counter& started;
  Counter& failed;
  Gauge& refused;
  mutable IdleProcessesByJob idle;
};

}  // namespace fjord::plugins
