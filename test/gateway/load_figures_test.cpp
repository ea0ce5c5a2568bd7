// Rates, latencies and space of a cluster from the metrics of its nodes.

#include "http/load_figures.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace fjord::gateway {
namespace {

Result<MetricPage> silent() { return Status(StatusCode::Timeout, "silent"); }

/// A distributor that has served a number of operations, of which `slow` took a second and the others a millisecond.
Result<MetricPage> distributor(double gets, double puts, double slow) {
  const double all = gets + puts;
  return MetricPage::parse(
      fmt::format("fjord_process_cpu_seconds {}\nfjord_process_resident_bytes 1000\n"
                  "fjord_distributor_operations_total{{operation=\"get\",outcome=\"applied\"}} {}\n"
                  "fjord_distributor_operations_total{{operation=\"put\",outcome=\"applied\"}} {}\n"
                  "fjord_distributor_operations_total{{operation=\"put\",outcome=\"not_applied\"}} 7\n"
                  "fjord_distributor_foreground_seconds_bucket{{le=\"0.001\"}} {}\n"
                  "fjord_distributor_foreground_seconds_bucket{{le=\"1\"}} {}\n"
                  "fjord_distributor_foreground_seconds_bucket{{le=\"+Inf\"}} {}\n"
                  "fjord_distributor_foreground_seconds_count {}\nfjord_distributor_foreground_seconds_sum 1\n",
                  all / 100, gets, puts, all - slow, all, all, all));
}

Result<MetricPage> storage(double used, double free, double percent = 95, double reserve = 0) {
  return MetricPage::parse(
      fmt::format("fjord_storage_operations_total{{operation=\"put\"}} {}\nfjord_visitor_running 3\n"
                  "fjord_storage_space_used_bytes {}\nfjord_storage_space_free_bytes {}\n"
                  "fjord_setting_value{{setting=\"storage.space_refuse_external_percent\"}} {}\n"
                  "fjord_setting_value{{setting=\"storage.space_reserve_bytes\"}} {}\n",
                  used, used, free, percent, reserve));
}

LoadReading reading(std::int64_t at_s, std::vector<Result<MetricPage>> pages) {
  LoadReading made;
  made.at = {at_s * 1'000'000};
  made.unix_us = at_s;
  made.pages = std::move(pages);
  return made;
}

const std::vector<MetricsAddress> kNodes = {
    {"distributor.0", "a"}, {"distributor.1", "b"}, {"storage.0", "c"}, {"storage.1", "d"}};

TEST_CASE("load: rates and latencies are those of the period, of all distributors together", "[load]") {
  const auto before = reading(10, {distributor(100, 100, 0), distributor(0, 0, 0), storage(100, 900), silent()});
  const auto after = reading(20, {distributor(300, 200, 0), distributor(100, 0, 30), storage(200, 800), silent()});
  const LoadFigures load = load_between(kNodes, before, after);
  CHECK(load.period == seconds(10));
  CHECK(load.total.unix_us == 20);
  CHECK(load.total.reads_per_second == 30);
  CHECK(load.total.writes_per_second == 10);
  // 400 operations, of which 30 took between a millisecond and a second.
  REQUIRE(load.total.p50_seconds);
  CHECK(*load.total.p50_seconds < 0.001);
  REQUIRE(load.total.p99_seconds);
  CHECK(*load.total.p99_seconds > 0.5);
  REQUIRE(load.operations.size() == 2);
  CHECK(load.operations[0].operation == "get");
  CHECK(load.operations[0].per_second == 30);
  CHECK(load.silent == std::vector<std::string>{"storage.1"});
  REQUIRE(load.nodes.size() == 3);
  REQUIRE(load.nodes[0].cpus);
  CHECK(*load.nodes[0].cpus == Approx(0.3));
  CHECK(load.nodes[0].operations_per_second == 30);
  CHECK(load.nodes[1].operations_per_second == 10);
  CHECK(load.nodes[2].operations_per_second == 10);
  CHECK(load.nodes[2].visitors == 3);
  CHECK_FALSE(load.nodes[0].used_bytes);
}

TEST_CASE("load: a node that was silent before has no rates and does not count", "[load]") {
  const auto before = reading(10, {silent(), distributor(0, 0, 0), silent(), silent()});
  const auto after = reading(20, {distributor(5000, 5000, 0), distributor(0, 0, 0), storage(200, 800), silent()});
  const LoadFigures load = load_between(kNodes, before, after);
  CHECK(load.total.reads_per_second == 0);
  CHECK_FALSE(load.total.p99_seconds);
  CHECK_FALSE(load.nodes[0].operations_per_second);
  CHECK(load.nodes[0].resident_bytes == 1000);
  CHECK(load.nodes[2].used_bytes == 200);
}

TEST_CASE("load: a node is full where it refuses puts: at a share of the disk, or at twice the reserve", "[load]") {
  const auto limit = [](Result<MetricPage> page) {
    const std::vector<MetricsAddress> one = {{"storage.0", "a"}};
    std::vector<Result<MetricPage>> pages;
    pages.push_back(std::move(page));
    const LoadReading both = reading(10, std::move(pages));
    return *load_between(one, both, both).nodes[0].limit_bytes;
  };
  CHECK(limit(storage(100, 900, 95, 10)) == 950);
  CHECK(limit(storage(100, 900, 95, 100)) == 800);
  CHECK(limit(storage(100, 900, 101, 0)) == 1000);
  CHECK(limit(storage(100, 900, 95, 5000)) == 0);
}

TEST_CASE("load: growth is the slope of the samples, from five minutes on", "[load]") {
  Trend trend;
  for (int second = 0; second <= 240; second += 2) trend.add({second * std::int64_t{1'000'000}}, 3.0 * second);
  CHECK_FALSE(trend.per_second());
  for (int second = 242; second <= 600; second += 2) trend.add({second * std::int64_t{1'000'000}}, 3.0 * second);
  REQUIRE(trend.per_second());
  CHECK(*trend.per_second() == Approx(3.0));
  CHECK(trend.span() == seconds(600));
}

TEST_CASE("load: samples older than a day do not count", "[load]") {
  Trend trend;
  constexpr std::int64_t kHourUs = 3'600'000'000;
  for (int hour = 0; hour <= 48; ++hour) trend.add({hour * kHourUs}, hour < 24 ? 1e9 : 0.0);
  REQUIRE(trend.per_second());
  CHECK(*trend.per_second() == Approx(0.0));
  CHECK(trend.span() == seconds(24 * 3600));
}

}  // namespace
}  // namespace fjord::gateway
