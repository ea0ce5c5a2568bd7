#pragma once

#include "fjord/common/metrics.h"
#include "fjord/plugins/plugin_directory.h"
#include "idle_processes.h"

namespace fjord::plugins {

/// What all visitors and applications of plugins share. Lifetime: `metrics` outlives it.
struct PluginContext {
  PluginContext(PluginOptions plugin_options, MetricRegistry& metrics);

  /// Counts the failed call of a plugin, and says so.
  void say(const Status& failed_call) const;

  PluginOptions options;
  Counter& started;
  Counter& failed;
  Gauge& refused;
  mutable IdleProcessesByJob idle;
};

}  // namespace fjord::plugins
