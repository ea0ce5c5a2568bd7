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
  std::string name;  ///< As on the page: a histogram is `x_bucket`, `x_sum` and `x_count`.
  Labels labels;
  double value = 0;
};

/// What one process said at /metrics, at one moment.
///
/// `labels` of the functions below choose series: those that have all of these, whatever else they have.
class MetricPage {
 public:
  /// Reads Prometheus' text format. Errors: Corruption that names the line.
  static Result<MetricPage> parse(std::string_view text);

  /// Sorted by name and labels.
  const std::vector<MetricSample>& samples() const { return samples_; }
  /// Nothing if there is no such series.
  std::optional<double> sum(std::string_view name, const Labels& labels = {}) const;
  const MetricSample* find(std::string_view name, const Labels& exactly) const;
  /// Those of one name.
  std::pair<std::vector<MetricSample>::const_iterator, std::vector<MetricSample>::const_iterator> range(
      std::string_view name) const;

 private:
  std::vector<MetricSample> samples_;
};

/// By how much a counter rose between two pages of one process, all chosen series together. A counter that fell began
/// again at zero; one that was not there before was at zero. Nothing if `after` has no such series.
std::optional<double> counter_increase(const MetricPage& before, const MetricPage& after, std::string_view name,
                                       const Labels& labels = {});

/// How often and how long, in a period: the difference of two pages, of one process or added up over several.
class HistogramPeriod {
 public:
  /// The histogram `name` (without _bucket). Empty if `after` has no such series.
  static HistogramPeriod between(const MetricPage& before, const MetricPage& after, std::string_view name,
                                 const Labels& labels = {});

  void add(const HistogramPeriod& other);
  double count() const { return count_; }
  double sum() const { return sum_; }
  /// Nothing if nothing was counted.
  std::optional<double> mean() const;
  /// Interpolated in its bucket; beyond the last bound that bound. Nothing if nothing was counted.
  std::optional<double> quantile(double q) const;

 private:
  std::map<double, double> buckets_;  ///< By upper bound, each with those below it. Infinity is among them.
  double count_ = 0;
  double sum_ = 0;
};

}  // namespace fjord
