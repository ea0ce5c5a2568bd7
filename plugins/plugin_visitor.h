#pragma once

#include <memory>
#include <string>

#include "plugin_context.h"

namespace fjord::plugins {

/// Makes visitors that run as `name` of `library`, each in a process of its own.
visitors::VisitorFactory plugin_visitor_factory(std::shared_ptr<PluginContext> shared, std::string library,
                                                std::string name);

}  // namespace fjord::plugins
