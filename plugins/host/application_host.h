#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "fjord/plugins/plugin.h"
#include "plugin_protocol.h"

namespace fjord::plugins {

/// The application of one task, in the task's process. Exceptions caused by a document become its status; others are
/// passed on.
class ApplicationHost {
 public:
  explicit ApplicationHost(const PluginRegistry& registry) : registry_(registry) {}

  /// Handles CreateApplication, which comes first, and Map to MapApart.
  HostAnswer handle(const HostRequest& request);

 private:
  HostAnswer create(const HostRequest& request);
  HostAnswer map(std::string_view batch, bool apart);
  HostAnswer combine(std::string_view batch);
  HostAnswer reduce(std::string_view batch);

  const PluginRegistry& registry_;
  std::shared_ptr<const DocumentTypeRepo> types_;
  std::unique_ptr<mapreduce::ApplicationParameters> parameters_;
  std::unique_ptr<ApplicationContext> context_;
  std::unique_ptr<mapreduce::JobFunctions> functions_;
};

}  // namespace fjord::plugins
