#include "fjord/search/node_indexes.h"

#include <utility>

#include "memory_index.h"

namespace fjord::search {

NodeIndexes::NodeIndexes(std::uint16_t node, Runtime& runtime, IndexFactory open_index, const IndexOptions& options)
    : clock_(runtime.clock), open_index_(std::move(open_index)), options_(options) {
  facts_.node = node;
}

NodeIndexes::EngineFactory NodeIndexes::indexed(EngineFactory engines) {
  return [this, engines = std::move(engines)](unsigned stripe,
                                              unsigned stripes) -> Result<std::unique_ptr<spi::PersistenceProvider>> {
    FJORD_TRY_ASSIGN(std::unique_ptr<spi::PersistenceProvider> engine, engines(stripe, stripes));
    FJORD_TRY_ASSIGN(std::unique_ptr<IndexStore> index, open_index_(stripe, stripes));
    return std::unique_ptr<spi::PersistenceProvider>(
        new IndexedProvider(std::move(engine), std::move(index), facts_, clock_, options_));
  };
}

void NodeIndexes::follow(const rpc::SnapshotHolder& snapshots) {
  facts_.snapshots.store(&snapshots, std::memory_order_release);
}

NodeIndexes::IndexFactory memory_indexes() {
  return [](unsigned, unsigned) -> Result<std::unique_ptr<IndexStore>> {
    return std::unique_ptr<IndexStore>(std::make_unique<MemoryIndex>());
  };
}

}  // namespace fjord::search
