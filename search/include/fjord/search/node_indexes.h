#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "fjord/common/runtime.h"
#include "fjord/search/indexed_provider.h"

namespace fjord::search {

/// The indexes of a storage node, one a stripe. Lifetime: outlives the node's engines; `runtime` outlives it.
class NodeIndexes {
 public:
  using EngineFactory =
      std::function<Result<std::unique_ptr<spi::PersistenceProvider>>(unsigned stripe, unsigned stripes)>;
  /// Opens the index of a stripe.
  using IndexFactory = std::function<Result<std::unique_ptr<IndexStore>>(unsigned stripe, unsigned stripes)>;

  NodeIndexes(std::uint16_t node, Runtime& runtime, IndexFactory open_index, const IndexOptions& options = {});

  /// Returns a factory that adds an index to each engine that `engines` opens.
  EngineFactory indexed(EngineFactory engines);
  /// The node is open; its snapshots have the schemas by which documents are indexed. Lifetime: they outlive the
  /// engines.
  void follow(const rpc::SnapshotHolder& snapshots);

 private:
  NodeFacts facts_;
  Clock& clock_;
  IndexFactory open_index_;
  IndexOptions options_;
};

/// Indexes in memory, which are made anew after each start.
NodeIndexes::IndexFactory memory_indexes();

struct DiskIndexesOptions {
  std::string directory;                                ///< One folder for each stripe is made in it.
  std::size_t recent_bytes_max = std::size_t{1} << 20;  ///< Bytes of new documents at which they become a segment.
};
/// Indexes in files. After a start only what a stripe's engine has changed since is indexed. What all stripes keep in
/// memory of their files is the setting search.cache_bytes. Lifetime: `runtime` outlives the indexes.
NodeIndexes::IndexFactory disk_indexes(Runtime& runtime, const DiskIndexesOptions& options);

}  // namespace fjord::search
