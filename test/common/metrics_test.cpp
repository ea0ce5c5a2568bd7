#include "fjord/common/metrics.h"

#include <catch2/catch.hpp>

namespace fjord {
namespace {

TEST_CASE("metrics: the same name and labels are the same metric") {
  MetricRegistry registry;
  Counter& a = registry.counter("fjord_x_total", "help", {{"node", "1"}});
  Counter& b = registry.counter("fjord_x_total", "help", {{"node", "1"}});
  Counter& c = registry.counter("fjord_x_total", "help", {{"node", "2"}});
  CHECK(&a == &b);
  CHECK(&a != &c);
  a.add();
  b.add(4);
  CHECK(a.value() == 5);
  CHECK(c.value() == 0);
}

TEST_CASE("metrics: a gauge is set and moved") {
  MetricRegistry registry;
  Gauge& gauge = registry.gauge("fjord_g", "help");
  gauge.set(2.5);
  gauge.add(-1);
  CHECK(gauge.value() == 1.5);
}

TEST_CASE("metrics: entries are sorted and show the metrics themselves") {
  MetricRegistry registry;
  registry.histogram("fjord_b_seconds", "b").observe(seconds(1));
  registry.counter("fjord_a_total", "a", {{"k", "2"}}).add(7);
  registry.counter("fjord_a_total", "a", {{"k", "1"}});
  registry.gauge("fjord_c", "c").set(3);
  const auto entries = registry.entries();
  REQUIRE(entries.size() == 4);
  CHECK(entries[0].labels == Labels{{"k", "1"}});
  CHECK(entries[1].counter->value() == 7);
  CHECK(entries[1].help == "a");
  CHECK(entries[2].name == "fjord_b_seconds");
  CHECK(entries[2].kind == MetricKind::Histogram);
  CHECK(entries[2].histogram->count() == 1);
  CHECK(entries[2].counter == nullptr);
  CHECK(entries[3].gauge->value() == 3);
}

TEST_CASE("histogram: durations fall into the bucket whose bound they do not exceed") {
  Histogram histogram;
  histogram.observe(Duration(-5));
  histogram.observe(Duration(16));
  histogram.observe(Duration(17));
  histogram.observe(Duration(32));
  histogram.observe(seconds(60));
  CHECK(histogram.bucket(0) == 2);
  CHECK(histogram.bucket(1) == 2);
  CHECK(histogram.bucket(Histogram::kBuckets) == 1);
  CHECK(histogram.count() == 5);
  CHECK(histogram.sum_seconds() == Approx(60.000065));
  CHECK(Histogram::upper_bound_seconds(0) == Approx(16e-6));
  CHECK(Histogram::upper_bound_seconds(Histogram::kBuckets - 1) == Approx(33.554432));
}

TEST_CASE("histogram: quantiles are within the bucket of the true value") {
  Histogram histogram;
  CHECK(histogram.quantile_seconds(0.5) == 0);
  for (int ms = 1; ms <= 1000; ++ms) histogram.observe(milliseconds(ms));
  CHECK(histogram.quantile_seconds(0.5) == Approx(0.5).epsilon(0.05));
  CHECK(histogram.quantile_seconds(0.99) == Approx(0.99).epsilon(0.06));
  CHECK(histogram.quantile_seconds(0.01) == Approx(0.01).epsilon(0.3));
  CHECK(histogram.quantile_seconds(0.1) < histogram.quantile_seconds(0.2));
  CHECK(histogram.quantile_seconds(1) <= 1.048577);
}

TEST_CASE("histogram: a batch counts as its operations, and what is too long shows as the last bound") {
  Histogram histogram;
  histogram.observe_many(milliseconds(10), 99);
  histogram.observe_many(seconds(100), 1);
  CHECK(histogram.count() == 100);
  CHECK(histogram.sum_seconds() == Approx(100.99));
  CHECK(histogram.quantile_seconds(0.5) == Approx(0.010).epsilon(0.7));
  CHECK(histogram.quantile_seconds(1) == Approx(33.554432));
}

}  // namespace
}  // namespace fjord
