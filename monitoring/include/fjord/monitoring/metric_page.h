#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/metrics.h"
#include "fjord/common/result.h"

namespace fjord {

struct MetricSample {
  std::string name;  ///< Name as on the page: a histogram is `x_bucket`, `x_sum` and `x_count`.
  Labels labels;
  double value = 0;
};

/// The metrics of one process at one moment, read from /metrics.
///
/// The argument `labels` of the functions below selects the series that have all of these labels, whatever others they
/// have.
class MetricPage {
 public:
  /// Parses Prometheus' text format. Errors: Corruption with the line.
  static Result<MetricPage> parse(std::string_view text);

  /// Returns all samples, sorted by name and labels.
  const std::vector<MetricSample>& samples() const { return samples_; }
  /// Returns the sum of the selected series; nullopt if there is none.
  std::optional<double> sum(std::string_view name, const Labels& labels = {}) const;
  const MetricSample* find(std::string_view name, const Labels& exactly) const;
  /// Returns the samples of one name.
  std::pair<std::vector<MetricSample>::const_iterator, std::vector<MetricSample>::const_iterator> range(
      std::string_view name) const;

 private:
  std::vector<MetricSample> samples_;
};

/// Returns the increase of a counter between two pages of one process, summed over the selected series. A counter that
/// fell restarted at zero; one that is not in `before` was zero. nullopt if `after` has no such series.
std::optional<double> counter_increase(const MetricPage& before, const MetricPage& after, std::string_view name,
                                       const Labels& labels = {});

/// Count and sum of a histogram in a period: the difference of two pages, of one process or summed over several.
class HistogramPeriod {
 public:
  /// Returns the period of the histogram `name` (without _bucket). Empty if `after` has no such series.
  static HistogramPeriod between(const MetricPage& before, const MetricPage& after, std::string_view name,
                                 const Labels& labels = {});

  void add(const HistogramPeriod& other);
  double count() const { return count_; }
  double sum() const { return sum_; }
  /// Returns nullopt if the count is 0.
  std::optional<double> mean() const;
  /// Interpolates within the bucket; beyond the last bound returns that bound. nullopt if the count is 0.
  std::optional<double> quantile(double q) const;

 private:
  std::map<double, double> buckets_;  ///< Cumulative counts by upper bound, infinity included.
  double count_ = 0;
  double sum_ = 0;
};

}  // namespace fjord
