#include "tuning_changes.h"

#include <catch2/catch.hpp>

namespace fjord {
namespace {

tuner::Workload workload() { return tuner::parse_workload(tuner::example_workload(), "example").value(); }

std::vector<ConfigurationVersion> versions() {
  return {
      {1, 1'000'000, "someone", {"storage.visitors_max=5"}},
      {2, 2'000'000, "tune-00000001 me@here: first", {"storage.visitors_max=2", "storage.held_bytes_max=128MiB"}},
      {3, 3'000'000, "someone", {"storage.visitors_max=2", "storage.held_bytes_max=128MiB", "cluster.redundancy=3"}}};
}

/// Returns a report that advises to multiply each of these knobs by its factor.
tuner::Report report_of(const std::vector<std::pair<std::string_view, std::int64_t>>& factors) {
  tuner::Report report;
  for (const auto& [name, factor] : factors) {
    tuner::Advice advice;
    advice.knob = tuner::find_knob(name);
    REQUIRE(advice.knob != nullptr);
    advice.old_value = std::max<std::int64_t>(1, tuner::Settings().*(advice.knob->member));
    advice.new_value = factor * advice.old_value;
    report.advice.push_back(advice);
  }
  return report;
}

TuningAdvice advice(const tuner::Report& report) {
  TuningAdvice made;
  made.workload = workload();
  made.report = report;
  return made;
}

tuner::ClusterCondition healthy() {
  tuner::ClusterCondition condition;
  condition.memory_left_bytes = 1e12;
  return condition;
}

}  // namespace

TEST_CASE("tune: what the tuner did is found by who did it, with what changed") {
  const auto all = applied_tunings(versions());
  REQUIRE(all.size() == 1);
  CHECK(all[0].id == "tune-00000001");
  CHECK(all[0].version == 2);
  REQUIRE(all[0].values.size() == 2);
  CHECK(all[0].values[0].name == "storage.held_bytes_max");
  CHECK(all[0].values[0].before.empty());
  CHECK(all[0].values[0].after == "128MiB");
  CHECK(all[0].values[1].before == "5");
  CHECK(all[0].values[1].after == "2");
}

TEST_CASE("tune: a revert gives back what was before and leaves later changes of others") {
  const auto request = values_before(versions(), "tune-00000001");
  REQUIRE(request.has_value());
  CHECK(*request == SettingTexts{{"storage.visitors_max", "5"}, {"storage.held_bytes_max", ""}});
}

TEST_CASE("tune: the history has reverts, which are no changes of the tuner") {
  auto all = versions();
  all.push_back({4, 4'000'000, revert_tag("tune-00000001") + " me@here", {"storage.visitors_max=5"}});
  all.push_back({5, 5'000'000, "revert of something else", {}});
  const auto history = tuning_history(all);
  REQUIRE(history.size() == 2);
  CHECK_FALSE(history[0].is_revert);
  CHECK(history[1].is_revert);
  CHECK(history[1].id == "tune-00000001");
  CHECK(history[1].version == 4);
  REQUIRE_FALSE(history[1].values.empty());
  CHECK(applied_tunings(all).size() == 1);
  all.erase(all.begin(), all.begin() + 3);  // The history is bounded, so the change itself may be gone.
  CHECK(values_before(all, "tune-00000001").status().code() == StatusCode::NotFound);
}

TEST_CASE("tune: a change that somebody has changed again is not taken back") {
  auto all = versions();
  all.push_back({4, 4'000'000, "someone", {"storage.visitors_max=9", "storage.held_bytes_max=128MiB"}});
  const auto request = values_before(all, "tune-00000001");
  CHECK(request.status().code() == StatusCode::InvalidArgument);
  CHECK(request.status().message().find("storage.visitors_max") != std::string::npos);
  CHECK(values_before(all, "tune-12345678").status().code() == StatusCode::NotFound);
}

TEST_CASE("tune: a plan applies live settings, one structural one of them, and says why not the others") {
  const tuner::Report report = report_of({{"distributor.bucket_bytes_max", 4},
                                          {"storage.file_bytes_max", 4},
                                          {"storage.visitors_max", 2},
                                          {"storage_options.docblock_bytes", 2},
                                          {"--output-buckets", 2}});
  const TuningPlan plan = plan_changes(advice(report), healthy(), {}, 0, {});
  REQUIRE(plan.changes.size() == 5);
  CHECK(plan.changes[0].may_be_applied);
  CHECK(plan.changes[0].new_text == "256MiB");
  CHECK_FALSE(plan.changes[1].may_be_applied);  // Only one change of the structure may be applied at a time.
  CHECK(plan.changes[2].may_be_applied);
  CHECK(plan.changes[3].why_not.find("configuration file") != std::string::npos);
  CHECK(plan.changes[4].why_not.find("fjord job run") != std::string::npos);
  CHECK(plan.values() ==
        SettingTexts{{"distributor.bucket_bytes_max", "256MiB"}, {"storage.visitors_max", plan.changes[2].new_text}});
  CHECK(plan_changes(advice(report), healthy(), {}, 0, {"storage.visitors_max"}).changes.size() == 1);
}

TEST_CASE("tune: a plan shows p99 in place of a percentage where the target is missed") {
  tuner::Report report = report_of({{"distributor.bucket_bytes_max", 4}, {"storage.visitors_max", 2}});
  report.advice[0].effect =
      tuner::Effect{.gain = 268.4, .p99_before_s = 0.9, .p99_after_s = 0.25, .reaches_target = false};
  report.advice[1].effect = tuner::Effect{.gain = 1.12, .low = 1.03, .high = 1.2};
  const TuningPlan plan = plan_changes(advice(report), healthy(), {}, 0, {});
  REQUIRE(plan.changes.size() == 2);
  CHECK(plan.changes[0].effect == "p99 900.0 ms -> 250.0 ms, which is over the target");
  CHECK(plan.changes[1].effect == "+12.0 % (+3.0 to +20.0)");
}

TEST_CASE("tune: a plan says what it moves and for how long") {
  const TuningPlan plan = plan_changes(advice(report_of({{"cluster.distribution_bits", 3}})), healthy(), {}, 0, {});
  REQUIRE(plan.changes.size() == 1);
  CHECK(plan.changes[0].may_be_applied);
  CHECK(plan.moved_bytes == Approx(workload().bytes_per_node() * 0.75));
  CHECK(plan.seconds == Approx(plan.moved_bytes / (128 << 20)));
}

TEST_CASE("tune: nothing is applied to a degraded cluster, nor a structural change soon after another") {
  const tuner::Report report = report_of({{"distributor.bucket_bytes_max", 4}, {"storage.visitors_max", 2}});
  tuner::ClusterCondition degraded = healthy();
  degraded.is_degraded = true;
  for (const PlannedChange& change : plan_changes(advice(report), degraded, {}, 0, {}).changes) {
    CHECK_FALSE(change.may_be_applied);
  }
  const std::vector<ConfigurationVersion> before = {
      {1, 1'000'000, "tune-00000001 me: x", {"storage.file_bytes_max=64MiB"}}};
  const std::int64_t hour_us = 3'600'000'000;
  const auto applies = [&](std::int64_t now_us) {
    return plan_changes(advice(report), healthy(), before, now_us, {}).changes[0].may_be_applied;
  };
  CHECK_FALSE(applies(hour_us));
  CHECK(applies(7 * hour_us));
}

TEST_CASE("tune: ids differ by what is set and when") {
  const std::string id = tuning_id({{"a", "1"}}, 5);
  CHECK(id.size() == 13);
  CHECK(id.starts_with("tune-"));
  CHECK(id != tuning_id({{"a", "2"}}, 5));
  CHECK(id != tuning_id({{"a", "1"}}, 6));
}

TEST_CASE("tune: one setting of several changes in a row gets the value from before the first") {
  auto all = versions();
  all.push_back({4, 4'000'000, "tune-00000002 me@here: visitors", {"storage.visitors_max=1"}});
  const auto request = value_before(all, "tune-00000001", "storage.visitors_max");
  REQUIRE(request.has_value());
  CHECK(*request == SettingTexts{{"storage.visitors_max", "5"}});
  const auto was_default = value_before(all, "tune-00000001", "storage.held_bytes_max");
  REQUIRE(was_default.has_value());
  CHECK(*was_default == SettingTexts{{"storage.held_bytes_max", ""}});
  CHECK(value_before(all, "tune-00000001", "cluster.redundancy").status().code() == StatusCode::NotFound);
}

}  // namespace fjord
