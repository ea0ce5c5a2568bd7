#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "fjord/common/clock.h"
#include "fjord/common/metrics.h"
#include "job_settings.h"

/// What makes a job slower than it could be: a rate that was asked for, and the foreground.
/// Threading of all: confined to the owner.
namespace fjord::mapreduce {

/// Lets so many bytes a second pass, counted after they were sent: what is sent too much is waited for. After a pause
/// at most the bytes of `kBurst` pass at once.
class TokenBucket {
 public:
  static constexpr Duration kBurst = milliseconds(500);

  /// 0: everything passes.
  void set_rate(std::uint64_t bytes_per_s, MonotonicTime now);
  /// Less than nothing: it was less than had been counted.
  void sent(double bytes, MonotonicTime now);
  /// How long until something may be sent; 0: now.
  Duration wait(MonotonicTime now);

 private:
  void fill(MonotonicTime now);

  double rate_ = 0;
  double tokens_ = 0;
  MonotonicTime filled_;
};

/// When the next tasks of a job may begin so that it keeps to its rate.
///
/// By what is sent: a token bucket over the bytes that ended tasks say they have put or sent; of those that have not
/// ended, what tasks have sent in the mean. By delay: seed 6.4.3, a
/// pause of T_tot / (R * |B|) before each bucket, where T_tot / |B| is what the buckets so far have cost on the wire
/// (seed 6.4.1, put_traffic) or, before the first has ended, what `bucket_bytes_guess` says.
class JobThrottle {
 public:
  void set(std::uint64_t bytes_per_s, JobSettings::ThrottleBy by, MonotonicTime now);
  bool is_on() const { return rate_ > 0; }

  /// A task over one bucket has ended: bytes of tuples that it sent, in so many documents, to so many copies (0: not
  /// put, but sent to the runner).
  void bucket_done(std::uint64_t bytes, std::uint64_t documents, unsigned copies, MonotonicTime now);
  /// How long to wait before so many buckets may begin; 0: they begin now.
  Duration wait(std::size_t buckets, MonotonicTime now);
  /// Seed 6.4.3 for the buckets so far.
  Duration bucket_delay() const;
  /// Time that was waited so far.
  Duration waited() const { return waited_; }

 private:
  std::uint64_t rate_ = 0;
  JobSettings::ThrottleBy by_ = JobSettings::ThrottleBy::Sent;
  TokenBucket bucket_;
  double traffic_ = 0;       ///< Of the buckets that are done.
  double sent_ = 0;          ///< The same without what the wire adds.
  double open_ = 0;          ///< What was counted for buckets that are not done,
  double buckets_open_ = 0;  ///< and how many they are.
  std::uint64_t buckets_done_ = 0;
  std::optional<MonotonicTime> begun_;  ///< The last time.
  MonotonicTime next_;                  ///< By delay: when the next bucket may begin.
  std::optional<MonotonicTime> asked_;
  Duration waited_{0};
};

/// Quantiles of what a histogram observed in a period.
class HistogramPeriod {
 public:
  explicit HistogramPeriod(const Histogram& histogram) : histogram_(histogram) { end(); }
  /// Seconds; nothing if nothing was observed since the last call.
  std::optional<double> end(double quantile = 0.99);

 private:
  const Histogram& histogram_;
  std::uint64_t before_[Histogram::kBuckets + 1] = {};
};

}  // namespace fjord::mapreduce
