#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/result.h"
#include "fjord/monitoring/metric_page.h"

/// How busy and how full a cluster is, by the metrics that its nodes show. Pure; LoadSampler reads the metrics.
namespace fjord::gateway {

/// A node that shows its metrics.
struct MetricsAddress {
  std::string node;     ///< "storage.1"
  std::string address;  ///< host:port
};

/// The metrics of all nodes at one moment.
struct LoadReading {
  MonotonicTime at;
  std::int64_t unix_us = 0;
  std::vector<Result<MetricPage>> pages;  ///< One for each address, in their order.
};

struct LoadPoint {
  std::int64_t unix_us = 0;
  double reads_per_second = 0;
  double writes_per_second = 0;
  std::optional<double> p50_seconds;  ///< Operations that are not in the background; absent: there were none.
  std::optional<double> p99_seconds;
};

struct OperationLoad {
  std::string operation;  ///< "get", "put", ...
  double per_second = 0;
  std::optional<double> p50_seconds;
  std::optional<double> p99_seconds;
};

/// Absent figures are not known, or of another role.
struct NodeLoadFigures {
  std::string node;
  std::optional<double> cpus;  ///< Processors in use: 1 is one processor that is never idle.
  std::optional<double> resident_bytes;
  std::optional<double> operations_per_second;
  std::optional<double> p99_seconds;
  std::optional<double> visitors;
  std::optional<double> used_bytes;
  std::optional<double> free_bytes;
  std::optional<double> limit_bytes;  ///< With more used bytes, the node refuses puts.
};

struct LoadFigures {
  Duration period{0};
  LoadPoint total;
  std::vector<OperationLoad> operations;  ///< By name.
  std::vector<NodeLoadFigures> nodes;     ///< Nodes whose metrics are known.
  std::vector<std::string> silent;        ///< Nodes whose metrics are not known.
};

/// Returns the figures of the period between two readings of the same addresses. A node that was silent at its
/// beginning has no rates, and does not count in the total.
LoadFigures load_between(const std::vector<MetricsAddress>& addresses, const LoadReading& before,
                         const LoadReading& after);

/// The growth of a quantity, by samples of the last 24 hours.
class Trend {
 public:
  /// Takes at most one sample a minute.
  void add(MonotonicTime at, double value);
  /// Returns the slope of the line through the samples; absent until they span five minutes.
  std::optional<double> per_second() const;
  Duration span() const;

 private:
  struct Sample {
    MonotonicTime at;
    double value = 0;
  };
  std::deque<Sample> samples_;
};

}  // namespace fjord::gateway
