#include "plugin_context.h"

#include <utility>

#include "fjord/common/log.h"

namespace fjord::plugins {

PluginContext::PluginContext(PluginOptions plugin_options, MetricRegistry& metrics)
    : options(std::move(plugin_options)),
      started(metrics.counter("fjord_plugin_processes_total", "Processes started for visitors and tasks of plugins.")),
      failed(
          metrics.counter("fjord_plugin_failed_calls_total", "Calls that a plugin answered with an error, or never.")),
      refused(metrics.gauge("fjord_plugin_libraries_refused", "Libraries of the plugin directory that are not used.")) {
}

void PluginContext::say(const Status& failed_call) const {
  if (failed_call.code() == StatusCode::Cancelled) return;
  failed.add();
  log::warning("plugins", "{}", failed_call.message());
}

}  // namespace fjord::plugins
