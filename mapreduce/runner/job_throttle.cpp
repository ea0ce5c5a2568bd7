#include "job_throttle.h"

#include <algorithm>
#include <cmath>

#include "fjord/common/traffic.h"

namespace fjord::mapreduce {
namespace {

constexpr Duration kFirstTask = seconds(1);
constexpr Duration kFirstTaskLook = milliseconds(20);
constexpr Duration kWaitMax = seconds(5);  // The longest single wait. After it the caller asks again.

Duration seconds_of(double s) { return Duration(static_cast<std::int64_t>(std::ceil(std::clamp(s, 0.0, 1e9) * 1e6))); }

}  // namespace

void JobThrottle::set(std::uint64_t bytes_per_s, JobSettings::ThrottleBy by, MonotonicTime now) {
  if (bytes_per_s == rate_ && by == by_) return;
  rate_ = bytes_per_s;
  by_ = by;
  bucket_.set_rate(bytes_per_s, now);
  next_ = now;
}

void JobThrottle::bucket_done(std::uint64_t bytes, std::uint64_t documents, unsigned replicas, MonotonicTime now) {
  const double counted = buckets_open_ > 0 ? open_ / buckets_open_ : 0;
  open_ -= counted;
  buckets_open_ = std::max(0.0, buckets_open_ - 1);
  sent_ += static_cast<double>(bytes);
  bucket_.sent(static_cast<double>(bytes) - counted, now);
  ++buckets_done_;
  if (replicas == 0) {
    traffic_ += static_cast<double>(bytes) + traffic::frame_overhead(static_cast<double>(bytes));
  } else if (documents > 0) {
    const double each = static_cast<double>(bytes) / static_cast<double>(documents);
    traffic_ += static_cast<double>(documents) * traffic::put_traffic(replicas, each);
  }
}

Duration JobThrottle::bucket_delay() const {
  if (rate_ == 0 || buckets_done_ == 0) return Duration(0);
  const auto buckets = static_cast<double>(buckets_done_);
  return seconds_of(traffic::bucket_delay_s(traffic_, static_cast<double>(rate_), buckets));
}

Duration JobThrottle::wait(std::size_t buckets, MonotonicTime now) {
  if (asked_) waited_ += now - *asked_;
  asked_.reset();
  if (rate_ == 0) return Duration(0);
  Duration wait = by_ == JobSettings::ThrottleBy::Sent ? bucket_.wait(now) : next_ - now;
  // How much a task sends is unknown until the first one has ended. Until then one task begins per second.
  const bool is_known = buckets_done_ > 0 || !begun_ || now - *begun_ >= kFirstTask;
  if (wait <= Duration(0) && !is_known) wait = kFirstTaskLook;
  if (wait > Duration(0)) {
    asked_ = now;
    return std::min(wait, kWaitMax);
  }
  begun_ = now;
  const auto count = static_cast<double>(buckets);
  const double expected = buckets_done_ == 0 ? 0 : sent_ / static_cast<double>(buckets_done_) * count;
  open_ += expected;
  buckets_open_ += count;
  bucket_.sent(expected, now);
  next_ = std::max(next_, now) + bucket_delay() * static_cast<std::int64_t>(buckets);
  return Duration(0);
}

std::optional<double> HistogramPeriod::end(double quantile) {
  std::uint64_t counts[Histogram::kBuckets + 1];
  std::uint64_t total = 0;
  for (int i = 0; i <= Histogram::kBuckets; ++i) {
    const std::uint64_t now = histogram_.bucket(i);
    counts[i] = now - before_[i];
    before_[i] = now;
    total += counts[i];
  }
  if (total == 0) return std::nullopt;
  double left = quantile * static_cast<double>(total);
  for (int i = 0; i < Histogram::kBuckets; ++i) {
    const auto count = static_cast<double>(counts[i]);
    if (left <= count) {
      const double low = i == 0 ? 0 : Histogram::upper_bound_seconds(i - 1);
      return low + (Histogram::upper_bound_seconds(i) - low) * (count == 0 ? 1 : left / count);
    }
    left -= count;
  }
  return 2 * Histogram::upper_bound_seconds(Histogram::kBuckets - 1);
}

}  // namespace fjord::mapreduce
