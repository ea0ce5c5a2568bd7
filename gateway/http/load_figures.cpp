#include "http/load_figures.h"

#include <algorithm>
#include <map>
#include <set>

namespace fjord::gateway {
namespace {

constexpr Duration kSampleEvery = std::chrono::minutes(1);
constexpr Duration kSampleAge = std::chrono::hours(24);
constexpr Duration kSpanMin = std::chrono::minutes(5);

constexpr const char* kOperations = "fjord_distributor_operations_total";
constexpr const char* kOperationSeconds = "fjord_distributor_operation_seconds";
constexpr const char* kForegroundSeconds = "fjord_distributor_foreground_seconds";

bool is_read(const std::string& operation) { return operation == "get"; }

double seconds_of(Duration time) { return std::chrono::duration<double>(time).count(); }

std::set<std::string> operations_of(const MetricPage& page) {
  std::set<std::string> names;
  const auto [begin, end] = page.range(kOperations);
  for (auto sample = begin; sample != end; ++sample) {
    for (const auto& [name, value] : sample->labels) {
      if (name == "operation") names.insert(value);
    }
  }
  return names;
}

/// Returns the used bytes from which a storage node refuses puts, as storage/space_guard.h has it.
std::optional<double> limit_of(const MetricPage& page, double total_bytes) {
  const auto percent = page.sum("fjord_setting_value", {{"setting", "storage.space_refuse_external_percent"}});
  const auto reserve = page.sum("fjord_setting_value", {{"setting", "storage.space_reserve_bytes"}});
  if (!percent || !reserve) return std::nullopt;
  return std::max(0.0, std::min(total_bytes * std::min(1.0, *percent / 100), total_bytes - 2 * *reserve));
}

/// Adds up the pages of one period.
class Totals {
 public:
  explicit Totals(double period_seconds) : seconds_(period_seconds) {}

  NodeLoadFigures add(const std::string& node, const MetricPage* before, const MetricPage& after) {
    NodeLoadFigures figures;
    figures.node = node;
    figures.resident_bytes = after.sum("fjord_process_resident_bytes");
    figures.visitors = after.sum("fjord_visitor_running");
    figures.used_bytes = after.sum("fjord_storage_space_used_bytes");
    figures.free_bytes = after.sum("fjord_storage_space_free_bytes");
    if (figures.used_bytes && figures.free_bytes) {
      figures.limit_bytes = limit_of(after, *figures.used_bytes + *figures.free_bytes);
    }
    if (before == nullptr) return figures;
    figures.cpus = rate(counter_increase(*before, after, "fjord_process_cpu_seconds"));
    if (node.starts_with("distributor.")) {
      add_distributor(*before, after, figures);
    } else if (node.starts_with("storage.")) {
      figures.operations_per_second = rate(counter_increase(*before, after, "fjord_storage_operations_total"));
      figures.p99_seconds = HistogramPeriod::between(*before, after, "fjord_storage_operation_seconds").quantile(0.99);
    } else if (node.starts_with("gateway.")) {
      figures.operations_per_second = rate(counter_increase(*before, after, "fjord_http_requests_total"));
      figures.p99_seconds = HistogramPeriod::between(*before, after, "fjord_http_request_seconds").quantile(0.99);
    }
    return figures;
  }

  LoadPoint total() const {
    LoadPoint point{.p50_seconds = foreground_.quantile(0.5), .p99_seconds = foreground_.quantile(0.99)};
    for (const auto& [name, operation] : operations_) {
      (is_read(name) ? point.reads_per_second : point.writes_per_second) += operation.count / seconds_;
    }
    return point;
  }

  std::vector<OperationLoad> operations() const {
    std::vector<OperationLoad> all;
    for (const auto& [name, operation] : operations_) {
      all.push_back({.operation = name,
                     .per_second = operation.count / seconds_,
                     .p50_seconds = operation.latency.quantile(0.5),
                     .p99_seconds = operation.latency.quantile(0.99)});
    }
    return all;
  }

 private:
  struct Operation {
    double count = 0;
    HistogramPeriod latency;
  };

  std::optional<double> rate(std::optional<double> increase) const {
    return increase ? std::optional(*increase / seconds_) : std::nullopt;
  }

  void add_distributor(const MetricPage& before, const MetricPage& after, NodeLoadFigures& figures) {
    double count = 0;
    for (const std::string& name : operations_of(after)) {
      Operation& operation = operations_[name];
      const double done = counter_increase(before, after, kOperations, {{"operation", name}}).value_or(0);
      operation.count += done;
      operation.latency.add(HistogramPeriod::between(before, after, kOperationSeconds, {{"operation", name}}));
      count += done;
    }
    figures.operations_per_second = count / seconds_;
    const HistogramPeriod foreground = HistogramPeriod::between(before, after, kForegroundSeconds);
    figures.p99_seconds = foreground.quantile(0.99);
    foreground_.add(foreground);
  }

  double seconds_;
  HistogramPeriod foreground_;
  std::map<std::string, Operation> operations_;
};

}  // namespace

LoadFigures load_between(const std::vector<MetricsAddress>& addresses, const LoadReading& before,
                         const LoadReading& after) {
  LoadFigures figures;
  figures.period = after.at - before.at;
  Totals totals(std::max(1e-3, seconds_of(figures.period)));
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (!after.pages[i]) {
      figures.silent.push_back(addresses[i].node);
      continue;
    }
    figures.nodes.push_back(
        totals.add(addresses[i].node, before.pages[i] ? &*before.pages[i] : nullptr, *after.pages[i]));
  }
  figures.total = totals.total();
  figures.total.unix_us = after.unix_us;
  figures.operations = totals.operations();
  return figures;
}

void Trend::add(MonotonicTime at, double value) {
  if (!samples_.empty() && at - samples_.back().at < kSampleEvery) return;
  samples_.push_back({at, value});
  while (at - samples_.front().at > kSampleAge) samples_.pop_front();
}

Duration Trend::span() const { return samples_.empty() ? Duration(0) : samples_.back().at - samples_.front().at; }

std::optional<double> Trend::per_second() const {
  if (span() < kSpanMin) return std::nullopt;
  // Least squares, with times from the first sample on.
  double sum_t = 0;
  double sum_v = 0;
  for (const Sample& sample : samples_) {
    sum_t += seconds_of(sample.at - samples_.front().at);
    sum_v += sample.value;
  }
  const double count = static_cast<double>(samples_.size());
  double covariance = 0;
  double variance = 0;
  for (const Sample& sample : samples_) {
    const double t = seconds_of(sample.at - samples_.front().at) - sum_t / count;
    covariance += t * (sample.value - sum_v / count);
    variance += t * t;
  }
  return variance > 0 ? std::optional(covariance / variance) : std::nullopt;
}

}  // namespace fjord::gateway
