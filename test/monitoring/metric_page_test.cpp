#include "fjord/monitoring/metric_page.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "fjord/monitoring/metric_text.h"

namespace fjord {
namespace {

MetricPage page_of(const MetricRegistry& registry) {
  auto page = MetricPage::parse(metric_text(registry));
  REQUIRE(page);
  return std::move(*page);
}

MetricPage page_of(const std::string& text) {
  auto page = MetricPage::parse(text);
  REQUIRE(page);
  return std::move(*page);
}

}  // namespace

TEST_CASE("metric page: what our own server writes is read back, odd labels included") {
  MetricRegistry registry;
  registry.counter("fjord_a_total", "A.", {{"operation", "put"}, {"outcome", "applied"}}).add(3);
  registry.counter("fjord_a_total", "A.", {{"operation", "get"}, {"outcome", "applied"}}).add(4);
  registry.counter("fjord_a_total", "A.", {{"operation", "get"}, {"outcome", "not_applied"}}).add(5);
  registry.gauge("fjord_b", "B, \"quoted\" {and} odd", {{"path", "a\\b\"c\nd},e"}}).set(-2.5e-7);
  registry.gauge("fjord_inf", "").set(HUGE_VAL);
  const MetricPage page = page_of(registry);
  CHECK(page.sum("fjord_a_total") == 12);
  CHECK(page.sum("fjord_a_total", {{"operation", "get"}}) == 9);
  CHECK(page.sum("fjord_a_total", {{"outcome", "applied"}, {"operation", "get"}}) == 4);
  CHECK_FALSE(page.sum("fjord_a_total", {{"operation", "scan"}}).has_value());
  CHECK_FALSE(page.sum("fjord_a").has_value());
  const MetricSample* odd = page.find("fjord_b", {{"path", "a\\b\"c\nd},e"}});
  REQUIRE(odd != nullptr);
  CHECK(odd->value == -2.5e-7);
  CHECK(std::isinf(*page.sum("fjord_inf")));
}

TEST_CASE("metric page: what is no page of metrics is refused, with the line") {
  for (const char* text :
       {"fjord_a 1\n<html>", "fjord_a{x=\"1\" 2\n", "fjord_a{x=1} 2\n", "fjord_a{x=\"1\"} two\n", "fjord_a\n",
        "1abc 2\n", "fjord_a 1 2 3\n", "fjord_a{x=\"abc", "fjord_a{x=\"1\"y=\"2\"} 1"}) {
    CAPTURE(text);
    const auto page = MetricPage::parse(text);
    REQUIRE_FALSE(page);
    CHECK(page.error().code() == StatusCode::Corruption);
    CHECK(page.error().message().find("line ") != std::string::npos);
  }
  CHECK(MetricPage::parse("# only a comment\n\n")->samples().empty());
  CHECK(page_of("a{x=\"1\",} 2 1700000000\r\n").sum("a") == 2);
}

TEST_CASE("metric page: counters rise, begin again with their process, and appear") {
  const MetricPage before = page_of("a{n=\"1\"} 10\na{n=\"2\"} 100\n");
  const MetricPage after = page_of("a{n=\"1\"} 15\na{n=\"2\"} 7\na{n=\"3\"} 2\n");
  CHECK(counter_increase(before, after, "a") == 5 + 7 + 2);
  CHECK(counter_increase(before, after, "a", {{"n", "1"}}) == 5);
  CHECK_FALSE(counter_increase(before, after, "b").has_value());
}

TEST_CASE("metric page: mean and quantiles of a histogram are those of the period alone") {
  MetricRegistry registry;
  Histogram& get = registry.histogram("fjord_x_seconds", "X.", {{"operation", "get"}});
  Histogram& put = registry.histogram("fjord_x_seconds", "X.", {{"operation", "put"}});
  for (int i = 0; i < 5000; ++i) get.observe(seconds(10));  // Observed long before the period that the page shows.
  const MetricPage before = page_of(registry);
  for (int i = 0; i < 990; ++i) get.observe(milliseconds(1));
  for (int i = 0; i < 10; ++i) get.observe(milliseconds(100));
  for (int i = 0; i < 1000; ++i) put.observe(milliseconds(3));
  const MetricPage after = page_of(registry);

  const HistogramPeriod gets = HistogramPeriod::between(before, after, "fjord_x_seconds", {{"operation", "get"}});
  CHECK(gets.count() == 1000);
  CHECK(*gets.mean() == Approx(0.99e-3 + 1e-3).epsilon(0.001));
  CHECK(*gets.quantile(0.5) > 0.5e-3);
  CHECK(*gets.quantile(0.5) <= 1.024e-3);
  CHECK(*gets.quantile(0.995) > 65e-3);
  CHECK(*gets.quantile(0.995) <= 131.072e-3);

  HistogramPeriod all = gets;
  all.add(HistogramPeriod::between(before, after, "fjord_x_seconds", {{"operation", "put"}}));
  CHECK(all.count() == 2000);
  CHECK(all.count() == HistogramPeriod::between(before, after, "fjord_x_seconds").count());
  CHECK(*all.quantile(0.9) > 2.04e-3);
  CHECK(*all.quantile(0.9) <= 4.1e-3);
  CHECK(all.quantile(0.9) == HistogramPeriod::between(before, after, "fjord_x_seconds").quantile(0.9));

  CHECK_FALSE(HistogramPeriod::between(after, after, "fjord_x_seconds").mean().has_value());
  CHECK_FALSE(HistogramPeriod::between(after, after, "fjord_x_seconds").quantile(0.5).has_value());
}

TEST_CASE("metric page: a process that began again counts from zero, and the last bucket has no end") {
  MetricRegistry old_process;
  for (int i = 0; i < 100; ++i) old_process.histogram("x", "").observe(milliseconds(1));
  MetricRegistry new_process;
  for (int i = 0; i < 40; ++i) new_process.histogram("x", "").observe(seconds(100));
  const HistogramPeriod period = HistogramPeriod::between(page_of(old_process), page_of(new_process), "x");
  CHECK(period.count() == 40);
  CHECK(*period.mean() == Approx(100));
  CHECK(*period.quantile(0.5) == Approx(Histogram::upper_bound_seconds(Histogram::kBuckets - 1)));
}

}  // namespace fjord
