#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/thread_annotations.h"

namespace fjord {

/// A number that only rises. Threading: every thread.
class Counter {
 public:
  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// A number that rises and falls. Threading: every thread.
class Gauge {
 public:
  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  void add(double delta) { value_.fetch_add(delta, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

/// Counts durations in buckets that double from 16 us to 33 s. Threading: every thread.
class Histogram {
 public:
  static constexpr int kBuckets = 22;
  /// Returns the upper bound of bucket i in seconds; the last bucket has none.
  static double upper_bound_seconds(int i);

  void observe(Duration duration) { observe_many(duration, 1); }
  /// Counts `count` operations of a batch, each of which took `duration`.
  void observe_many(Duration duration, std::uint64_t count);
  std::uint64_t count() const;
  double sum_seconds() const;
  std::uint64_t bucket(int i) const;
  /// Returns the interpolated quantile in seconds; 0 if nothing was observed.
  double quantile_seconds(double q) const;

 private:
  std::atomic<std::uint64_t> buckets_[kBuckets + 1]{};
  std::atomic<std::uint64_t> sum_us_{0};
};

using Labels = std::map<std::string, std::string>;

enum class MetricKind { Counter, Gauge, Histogram };

/// Creates metrics by name and labels and keeps all of them; exporters read snapshots.
/// Names follow Prometheus: fjord_<component>_<what>_<unit>[_total]. A metric lives as long as the registry.
/// Threading: every thread.
class MetricRegistry {
 public:
  Counter& counter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge& gauge(const std::string& name, const std::string& help, const Labels& labels = {});
  Histogram& histogram(const std::string& name, const std::string& help, const Labels& labels = {});

  struct Entry {
    std::string name;
    std::string help;
    Labels labels;
    MetricKind kind = MetricKind::Counter;
    const Counter* counter = nullptr;
    const Gauge* gauge = nullptr;
    const Histogram* histogram = nullptr;
  };
  /// Returns all metrics so far, sorted by name and labels.
  std::vector<Entry> entries() const;

 private:
  struct Slot {
    std::string help;
    MetricKind kind = MetricKind::Counter;
    std::unique_ptr<Counter> counter;
    std::unique_ptr<Gauge> gauge;
    std::unique_ptr<Histogram> histogram;
  };
  Slot& slot(const std::string& name, const std::string& help, const Labels& labels, MetricKind kind);

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, Labels>, Slot> slots_ FJORD_GUARDED_BY(mutex_);
};

}  // namespace fjord
