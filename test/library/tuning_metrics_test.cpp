#include "tuning_metrics.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace fjord {
namespace {

Result<MetricPage> distributor(int gets, int puts, int conditions, int refused, int slow) {
  const std::string seconds = "fjord_distributor_operation_seconds";
  const int count = gets + puts + conditions;
  return MetricPage::parse(
      fmt::format("fjord_distributor_operations_total{{operation=\"get\",outcome=\"applied\"}} {}\n"
                  "fjord_distributor_operations_total{{operation=\"update\",outcome=\"applied\"}} {}\n"
                  "fjord_distributor_operations_total{{operation=\"update\",outcome=\"not_applied\"}} {}\n"
                  "fjord_distributor_not_applied_total{{reason=\"TEST_AND_SET_FAILED\"}} {}\n"
                  "fjord_distributor_refused_total{{class=\"normal\",reason=\"full\"}} {}\n"
                  "fjord_distributor_pending_operations 7\n"
                  "{}_bucket{{operation=\"get\",le=\"0.01\"}} {}\n{}_bucket{{operation=\"get\",le=\"0.1\"}} {}\n"
                  "{}_bucket{{operation=\"get\",le=\"+Inf\"}} {}\n{}_count{{operation=\"get\"}} {}\n"
                  "{}_sum{{operation=\"get\"}} {}\n",
                  gets, puts, conditions, conditions, refused, seconds, count - slow, seconds, count, seconds, count,
                  seconds, count, seconds, 0.01 * count));
}

Result<MetricPage> storage(double docblocks, int running, int queued, int visitors_max, double used) {
  return MetricPage::parse(fmt::format(
      "fjord_visitor_docblocks_total {}\nfjord_visitor_docblock_bytes_total {}\nfjord_visitor_running {}\n"
      "fjord_visitor_queued {}\nfjord_storage_operations_total{{operation=\"get\"}} {}\n"
      "fjord_storage_maintenance_throttled_ms_total {}\nfjord_setting_value{{setting=\"storage.visitors_max\"}} {}\n"
      "fjord_storage_space_used_bytes {}\nfjord_storage_space_free_bytes {}\n",
      docblocks, docblocks * 1e6, running, queued, 1000 * docblocks, 5 * docblocks, visitors_max, used, 100 - used));
}

ClusterReading reading(std::int64_t at_s, std::vector<Result<MetricPage>> pages) {
  ClusterReading made;
  made.at = MonotonicTime{at_s * 1'000'000};
  made.pages = std::move(pages);
  for (const auto& page : made.pages) REQUIRE((page || page.error().code() == StatusCode::Timeout));
  return made;
}

Result<MetricPage> silent() { return Status(StatusCode::Timeout, "silent"); }

}  // namespace

TEST_CASE("tune metrics: rates, times and shares of a period, of all nodes together") {
  const auto before =
      reading(100, {distributor(1000, 500, 100, 0, 500), storage(10, 2, 0, 5, 10), storage(0, 1, 0, 3, 20)});
  const auto after =
      reading(110, {distributor(1800, 600, 200, 50, 500), storage(110, 1, 4, 5, 30), storage(100, 3, 1, 3, 20)});
  const tuner::PeriodFigures figures = figures_between(before, after);
  CHECK(figures.seconds == 10);
  CHECK(figures.nodes_read == 3);
  CHECK(figures.nodes_silent == 0);
  CHECK(figures.reads_per_s == 80);
  CHECK(figures.writes_per_s == 20);  // A conditional write counts as answered even if its condition does not hold.
  CHECK(figures.failed_per_s == 5);
  CHECK(figures.operations == 1050);
  CHECK(figures.pending == 7);
  CHECK(*figures.mean_s == Approx(0.01));
  CHECK(*figures.p99_s <= 0.01);  // The slow operations were before the period.
  CHECK(figures.docblocks_per_s == 20);
  CHECK(figures.scan_bytes_per_s == Approx(20e6));
  CHECK(figures.visitors_running == 2);
  CHECK(figures.visitors_queued == 5);
  CHECK(figures.node_operations_per_s == 20'000);
  CHECK(figures.throttled_share == Approx(0.1));
  CHECK(figures.fullest_used_share == Approx(0.3));
  CHECK(settings_in_use(after).at("storage.visitors_max") == 3);
}

TEST_CASE("tune metrics: a node that is silent at one end of the period is left out and counted") {
  const auto before = reading(0, {distributor(0, 0, 0, 0, 0), silent(), storage(0, 0, 0, 5, 10)});
  const auto after = reading(1, {distributor(10, 0, 0, 0, 0), storage(5, 0, 0, 5, 10), silent()});
  const tuner::PeriodFigures figures = figures_between(before, after);
  CHECK(figures.nodes_read == 1);
  CHECK(figures.nodes_silent == 2);
  CHECK(figures.reads_per_s == 10);
  CHECK(figures.docblocks_per_s == 0);
}

TEST_CASE("tune metrics: what is measured replaces what is assumed, and each input says where it is from") {
  const auto before = reading(0, {distributor(0, 0, 0, 0, 0), storage(0, 1, 0, 5, 10)});
  const tuner::PeriodFigures figures =
      figures_between(before, reading(10, {distributor(900, 300, 0, 0, 0), storage(50, 1, 0, 5, 10)}));
  const auto origin_of = [](const std::vector<tuner::Input>& inputs, std::string_view name) {
    const auto found = std::find_if(inputs.begin(), inputs.end(), [&](const auto& one) { return one.name == name; });
    REQUIRE(found != inputs.end());
    return found->origin;
  };
  tuner::Workload assumed;
  const auto inputs = take_figures(figures, false, {}, assumed);
  CHECK(assumed.reads_per_s == 90);
  CHECK(assumed.writes_per_s == 30);
  CHECK(assumed.scan_share > 0.01);
  CHECK(assumed.scan_share < 0.95);
  CHECK(origin_of(inputs, "reads_per_s").starts_with("measured"));
  CHECK(origin_of(inputs, "scan_share").starts_with("measured"));
  CHECK(origin_of(inputs, "p99_s").starts_with("measured"));
  CHECK(origin_of(inputs, "latency_target_s") == "assumed");

  // Visits by distributors that look for jobs do not count as visits.
  tuner::Workload unvisited;
  const auto rarely = figures_between(before, reading(10, {distributor(900, 300, 0, 0, 0), storage(30, 1, 0, 5, 10)}));
  CHECK(origin_of(take_figures(rarely, false, {}, unvisited), "scan_share") == "assumed");
  CHECK(unvisited.scan_share == tuner::Workload().scan_share);

  // The workload file says how much visits matter.
  tuner::Workload said;
  said.scan_share = 0.7;
  CHECK(origin_of(take_figures(figures, true, {}, said), "scan_share") == "workload file");
  CHECK(said.scan_share == 0.7);
  CHECK(said.reads_per_s == 90);

  // A period without operations is no workload.
  tuner::Workload idle;
  const auto nothing = take_figures(figures_between(before, before), false, {}, idle);
  CHECK(idle.reads_per_s == tuner::Workload().reads_per_s);
  CHECK(idle.scan_share == tuner::Workload().scan_share);
  CHECK(origin_of(nothing, "reads_per_s") == "assumed");
}

}  // namespace fjord
