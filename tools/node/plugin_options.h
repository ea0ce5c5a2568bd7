#pragma once

#include "fjord/config/cluster_config.h"
#include "fjord/plugins/plugin_directory.h"

namespace fjord {

inline plugins::PluginOptions plugin_options_of(const config::ClusterConfig& config) {
  plugins::PluginOptions options;
  options.directory = config.plugin_directory;
  options.memory_bytes = static_cast<std::uint64_t>(config.plugin_memory_bytes);
  options.call_timeout = milliseconds(config.plugin_call_timeout_ms);
  return options;
}

}  // namespace fjord
