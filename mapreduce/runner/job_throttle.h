#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "fjord/common/clock.h"
#include "fjord/common/metrics.h"
#include "fjord/common/token_bucket.h"
#include "job_settings.h"

/// Limits on the speed of jobs: a rate that the user set, and the latency of foreground operations.
/// Threading of all classes: confined to the owner.
namespace fjord::mapreduce {

/// Decides when the next tasks of a job may begin so that the job keeps to its rate. There are two ways.
///
/// ThrottleBy::Sent uses a token bucket for the bytes that ended tasks report as put or sent. A task that has not ended
/// counts with the mean of the ended ones. ThrottleBy::Delay [VDS 2007, 6.4.3] pauses for T_tot / (R * |B|) before each
/// bucket, where T_tot / |B| is the mean wire traffic of the buckets so far (traffic::put_traffic, [VDS 2007, 6.4.1]).
/// Until the first task has ended, both let one task begin per second.
class JobThrottle {
 public:
  void set(std::uint64_t bytes_per_s, JobSettings::ThrottleBy by, MonotonicTime now);
  bool is_on() const { return rate_ > 0; }

  /// Counts the ended task of one bucket. It sent `bytes` bytes of tuples in `documents` documents, each to `replicas`
  /// replicas (0: not put, but sent to the runner).
  void bucket_done(std::uint64_t bytes, std::uint64_t documents, unsigned replicas, MonotonicTime now);
  /// Returns how long `buckets` buckets must wait before they begin. 0: they begin now and are counted.
  Duration wait(std::size_t buckets, MonotonicTime now);
  /// Returns the pause before each bucket [VDS 2007, 6.4.3], computed from the buckets so far; 0 before the first has
  /// ended.
  Duration bucket_delay() const;
  /// Total time waited.
  Duration waited() const { return waited_; }

 private:
  std::uint64_t rate_ = 0;
  JobSettings::ThrottleBy by_ = JobSettings::ThrottleBy::Sent;
  TokenBucket bucket_;
  double traffic_ = 0;       ///< Wire traffic of ended buckets in bytes.
  double sent_ = 0;          ///< Tuples that ended buckets sent, in bytes.
  double open_ = 0;          ///< Bytes counted in advance for buckets that have not ended.
  double buckets_open_ = 0;  ///< Number of buckets that have not ended.
  std::uint64_t buckets_done_ = 0;
  std::optional<MonotonicTime> begun_;  ///< Time at which buckets last began.
  MonotonicTime next_;                  ///< ThrottleBy::Delay: when the next bucket may begin.
  std::optional<MonotonicTime> asked_;
  Duration waited_{0};
};

/// Quantiles of a histogram's observations in a period.
class HistogramPeriod {
 public:
  explicit HistogramPeriod(const Histogram& histogram) : histogram_(histogram) { end(); }
  /// Ends the period and returns its quantile in seconds; nullopt if it had no observations.
  std::optional<double> end(double quantile = 0.99);

 private:
  const Histogram& histogram_;
  std::uint64_t before_[Histogram::kBuckets + 1] = {};
};

}  // namespace fjord::mapreduce
