#pragma once

#include <array>
#include <vector>

#include "fjord/storage/slotfile/slotfile_provider.h"

namespace fjord::slotfile {

/// The engine's statistics as metrics, with the stripe as label. Those of sampled puts are sums of all stripes, with
/// the class of the slotfile as label.
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
