#pragma once

#include <map>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/metrics.h"
#include "fjord/rpc/messages.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::storage {

/// What the buckets of a stripe keep of removed entries: for metrics, and to tell the owner of a bucket when there is
/// something to drop. A bucket is counted when it is first asked about, after entries were dropped, and at intervals.
/// In between the oldest entry of the last count is at least as old as the oldest that there is.
///
/// Threading: confined to the stripe. Lifetime: provider and registry outlive it.
class RemovedCensus {
 public:
  RemovedCensus(MetricRegistry& registry, spi::PersistenceProvider& provider, Duration interval);
  ~RemovedCensus();

  /// Sets BucketReport::may_forget and surplus_tokens_us. A bucket that is not counted yet waits for the next pass once
  /// enough entries were looked at in this one.
  void judge(const rpc::GetBucketInfo& question, MonotonicTime now, rpc::BucketReport& report);
  void count_again(BucketId bucket);
  /// All buckets were asked about; `here` are those that exist.
  void end_pass(const std::vector<BucketId>& here);

 private:
  struct Counted {
    spi::RemovedEntries entries;
    MonotonicTime at;
    bool is_valid = false;
  };
  void show(const spi::RemovedEntries& counted, double sign);

  spi::PersistenceProvider& provider_;
  const Duration interval_;
  Gauge& removes_;
  Gauge& tokens_;
  Gauge& removes_due_;
  Gauge& tokens_due_;
  std::map<BucketId, Counted> counted_;
  std::uint64_t looked_at_ = 0;  ///< Entries, in this pass.
};

}  // namespace fjord::storage
