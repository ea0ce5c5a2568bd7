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
  std::string directory;  ///< Every *.so in it is a plugin. Empty: there are none.
  std::string host;       ///< The program fjord-plugin-host; empty: beside the running program.
  /// Address space of the process of a visitor or a task. What does not fit is std::bad_alloc there.
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  /// A call (a block of documents, the end of a bucket, a document that is mapped) that takes longer ends its process,
  /// and its visit or document.
  Duration call_timeout = seconds(60);
  /// The process of an application starts when that is configured, and can say then what is wrong with parameters; else
  /// with its first document.
  bool applications_start_at_once = false;
};

/// Asks each library of the directory, in a process of its own, what it offers, and adds that to `visitors` and
/// `applications`. A library that is broken, of another interface, or offers a name that is taken is left out with a
/// line in the log. Errors: NotFound if the directory is not there; IoError if the host is not.
///
/// Lifetime: `metrics` outlives `visitors` and `applications`. Blocks.
Result<std::vector<rpc::PluginLibrary>> load_plugins(const PluginOptions& options, MetricRegistry& metrics,
                                                     visitors::VisitorRegistry& visitors,
                                                     mapreduce::ApplicationRegistry& applications);

/// Answers listPlugins with what load_plugins() returned. Threading: every thread.
class PluginService final : public rpc::Service {
 public:
  explicit PluginService(std::vector<rpc::PluginLibrary> libraries) : libraries_(std::move(libraries)) {}
  bool handle(rpc::Request& request, rpc::Responder& respond) override;

 private:
  const std::vector<rpc::PluginLibrary> libraries_;
};

}  // namespace fjord::plugins
