#pragma once

#include <cstdint>
#include <functional>
#include <memory>

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

}  // namespace fjord::search
