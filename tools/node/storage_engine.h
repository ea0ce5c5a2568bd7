#pragma once

#include <memory>
#include <string>

#include "fjord/common/runtime.h"
#include "fjord/config/cluster_config.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "fjord/storage/storage_node.h"

namespace fjord {

/// Returns the options of the storage node `index`, without the number of stripes, which choose_storage_engine()
/// returns.
storage::StorageNodeOptions storage_node_options(const config::ClusterConfig& config, std::uint16_t index);

/// A factory of the configured engine. Lifetime: must outlive the engines that it opens.
struct StorageEngine {
  unsigned stripes = 1;  ///< Number of stripes of the node.
  storage::ProviderFactory open;
  std::unique_ptr<SlotfileTunables> tunables;  ///< Live settings of the slotfile engine; null for another engine.
};

/// Returns the engine of the storage node `index`: that of the node's own section, or else the common one. Existing
/// data in `directory` keeps its number of stripes. Files are synced in the background on `syncs`. Lifetime: `runtime`
/// and `syncs` must outlive the engines. Errors: InvalidArgument if another engine created the folder; those of the
/// engines.
Result<StorageEngine> choose_storage_engine(const config::ClusterConfig& config, std::uint16_t index,
                                            const std::string& directory, unsigned stripes, Runtime& runtime,
                                            Executor& syncs);

}  // namespace fjord
