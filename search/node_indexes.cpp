#include "fjord/search/node_indexes.h"

#include <utility>

#include "index/disk_index.h"
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

NodeIndexes::IndexFactory disk_indexes(Runtime& runtime, const DiskIndexesOptions& options) {
  Tunable& cache_bytes = runtime.tunables.declare("search.cache_bytes");
  Tunable& eviction = runtime.tunables.declare("search.cache_eviction");
  return [&runtime, &cache_bytes, &eviction, options](unsigned stripe,
                                                      unsigned stripes) -> Result<std::unique_ptr<IndexStore>> {
    // With another number of stripes each stripe has other documents, so the name has both numbers.
    DiskIndexOptions one{.directory =
                             options.directory + "/" + std::to_string(stripe) + "of" + std::to_string(stripes)};
    one.recent_bytes_max = options.recent_bytes_max;
    one.cache_limits = [&cache_bytes, &eviction, stripes] {
      return ListCache::Limits{
          static_cast<std::size_t>(cache_bytes.value()) / stripes,
          eviction.value() == 0 ? affinity::Eviction::LeastRecentlyUsed : affinity::Eviction::LeastFrequentlyUsed};
    };
    FJORD_TRY_ASSIGN(std::unique_ptr<DiskIndex> index, DiskIndex::open(runtime.env, one, &runtime.metrics));
    return std::unique_ptr<IndexStore>(std::move(index));
  };
}

}  // namespace fjord::search
