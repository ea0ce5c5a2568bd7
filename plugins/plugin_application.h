#pragma once

#include <memory>
#include <string>

#include "fjord/mapreduce/application.h"
#include "plugin_context.h"
#include "plugin_protocol.h"

namespace fjord::plugins {

/// Description of a plugin's application for a node; each task runs in a process that loads `library`.
mapreduce::ApplicationInfo plugin_application(std::shared_ptr<const PluginContext> shared, std::string library,
                                              const DescribedApplication& described);

}  // namespace fjord::plugins
