#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/metrics.h"
#include "fjord/mapreduce/application.h"
#include "fjord/rpc/transport.h"
#include "fjord/visitors/visitor.h"

namespace fjord::plugins {

struct PluginOptions {
  std::string directory;  ///< Directory of plugins: every *.so in it is one. Empty: no plugins.
  std::string host;       ///< Path of the program fjord-plugin-host; empty: next to the running program.
  /// Address space of the process of a visitor or a task, in bytes. An allocation beyond it throws std::bad_alloc
  /// there.
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  /// Maximum time of a call (a block of documents, the end of a bucket, one mapped document). A longer call ends its
  /// process and fails its visit or document.
  Duration call_timeout = seconds(60);
  /// Starts the process of an application when the application is configured, which reports wrong parameters at once.
  /// If false, its first document starts the process.
  bool applications_start_at_once = false;
};

/// Asks each library of the directory, in a process of its own, for its visitors and applications, and adds these to
/// `visitors` and `applications`. A library is skipped with a line in the log if it is broken, has another interface
/// version or offers a name that is taken. Errors: NotFound if the directory does not exist; IoError if the host does
/// not.
///
/// Lifetime: `metrics` outlives `visitors` and `applications`. Blocks.
Result<std::vector<rpc::PluginLibrary>> load_plugins(const PluginOptions& options, MetricRegistry& metrics,
                                                     visitors::VisitorRegistry& visitors,
                                                     mapreduce::ApplicationRegistry& applications);

/// Answers listPlugins with the result of load_plugins(). Threading: any thread.
class PluginService final : public rpc::Service {
 public:
  explicit PluginService(std::vector<rpc::PluginLibrary> libraries) : libraries_(std::move(libraries)) {}
  bool handle(rpc::Request& request, rpc::Responder& respond) override;

 private:
  const std::vector<rpc::PluginLibrary> libraries_;
};

}  // namespace fjord::plugins
