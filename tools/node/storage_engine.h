#pragma once

#include <memory>
#include <string>

#include "fjord/common/runtime.h"
#include "fjord/config/cluster_config.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "fjord/storage/storage_node.h"

namespace fjord {

/// What the configuration says of the storage node `index`, but for the number of stripes, which the engine has a say
/// in.
storage::StorageNodeOptions storage_node_options(const config::ClusterConfig& config, std::uint16_t index);

/// What opens the engine that the configuration chose. Lifetime: outlives the engines.
struct StorageEngine {
  unsigned stripes = 1;
  storage::ProviderFactory open;
  std::unique_ptr<SlotfileTunables> tunables;  ///< Null for an engine without.
};

/// The engine of the storage node `index`: what its own section of the configuration says, or else what all have. Looks
/// at what is in `directory` already, which keeps its number of stripes. `syncs` is where files are synced in the
/// background. Lifetime: `runtime` and `syncs` outlive the engines.
/// Errors: InvalidArgument (the folder was made by another engine); those of the engines.
Result<StorageEngine> choose_storage_engine(const config::ClusterConfig& config, std::uint16_t index,
                                            const std::string& directory, unsigned stripes, Runtime& runtime,
                                            Executor& syncs);

}  // namespace fjord
