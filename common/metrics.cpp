#include "fjord/common/metrics.h"

#include <algorithm>

#include "fjord/common/check.h"

namespace fjord {

namespace {

constexpr std::int64_t kFirstBoundUs = 16;

std::int64_t upper_bound_us(int i) { return kFirstBoundUs << i; }

}  // namespace

double Histogram::upper_bound_seconds(int i) {
  FJORD_CHECK(i >= 0 && i < kBuckets);
  return static_cast<double>(upper_bound_us(i)) * 1e-6;
}

void Histogram::observe_many(Duration duration, std::uint64_t count) {
  const std::int64_t us = std::max<std::int64_t>(duration.count(), 0);
  int i = 0;
  while (i < kBuckets && us > upper_bound_us(i)) ++i;
  buckets_[i].fetch_add(count, std::memory_order_relaxed);
  sum_us_.fetch_add(static_cast<std::uint64_t>(us) * count, std::memory_order_relaxed);
}

std::uint64_t Histogram::count() const {
  std::uint64_t total = 0;
  for (const auto& bucket : buckets_) total += bucket.load(std::memory_order_relaxed);
  return total;
}

double Histogram::sum_seconds() const { return static_cast<double>(sum_us_.load(std::memory_order_relaxed)) * 1e-6; }

std::uint64_t Histogram::bucket(int i) const {
  FJORD_CHECK(i >= 0 && i <= kBuckets);
  return buckets_[i].load(std::memory_order_relaxed);
}

double Histogram::quantile_seconds(double q) const {
  std::uint64_t counts[kBuckets + 1];  // One reading of all counters, so that the loop below agrees with `total`.
  std::uint64_t total = 0;
  for (int i = 0; i <= kBuckets; ++i) {
    counts[i] = bucket(i);
    total += counts[i];
  }
  if (total == 0) return 0;
  const double rank = std::clamp(q, 0.0, 1.0) * static_cast<double>(total);
  double below = 0;
  for (int i = 0; i < kBuckets; ++i) {
    const auto here = static_cast<double>(counts[i]);
    if (here > 0 && below + here >= rank) {
      const double lower = i == 0 ? 0.0 : upper_bound_seconds(i - 1);
      return lower + (upper_bound_seconds(i) - lower) * (rank - below) / here;
    }
    below += here;
  }
  return upper_bound_seconds(kBuckets - 1);  // the last bucket has no upper bound, so its lower bound is returned
}

MetricRegistry::Slot& MetricRegistry::slot(const std::string& name, const std::string& help, const Labels& labels,
                                           MetricKind kind) {
  std::lock_guard lock(mutex_);
  auto [it, made] = slots_.try_emplace({name, labels});
  Slot& slot = it->second;
  if (made) {
    slot.help = help;
    slot.kind = kind;
    switch (kind) {
      case MetricKind::Counter:
        slot.counter = std::make_unique<Counter>();
        break;
      case MetricKind::Gauge:
        slot.gauge = std::make_unique<Gauge>();
        break;
      case MetricKind::Histogram:
        slot.histogram = std::make_unique<Histogram>();
        break;
    }
  }
  FJORD_CHECK_MSG(slot.kind == kind, name);
  return slot;
}

Counter& MetricRegistry::counter(const std::string& name, const std::string& help, const Labels& labels) {
  return *slot(name, help, labels, MetricKind::Counter).counter;
}

Gauge& MetricRegistry::gauge(const std::string& name, const std::string& help, const Labels& labels) {
  return *slot(name, help, labels, MetricKind::Gauge).gauge;
}

Histogram& MetricRegistry::histogram(const std::string& name, const std::string& help, const Labels& labels) {
  return *slot(name, help, labels, MetricKind::Histogram).histogram;
}

std::vector<MetricRegistry::Entry> MetricRegistry::entries() const {
  std::lock_guard lock(mutex_);
  std::vector<Entry> result;
  result.reserve(slots_.size());
  for (const auto& [key, slot] : slots_) {
    result.push_back({.name = key.first,
                      .help = slot.help,
                      .labels = key.second,
                      .kind = slot.kind,
                      .counter = slot.counter.get(),
                      .gauge = slot.gauge.get(),
                      .histogram = slot.histogram.get()});
  }
  return result;
}

}  // namespace fjord
