#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/metrics.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/visitors/visitor.h"

namespace fjord::plugins {

struct PluginOptions {
  std::string directory;  ///< Every *.so in it is a plugin. Empty: there are none.
  std::string host;       ///< The program fjord-plugin-host; empty: beside the running program.
  /// Address space of a visitor's process. What does not fit is std::bad_alloc there.
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  /// A call (a block of documents, the end of a bucket) that takes longer ends its process and its visit.
  Duration call_timeout = seconds(60);
};

/// What one library offers, or why it is not used.
struct PluginLibrary {
  std::string file;
  std::string problem;  ///< Empty: it is used.
  std::vector<std::string> visitors;
};

/// Asks each library of the directory, in a process of its own, what it offers, and adds that to `registry`. A library
/// that is broken, of another interface, or offers a name that is taken is left out with a line in the log.
/// Errors: NotFound if the directory or the host is not there.
///
/// Lifetime: `snapshots` and `metrics` outlive `registry`. Blocks.
Result<std::vector<PluginLibrary>> load_plugins(const PluginOptions& options, const rpc::SnapshotHolder& snapshots,
                                                MetricRegistry& metrics, visitors::VisitorRegistry& registry);

}  // namespace fjord::plugins
