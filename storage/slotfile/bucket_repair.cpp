#include "bucket_repair.h"

#include <chrono>
#include <span>
#include <utility>

#include "fjord/common/log.h"

namespace fjord::slotfile {

Result<bool> BucketRepair::renew(BucketId bucket) {
  Bucket* found = table_.find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  FJORD_TRY(table_.health());
  if (!found->is_suspect()) {
    found->renewing = false;
    found->renewal_problem = Status::ok();
    return true;
  }
  if (!found->renewal_problem) return std::exchange(found->renewal_problem, Status::ok());
  // A rewrite that began before must not lose anything, so it could not end.
  if (!std::exchange(found->renewing, true)) rewrites_.abandon_of(found->uid);
  context_.may_renew = true;
  if (!rewrites_.is_active()) {
    FJORD_TRY(rewrites_.begin_renewal(*found));
  } else if (!rewrites_.is_waiting()) {
    static_cast<void>(rewrites_.step());  // An error that concerns this bucket is its `renewal_problem`.
  }
  return false;
}

Status BucketRepair::renew_now(BucketId bucket) {
  const Bucket* found = table_.find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  for (bool renewed = !found->is_damaged(); !renewed;) {
    FJORD_TRY_ASSIGN(renewed, renew(bucket));
    if (rewrites_.is_waiting()) static_cast<void>(rewrites_.step_waiting());  // renew() tells of an error.
  }
  return Status::ok();
}

Status BucketRepair::forget_lost(BucketId bucket) {
  Bucket* found = table_.find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  if (!found->is_damaged()) return Status::ok();
  table_.set_damaged(*found);
  for (const auto& slot : found->slots) slot->clear_damage();
  return Status::ok();
}

Status BucketRepair::mark_repaired(BucketId bucket) {
  Bucket* found = table_.find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  if (!found->is_damaged()) return Status::ok();
  table_.set_damaged(*found);
  FJORD_TRY_ASSIGN(const bool renewed, renew(bucket));
  if (!renewed) {
    return Status(StatusCode::NotReady,
                  "the files of " + bucket.to_string() + " are being rewritten; mark it as repaired again later");
  }
  FJORD_TRY(forget_lost(bucket));
  found->damaged = false;
  if (Status saved = table_.commit(table_.edit_of(std::span(&found, 1)), true); !saved) {
    found->damaged = true;
    return saved;
  }
  table_.drop_report(bucket);
  table_.wants_checkpoint = true;
  return Status::ok();
}

void BucketRepair::save_damage(MonotonicTime now) {
  constexpr Duration kAfterFailure = std::chrono::seconds(1);
  if (now < save_at_) return;
  if (const Status saved = table_.save_damage(); !saved) {
    log::warning("slotfile", "damage that was found is not stored yet: {}", saved.to_string());
    save_at_ = now + kAfterFailure;
  }
}

}  // namespace fjord::slotfile
