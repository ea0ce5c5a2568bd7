#include "fjord/monitoring/metric_text.h"

#include <limits>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <vector>

namespace fjord {
namespace {

prometheus::MetricType type_of(MetricKind kind) {
  switch (kind) {
    case MetricKind::Counter:
      return prometheus::MetricType::Counter;
    case MetricKind::Gauge:
      return prometheus::MetricType::Gauge;
    case MetricKind::Histogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

prometheus::ClientMetric::Histogram to_prometheus(const Histogram& histogram) {
  prometheus::ClientMetric::Histogram result;
  std::uint64_t count = 0;
  for (int i = 0; i <= Histogram::kBuckets; ++i) {
    count += histogram.bucket(i);
    const bool last = i == Histogram::kBuckets;
    result.bucket.push_back(
        {count, last ? std::numeric_limits<double>::infinity() : Histogram::upper_bound_seconds(i)});
  }
  // The count is of the same reading as the buckets, because other threads can change them meanwhile.
  result.sample_count = count;
  result.sample_sum = histogram.sum_seconds();
  return result;
}

}  // namespace

std::string metric_text(const MetricRegistry& registry) {
  std::vector<prometheus::MetricFamily> families;
  for (const MetricRegistry::Entry& entry : registry.entries()) {  // sorted by name
    if (families.empty() || families.back().name != entry.name) {
      families.push_back({entry.name, entry.help, type_of(entry.kind), {}});
    }
    prometheus::ClientMetric metric;
    for (const auto& [name, value] : entry.labels) metric.label.push_back({name, value});
    if (entry.counter != nullptr) metric.counter.value = static_cast<double>(entry.counter->value());
    if (entry.gauge != nullptr) metric.gauge.value = entry.gauge->value();
    if (entry.histogram != nullptr) metric.histogram = to_prometheus(*entry.histogram);
    families.back().metric.push_back(std::move(metric));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace fjord
