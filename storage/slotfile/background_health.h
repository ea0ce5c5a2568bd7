#pragma once

#include <string>

#include "fjord/common/clock.h"
#include "fjord/common/status.h"

namespace fjord::slotfile {

/// Whether the background work of a stripe goes well. It logs a failure that repeats once, and again after minutes.
/// Confined to the stripe's executor.
class BackgroundHealth {
 public:
  explicit BackgroundHealth(unsigned stripe) : stripe_(stripe) {}

  /// Returns the error with which work has failed in the last seconds, unless it was a lack of space.
  const Status& status() const { return status_; }
  void note_failure(const Status& status, MonotonicTime now);
  /// Notes a step that did not fail.
  void note_success(MonotonicTime now);

 private:
  unsigned stripe_;
  Status status_;
  MonotonicTime failed_at_;
  MonotonicTime logged_at_;  ///< Time at which `logged_` was logged.
  std::string logged_;
};

}  // namespace fjord::slotfile
