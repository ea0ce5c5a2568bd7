#pragma once

#include "fjord/common/bulk_executor.h"
#include "fjord/common/clock.h"
#include "fjord/common/env.h"
#include "fjord/common/metrics.h"
#include "fjord/common/random.h"
#include "fjord/common/scheduler.h"
#include "fjord/common/tunable.h"

namespace fjord {

/// Everything the outside world decides, given to each node's constructor. There is no default instance.
/// Lifetime: what it refers to outlives every component that was given it. `random` is forked by each component in its
/// constructor and not used later.
struct Runtime {
  Clock& clock;
  Scheduler& scheduler;
  BulkExecutor& bulk;
  Env& env;
  Random& random;
  MetricRegistry& metrics;
  TunableRegistry& tunables;
};

}  // namespace fjord
