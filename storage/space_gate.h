#pragma once

#include <cstdint>

#include "fjord/rpc/messages.h"
#include "space_monitor.h"
#include "stripe_context.h"

namespace fjord::storage {

/// Decides which writes a stripe accepts, depending on the space left on the disk. Confined to the stripe's executor.
class SpaceGate {
 public:
  explicit SpaceGate(StripeContext& context) : context_(context) {}

  /// Sets the space stage and limits that apply from now on.
  void set(SpaceState space);
  const SpaceState& state() const { return space_; }
  /// Returns OK if there is space for the operation. Removes are always allowed, and while throttling a share of the
  /// puts. Errors: NoSpace, Busy.
  Status check(const rpc::StorageOperation& operation);
  /// Returns OK if there is space for entries of `bytes` bytes that another member of the bucket has. Errors: NoSpace.
  Status check_merge(std::uint64_t bytes);

 private:
  StripeContext& context_;
  SpaceState space_;
  std::uint64_t put_bytes_ = 0;  ///< Bytes of the puts accepted since the last measurement of the space.
  /// Bytes accepted at the stage RefuseAll since the last measurement: of writes that other members of the bucket have.
  std::uint64_t last_bytes_ = 0;
  unsigned refused_share_ = 0;  ///< Sum of the percentages of puts to refuse; when it reaches 100, a put is refused.
};

}  // namespace fjord::storage
