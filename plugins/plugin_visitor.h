#pragma once

#include <memory>
#include <string>

#include "fjord/common/metrics.h"
#include "fjord/plugins/plugin_directory.h"

namespace fjord::plugins {

/// What all visitors of plugins share. Lifetime: `snapshots` and `metrics` outlive it.
struct PluginVisitorContext {
  PluginVisitorContext(PluginOptions plugin_options, const rpc::SnapshotHolder& snapshot_holder,
                       MetricRegistry& metrics);

  PluginOptions options;
  const rpc::SnapshotHolder& snapshots;
  Counter& started;
  Counter& failed;
  Gauge& refused;
};

/// Makes visitors that run as `name` of `library`, in a process for each.
visitors::VisitorFactory plugin_visitor_factory(std::shared_ptr<PluginVisitorContext> shared, std::string library,
                                                std::string name);

}  // namespace fjord::plugins
