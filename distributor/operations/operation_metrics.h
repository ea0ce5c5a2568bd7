#pragma once

#include "fjord/common/metrics.h"
#include "fjord/rpc/messages.h"

namespace fjord::distributor {

struct OperationMetrics {
  explicit OperationMetrics(MetricRegistry& metrics);
  void count(rpc::OperationKind kind, const Status& status, Duration took);

  struct PerKind {
    Counter& applied;
    Counter& not_applied;
    Counter& in_doubt;
    Histogram& seconds;
  };
  PerKind get;
  PerKind put;
  PerKind remove;
  PerKind update;
  Histogram& foreground_seconds;  ///< Durations of operations that are not in the background.
  Counter& duplicates;
  Counter& known_tokens;
  Counter& parts;
  Gauge& pending;
  MetricRegistry& registry;  ///< Holds the counters by reason, each created when the reason first occurs.
};

}  // namespace fjord::distributor
