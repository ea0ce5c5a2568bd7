#pragma once

#include "damaged_buckets.h"
#include "local_buckets.h"
#include "remove_entry_counter.h"
#include "space_gate.h"
#include "stripe_context.h"

namespace fjord::storage {

/// The parts of a stripe that a merge works with. They outlive the merge.
struct StripeParts {
  StripeContext& context;
  DamagedBuckets& damaged;
  RemoveEntryCounter& removed;
  SpaceGate& space;
  LocalBuckets& buckets;
};

}  // namespace fjord::storage
