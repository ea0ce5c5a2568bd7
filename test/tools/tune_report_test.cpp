#include "tune/tune_report.h"

#include <catch2/catch.hpp>

namespace fjord::cli {
namespace {

std::string effect_line(const tuner::Effect& effect) {
  tuner::Report report;
  report.effect = effect;
  const std::string text = tune_report_text(tuner::Workload(), report);
  const std::size_t begin = text.find("predicted effect on the objective: ");
  REQUIRE(begin != std::string::npos);
  return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

TEST_CASE("tune report: a gain is a percentage while that can be read") {
  tuner::Effect effect;
  effect.gain = 1.069;
  effect.low = 0.992;
  effect.high = 1.162;
  CHECK(effect_line(effect) == "predicted effect on the objective: +6.9 % (-0.8 to +16.2)");
  effect.gain = 268.4;
  effect.low = 200;
  effect.high = 300;
  effect.p99_before_s = 5;
  effect.p99_after_s = 0.012;
  CHECK(effect_line(effect) ==
        "predicted effect on the objective: 268 times as good (200 to 300), p99 5000.0 ms -> 12.0 ms");
}

TEST_CASE("tune report: where the target is missed it shows p99 in place of a percentage") {
  tuner::Effect effect;
  effect.gain = 268.4;
  effect.p99_before_s = 0.9;
  effect.p99_after_s = 0.25;
  effect.reaches_target = false;
  CHECK(effect_line(effect) == "predicted effect on the objective: p99 900.0 ms -> 250.0 ms, which is over the target");
}

TEST_CASE("tune report: a plan marks what it applies and says what that moves") {
  TuningPlan plan;
  PlannedChange change;
  change.knob = tuner::find_knob("distributor.bucket_bytes_max");
  change.old_text = "64MiB";
  change.new_text = "256MiB";
  change.may_be_applied = true;
  plan.changes = {change, change};
  plan.changes[1].may_be_applied = false;
  plan.changes[1].why_not = "too soon";
  plan.moved_bytes = 6e9;
  const std::string text = plan_text(plan);
  CHECK(text.find("+ distributor.bucket_bytes_max: 64MiB -> 256MiB") != std::string::npos);
  CHECK(text.find("- distributor.bucket_bytes_max: 64MiB -> 256MiB\n    not applied: too soon") != std::string::npos);
  CHECK(text.find("moves 5.59 GiB on each node") != std::string::npos);
  CHECK(text.find('!') == std::string::npos);
  CHECK(plan_text({}) == "nothing to change\n");
  plan.advice.report.warnings = {"the target of 1 ms cannot be reached"};
  CHECK(plan_text(plan).ends_with("\n! the target of 1 ms cannot be reached\n"));
  CHECK(plan_json(plan).ends_with(R"("warnings":["the target of 1 ms cannot be reached"]})"));
}

}  // namespace fjord::cli
