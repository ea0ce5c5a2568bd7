#pragma once

#include <algorithm>
#include <cstdint>

#include "fjord/client/client_options.h"

namespace fjord {

/// Limits retries to a small part of a client's operations. It is a token bucket: each operation adds a part of a
/// token, time adds tokens, and a retry takes one. Without this limit, retries would prolong a short overload of the
/// cluster.
class RetryBudget {
 public:
  explicit RetryBudget(const ClientOptions& options)
      : per_operation_(static_cast<std::int64_t>(options.retry_budget_percent) * kToken / 100),
        per_second_(static_cast<std::int64_t>(options.retry_budget_per_second) * kToken),
        most_(static_cast<std::int64_t>(options.retry_budget_burst) * kToken),
        left_(most_) {}

  /// Adds a part of a token for an operation that is sent for the first time.
  void operation_sent() { left_ = std::min(most_, left_ + per_operation_); }
  /// Takes a token for a retry; returns false if there is none.
  bool take(MonotonicTime now) {
    const std::int64_t elapsed = std::clamp<std::int64_t>((now - last_).count(), 0, seconds(3600) / microseconds(1));
    const std::int64_t earned = elapsed * per_second_ / 1'000'000;
    if (earned > 0) {
      left_ = std::min(most_, left_ + earned);
      last_ = now;
    }
    if (left_ < kToken) return false;
    left_ -= kToken;
    return true;
  }

 private:
  static constexpr std::int64_t kToken = 1000;

  std::int64_t per_operation_;
  std::int64_t per_second_;
  std::int64_t most_;
  std::int64_t left_;
  MonotonicTime last_;  // time up to which tokens were added
};

}  // namespace fjord
