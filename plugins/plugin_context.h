#pragma once

#include "fjord/common/metrics.h"
#include "fjord/plugins/plugin_directory.h"
#include "idle_processes.h"

namespace fjord::plugins {

/// What all visitors and applications of plugins share. Lifetime: `snapshots` and `metrics` outlive it.
struct PluginContext {
  PluginContext(PluginOptions plugin_options, const rpc::SnapshotHolder& snapshot_holder, MetricRegistry& metrics);

  /// Of all document types of the cluster. Errors: NotReady.
  Result<std::vector<std::string>> schemas() const;
  /// Counts the failed call of a plugin, and says so.
  void say(const Status& failed_call) const;

  PluginOptions options;
  const rpc::SnapshotHolder& snapshots;
  Counter& started;
  Counter& failed;
  Gauge& refused;
  mutable IdleProcessesByJob idle;
};

}  // namespace fjord::plugins
