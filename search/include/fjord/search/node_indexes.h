#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "fjord/common/runtime.h"
#include "fjord/search/indexed_provider.h"

namespace fjord::search {

/// The indexes of a storage node, one for each stripe. Lifetime: outlives the node's engines; `runtime` outlives it.
class NodeIndexes {
 public:
  using EngineFactory =
      std::function<Result<std::unique_ptr<spi::PersistenceProvider>>(unsigned stripe, unsigned stripes)>;
  /// Opens the index of a stripe.
  using IndexFactory = std::function<Result<std::unique_ptr<IndexStore>>(unsigned stripe, unsigned stripes)>;

  NodeIndexes(std::uint16_t node, Runtime& runtime, IndexFactory open_index, const IndexOptions& options = {});

  /// Returns a factory that adds an index to each engine that `engines` opens.
  EngineFactory indexed(EngineFactory engines);
  /// Must be called when the node is open. `snapshots` have the schemas by which documents are indexed. Lifetime: they
  /// outlive the engines.
  void follow(const rpc::SnapshotHolder& snapshots);

 private:
  NodeFacts facts_;
  Clock& clock_;
  IndexFactory open_index_;
  IndexOptions options_;
};

/// Returns a factory of indexes in memory, which are built again after each start.
NodeIndexes::IndexFactory memory_indexes();

struct DiskIndexesOptions {
  std::string directory;                                ///< Has one folder for each stripe.
  std::size_t recent_bytes_max = std::size_t{1} << 20;  ///< Bytes of new documents that become a segment.
};
/// Returns a factory of indexes in files. After a start a stripe indexes only what its engine has changed since. The
/// setting search.cache_bytes limits what all stripes keep in memory of their files. Lifetime: `runtime` outlives the
/// indexes.
NodeIndexes::IndexFactory disk_indexes(Runtime& runtime, const DiskIndexesOptions& options);

}  // namespace fjord::search
