#pragma once

#include "fjord/common/bulk_executor.h"
#include "fjord/common/clock.h"
#include "fjord/common/env.h"
#include "fjord/common/metrics.h"
#include "fjord/common/random.h"
#include "fjord/common/scheduler.h"
#include "fjord/common/tunable.h"

namespace fjord {

/// References to everything outside of a node's control (clock, files, threads, randomness and so on), given to each
/// node's constructor. There is no default instance.
/// Lifetime: the referenced objects outlive every component that gets them. Each component forks `random` in its
/// constructor and does not use it later.
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
