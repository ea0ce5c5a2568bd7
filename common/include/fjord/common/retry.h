#pragma once

#include "fjord/common/status.h"

namespace fjord {

/// The meaning of an error for a caller that may repeat the operation.
enum class RetryClass {
  Done,
  Transient,  ///< Certainly not applied; a retry can succeed.
  InDoubt,    ///< Possibly applied. A retry of an idempotent operation, or with the same idempotency key, tells.
  Permanent,  ///< Certainly not applied; a retry gives the same answer.
  Broken,     ///< Possibly applied, and a retry tells nothing: a disk failed, or the code is of a newer peer.
};

RetryClass retry_class(StatusCode code);

/// Returns whether an idempotent operation that failed so may succeed later.
inline bool may_succeed_later(StatusCode code) {
  const RetryClass its = retry_class(code);
  return its == RetryClass::Transient || its == RetryClass::InDoubt;
}

/// Returns whether a read of a bucket that failed so fails everywhere and always. Another node may have what one did
/// not find. A task may have written while it read: then there may be space again, and another writer may be done.
bool is_permanent_for_read(StatusCode code);

}  // namespace fjord
