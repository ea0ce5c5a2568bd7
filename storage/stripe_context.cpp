#include "stripe_context.h"

#include "fjord/common/log.h"

namespace fjord::storage {

namespace {

Counter& operations(MetricRegistry& registry, const char* operation) {
  return registry.counter("fjord_storage_operations_total", "Operations applied", {{"operation", operation}});
}

Histogram& operation_seconds(MetricRegistry& registry, const char* operation) {
  return registry.histogram("fjord_storage_operation_seconds", "Time in the storage engine",
                            {{"operation", operation}});
}

}  // namespace

StripeMetrics::StripeMetrics(MetricRegistry& registry)
    : puts(operations(registry, "put")),
      gets(operations(registry, "get")),
      removes(operations(registry, "remove")),
      errors(registry.counter("fjord_storage_errors_total", "Operations that the storage engine could not do")),
      refused(registry.counter("fjord_storage_refused_total",
                               "Operations refused because sender or cluster state were not the current ones")),
      damaged(registry.counter("fjord_storage_damaged_total",
                               "Buckets in which the storage engine met damage, counted each time")),
      repaired(registry.counter("fjord_storage_repaired_total",
                                "Damaged buckets that hold again what their intact replicas hold")),
      merges(registry.counter("fjord_storage_merges_total", "Merges of a bucket from another replica")),
      splits(registry.counter("fjord_storage_bucket_splits_total", "Buckets split into halves")),
      joins(registry.counter("fjord_storage_bucket_joins_total", "Halves joined to buckets")),
      merged_entries(registry.counter("fjord_storage_merged_entries_total", "Entries fetched by merges")),
      dropped_entries(registry.counter("fjord_storage_merge_dropped_entries_total",
                                       "Entries that merges removed: their removes were dropped while the replica was "
                                       "away")),
      refilled(registry.counter("fjord_storage_merge_refilled_total",
                                "Replicas that merges filled from nothing: they had unacknowledged writes "
                                "from before what was dropped while the replica was away")),
      merge_entries_peak(registry.gauge("fjord_storage_merge_entries_peak",
                                        "Most entries of both replicas whose metadata a merge had in memory")),
      throttled(
          registry.counter("fjord_storage_throttled_total", "Puts answered BUSY because the disk is nearly full")),
      no_space(registry.counter("fjord_storage_no_space_total", "Puts and merges refused because the disk is full")),
      put_seconds(operation_seconds(registry, "put")),
      get_seconds(operation_seconds(registry, "get")),
      remove_seconds(operation_seconds(registry, "remove")) {}

void StripeContext::note_write(const Status& written) {
  const bool is_fault = written.code() == StatusCode::IoError || written.code() == StatusCode::Timeout;
  if (is_fault && write_fault.message() != written.message()) {
    log::error("storage", "{}: a write failed: {}", NodeId::storage(options.index).to_string(), written.to_string());
  }
  if (is_fault || written) write_fault = written;
}

Status StripeContext::check_owner(std::uint64_t version, std::uint16_t distributor, BucketId bucket) const {
  if (!failure) return {StatusCode::NotReady, failure.message()};
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot = snapshots.get();
  if (snapshot == nullptr || snapshot->state_version() < version) {
    return {StatusCode::NotReady, "storage node has not got cluster state " + std::to_string(version) + " yet"};
  }
  if (snapshot->state_version() != version || snapshot->distributor_of(bucket) != distributor) {
    return {StatusCode::WrongDistribution, "distributor." + std::to_string(distributor) + " with cluster state " +
                                               std::to_string(version) + " does not own " + bucket.to_string() +
                                               " in cluster state " + std::to_string(snapshot->state_version())};
  }
  return Status::ok();
}

Status StripeContext::check_epoch(BucketId bucket, std::uint64_t epoch) const {
  const Result<ReplicaSet> set = provider->replica_set(bucket);
  if (!set || set->epoch <= epoch) return Status::ok();
  return {StatusCode::WrongDistribution, "sent under an older replica set of " + bucket.to_string()};
}

}  // namespace fjord::storage
