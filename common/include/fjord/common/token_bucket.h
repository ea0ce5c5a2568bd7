#pragma once

#include <cstdint>

#include "fjord/common/clock.h"

namespace fjord {

/// A token bucket for bytes per second. Bytes are counted after they were sent: a sender that exceeds the rate waits
/// afterwards. After a pause at most the bytes of `kBurst` pass at once.
///
/// Threading: confined to the owner.
class TokenBucket {
 public:
  static constexpr Duration kBurst = milliseconds(500);

  /// Sets the rate; 0: no limit.
  void set_rate(std::uint64_t bytes_per_s, MonotonicTime now);
  /// Counts bytes that were sent. A negative number gives back an over-estimate.
  void sent(double bytes, MonotonicTime now);
  /// Returns the time until the next bytes may be sent; 0: now.
  Duration wait(MonotonicTime now);

 private:
  void fill(MonotonicTime now);

  double rate_ = 0;
  double tokens_ = 0;
  MonotonicTime filled_;
};

}  // namespace fjord
