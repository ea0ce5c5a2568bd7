#pragma once

#include <map>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/metrics.h"
#include "fjord/rpc/storage_messages.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::storage {

/// Counts the remove entries in the buckets of a stripe, for metrics, and to tell the owner of a bucket when it has old
/// ones to drop. A bucket is counted at its first report, after entries were dropped, and at intervals. Between two
/// counts, the oldest time that the last count found is a lower bound for the oldest remove entry.
///
/// Threading: confined to the stripe. Lifetime: provider and registry outlive it.
class RemoveEntryCounter {
 public:
  RemoveEntryCounter(MetricRegistry& registry, spi::PersistenceProvider& provider, Duration interval);
  ~RemoveEntryCounter();

  /// Sets BucketReport::may_forget and surplus_tokens_us. If this pass has looked at enough entries, a bucket that is
  /// due for a count waits for the next pass.
  void judge(const rpc::GetBucketInfo& question, MonotonicTime now, rpc::BucketReport& report);
  /// Marks the bucket to be counted again in the next pass.
  void count_again(BucketId bucket);
  /// Ends a pass in which all buckets were asked about. `here` lists the existing buckets, sorted; the others are
  /// forgotten.
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
  std::uint64_t looked_at_ = 0;  ///< Number of entries looked at in this pass.
};

}  // namespace fjord::storage
