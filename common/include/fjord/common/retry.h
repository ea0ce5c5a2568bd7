#pragma once

#include "fjord/common/status.h"

namespace fjord {

/// What an error means for a caller that may repeat the operation.
enum class RetryClass {
  Done,
  Transient,  ///< The operation was certainly not applied; a retry can succeed.
  InDoubt,    ///< Possibly applied. A retry of an idempotent operation, or with the same idempotency key, decides.
  Permanent,  ///< The operation was certainly not applied; a retry gives the same error.
  Broken,     ///< Possibly applied, and a retry shows nothing new: a disk failed, or a newer peer sent an unknown code.
};

RetryClass retry_class(StatusCode code);

/// Returns whether an idempotent operation that failed with this code may succeed later.
inline bool may_succeed_later(StatusCode code) {
  const RetryClass its = retry_class(code);
  return its == RetryClass::Transient || its == RetryClass::InDoubt;
}

/// Returns whether a read that failed with this code would fail on every node and at any time. NotFound and errors of
/// writes are not permanent: another node may have the data, and a task's write may succeed later.
bool is_permanent_for_read(StatusCode code);

}  // namespace fjord
