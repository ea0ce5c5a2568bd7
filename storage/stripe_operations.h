#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bucket_loads.h"
#include "damaged_buckets.h"
#include "fjord/rpc/messages.h"
#include "refused_messages.h"
#include "space_gate.h"
#include "stripe_context.h"

namespace fjord::storage {

/// Executes the reads and writes that distributors send to a stripe. Confined to the stripe's executor.
class StripeOperations {
 public:
  StripeOperations(StripeContext& context, DamagedBuckets& damaged, SpaceGate& space, BucketLoads& loads)
      : context_(context), damaged_(damaged), space_(space), loads_(loads) {}

  /// Executes the operations at `indexes` of `request` and writes each result to the same index of `results`. `posted`
  /// is the time at which the operations began to wait for this executor.
  void apply(const rpc::Apply& request, MonotonicTime posted, const std::vector<std::uint32_t>& indexes,
             std::vector<rpc::OperationResult>& results);

 private:
  /// Tells the engine which documents are read next.
  void prefetch_gets(const rpc::Apply& request, std::span<const std::uint32_t> indexes);
  void apply_bucket(const rpc::Apply& request, bool is_copy, std::span<const std::uint32_t> indexes,
                    std::vector<rpc::OperationResult>& results);
  void settle_refused(const rpc::Apply& request, std::span<const std::uint32_t> indexes,
                      std::vector<rpc::OperationResult>& results);
  void flush_writes(const rpc::Apply& request, std::vector<rpc::OperationResult>& results);
  void write_run(const rpc::Apply& request, std::span<const std::uint32_t> run,
                 std::vector<rpc::OperationResult>& results);
  void read(const rpc::StorageOperation& operation, rpc::OperationResult& result);
  void read_token(const rpc::StorageOperation& operation, rpc::OperationResult& result);
  /// Returns OK if the stored version is the one that the sender read before it decided on this conditional write, or
  /// is this write itself, or is older and this replica is not a member of `set`.
  Status compare(const rpc::StorageOperation& operation, const ReplicaSet& set);
  spi::Durability durability_of(const rpc::StorageOperation& operation) const;

  StripeContext& context_;
  DamagedBuckets& damaged_;
  SpaceGate& space_;
  BucketLoads& loads_;
  /// Numbers of messages of which a write was refused for a temporary reason.
  RefusedMessages refused_messages_;
  std::vector<spi::Write> writes_;  // A member only so that its memory is reused.
  std::vector<spi::WriteResult> write_results_;
  std::vector<std::uint32_t> write_indexes_;
  std::vector<spi::DocumentPlace> places_;
};

}  // namespace fjord::storage
