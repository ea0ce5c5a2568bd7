#include "foreground_cpus.h"

namespace fjord::storage {

ForegroundCpus::ForegroundCpus(Runtime& runtime)
    : scheduler_(runtime.scheduler),
      percent_(runtime.tunables.declare("storage.foreground_cpu_percent")),
      kept_free_(runtime.metrics.gauge("fjord_storage_foreground_cpus",
                                       "Processors that visitors and jobs keep off now, for users' operations")) {}

void ForegroundCpus::end_period(MonotonicTime now) {
  if (operations_.exchange(0, std::memory_order_relaxed) >= kOperationsLeast) busy_ = now;
  if (busy_ && now - *busy_ >= kHold) busy_.reset();
  kept_free_.set(scheduler_.keep_processors_free(busy_ ? static_cast<int>(percent_.value()) : 0));
}

}  // namespace fjord::storage
