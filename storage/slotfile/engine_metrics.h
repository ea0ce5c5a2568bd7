#pragma once

#include <array>
#include <vector>

#include "fjord/storage/slotfile/slotfile_provider.h"

namespace fjord::slotfile {

/// Reports the engine's statistics as metrics labelled with the stripe. Metrics of sampled puts are sums over all
/// stripes, labelled with the class of the slotfile.
class EngineMetrics {
 public:
  EngineMetrics(MetricRegistry& registry, unsigned stripe);
  void update(const SlotfileStats& stats);

 private:
  struct Row {
    Gauge& gauge;
    std::uint64_t SlotfileStats::*field;
  };
  struct PutRow {
    Counter& counter;
    std::size_t index;
    std::uint64_t SampledPuts::*field;
  };
  std::vector<Row> rows_;
  std::vector<PutRow> put_rows_;
  std::array<SampledPuts, kEntryClasses> told_;
};

}  // namespace fjord::slotfile
