#pragma once

#include <memory>
#include <string>

#include "fjord/mapreduce/application.h"
#include "plugin_context.h"
#include "plugin_protocol.h"

namespace fjord::plugins {

/// The application as a node knows it: each of its tasks runs in a process with `library`.
mapreduce::ApplicationInfo plugin_application(std::shared_ptr<const PluginContext> shared, std::string library,
                                              const DescribedApplication& described);

}  // namespace fjord::plugins
