#pragma once

#include "fjord/storage/slotfile/slotfile_provider.h"

namespace fjord::slotfile {

/// The engine's statistics as metrics, with the stripe as label.
class EngineMetrics {
 public:
  EngineMetrics(MetricRegistry& registry, unsigned stripe);
  void update(const SlotfileStats& stats);

 private:
  struct Row {
    Gauge& gauge;
    std::uint64_t SlotfileStats::*field;
  };
  std::vector<Row> rows_;
};

}  // namespace fjord::slotfile
