#include "fjord/common/token_bucket.h"

#include <algorithm>
#include <chrono>

namespace fjord {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double kBurstSeconds = Seconds(TokenBucket::kBurst).count();
constexpr double kWaitMaxSeconds = 1e9;

}  // namespace

void TokenBucket::fill(MonotonicTime now) {
  const double burst = rate_ * kBurstSeconds;
  tokens_ = std::min(burst, tokens_ + rate_ * Seconds(now - filled_).count());
  filled_ = now;
}

void TokenBucket::set_rate(std::uint64_t bytes_per_s, MonotonicTime now) {
  if (rate_ > 0) fill(now);
  const double before = rate_;
  rate_ = static_cast<double>(bytes_per_s);
  filled_ = now;
  // Bytes sent ahead of the old rate are still owed; the new rate decides how long they take. A limit that is set where
  // there was none begins with a full burst.
  if (before <= 0 || rate_ <= 0) tokens_ = rate_ * kBurstSeconds;
  tokens_ = std::min(tokens_, rate_ * kBurstSeconds);
}

void TokenBucket::sent(double bytes, MonotonicTime now) {
  if (rate_ <= 0) return;
  fill(now);
  tokens_ -= bytes;
}

Duration TokenBucket::wait(MonotonicTime now) {
  if (rate_ <= 0) return Duration(0);
  fill(now);
  if (tokens_ > 0) return Duration(0);
  return std::chrono::ceil<Duration>(Seconds(std::min((1 - tokens_) / rate_, kWaitMaxSeconds)));
}

}  // namespace fjord
