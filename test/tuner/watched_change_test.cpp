#include "fjord/tuner/watched_change.h"

#include <catch2/catch.hpp>

namespace fjord::tuner {
namespace {

using Verdict = WatchedChange::Verdict;

PeriodFigures busy(double per_s = 1000, double mean_s = 0.002) {
  PeriodFigures figures;
  figures.seconds = 10;
  figures.reads_per_s = per_s / 2;
  figures.writes_per_s = per_s / 2;
  figures.operations = 10 * per_s;
  figures.mean_s = mean_s;
  figures.p99_s = 5 * mean_s;
  return figures;
}

std::optional<Objective> of(const PeriodFigures& figures) { return objective_of(figures, 0.02); }

WatchedChange after_a_change(Yardstick yardstick = Yardstick::Total, const PeriodFigures& before = busy()) {
  WatchedChange watch{WatchedChangeOptions()};
  for (int i = 0; i < 8; ++i) CHECK(watch.observe(of(before)) == Verdict::Idle);
  watch.changed("tune-1", yardstick);
  return watch;
}

Verdict verdict_of(WatchedChange& watch, const PeriodFigures& figures, int periods_max = 100) {
  Verdict verdict = Verdict::Watching;
  for (int i = 0; i < periods_max && verdict == Verdict::Watching; ++i) verdict = watch.observe(of(figures));
  return verdict;
}

}  // namespace

TEST_CASE("objective: of what was asked too seldom there is none, and of a store that stands still it is nothing") {
  PeriodFigures few = busy();
  few.operations = kLeastOperations - 1;
  CHECK_FALSE(of(few).has_value());
  CHECK_FALSE(of(PeriodFigures()).has_value());
  PeriodFigures stalled;
  stalled.pending = 3;
  REQUIRE(of(stalled).has_value());
  CHECK(of(stalled)->speed == 0);
  CHECK(of(stalled)->foreground == 0);
}

TEST_CASE("objective: less for slower answers, for failures and over the target; the rate alone does not matter") {
  const Objective before = *of(busy());
  CHECK(before.foreground == 1);
  CHECK(of(busy(100))->speed == before.speed);
  CHECK(of(busy(1000, 0.003))->speed == Approx(before.speed * 2 / 3));
  CHECK(of(busy(1000, 0.003))->foreground == 1);            // The p99 is 15 ms, below the target of 20 ms.
  CHECK(of(busy(1000, 0.008))->foreground == Approx(0.5));  // The p99 is 40 ms, twice the target.
  PeriodFigures failing = busy();
  failing.failed_per_s = 1000;
  CHECK(of(failing)->foreground == Approx(0.5));
  CHECK(of(failing)->speed == Approx(before.speed / 2));
  PeriodFigures with_scans = busy();
  with_scans.scan_bytes_per_s = 1e8;
  CHECK_FALSE(of(with_scans)->scans.has_value());  // No visitor ran for the whole period.
  with_scans.visitors_running = 1;
  CHECK(of(with_scans)->scans == 1e8);
  CHECK(of(with_scans)->total(0.5) == Approx(std::sqrt(before.speed * 1e8)));
}

TEST_CASE("watched change: slower answers for three periods, and it is taken back") {
  WatchedChange watch = after_a_change();
  CHECK(watch.observe(of(busy(950, 0.0022))) == Verdict::Watching);
  CHECK(watch.observe(of(busy(950, 0.0022))) == Verdict::Watching);
  CHECK(watch.observe(of(busy(950, 0.0022))) == Verdict::RollBack);
  CHECK(watch.ids() == std::vector<std::string>{"tune-1"});
  CHECK(watch.ratios_text() == "0.91, 0.91, 0.91");
  CHECK_FALSE(watch.is_watching());
}

TEST_CASE("watched change: what is as fast or faster stays, however much less is asked") {
  WatchedChange same = after_a_change();
  CHECK(verdict_of(same, busy()) == Verdict::Keep);
  WatchedChange faster = after_a_change();
  CHECK(verdict_of(faster, busy(3000, 0.001)) == Verdict::Keep);
  WatchedChange quiet = after_a_change();
  CHECK(verdict_of(quiet, busy(50, 0.002)) == Verdict::Keep);
}

TEST_CASE("watched change: slower because much more is asked says nothing, and for how long is bounded") {
  WatchedChange watch = after_a_change();
  for (int i = 0; i < 10; ++i) CHECK(watch.observe(of(busy(2000, 0.004))) == Verdict::Watching);
  for (int i = 0; i < 2; ++i) CHECK(watch.observe(of(busy(1000, 0.004))) == Verdict::Watching);
  CHECK(watch.observe(of(busy(1000, 0.004))) == Verdict::RollBack);
  WatchedChange for_ever = after_a_change();
  CHECK(verdict_of(for_ever, busy(2000, 0.004)) == Verdict::Unknown);
  WatchedChange nothing_asked = after_a_change();
  CHECK(verdict_of(nothing_asked, PeriodFigures()) == Verdict::Unknown);
}

TEST_CASE("watched change: a store that stands still is worse, whatever was asked") {
  PeriodFigures stalled;
  stalled.pending = 100;
  WatchedChange watch = after_a_change();
  CHECK(verdict_of(watch, stalled, 3) == Verdict::RollBack);
  PeriodFigures scanning = busy();
  scanning.visitors_running = 2;
  scanning.scan_bytes_per_s = 1e8;
  WatchedChange with_scans = after_a_change(Yardstick::Total, scanning);
  CHECK(verdict_of(with_scans, stalled, 3) == Verdict::RollBack);
}

TEST_CASE("watched change: without anything before it nobody knows") {
  WatchedChange watch{WatchedChangeOptions()};
  watch.changed("tune-1", Yardstick::Total);
  CHECK(watch.observe(of(busy())) == Verdict::Unknown);
}

TEST_CASE("watched change: visits count only while they run before and after") {
  PeriodFigures scanning = busy();
  scanning.visitors_running = 2;
  scanning.scan_bytes_per_s = 1e8;
  PeriodFigures slower = scanning;
  slower.scan_bytes_per_s = 0.5e8;  // Scans count with the exponent 0.2: 0.5^0.2 = 0.87.
  WatchedChange watch = after_a_change(Yardstick::Total, scanning);
  CHECK(verdict_of(watch, slower, 3) == Verdict::RollBack);
  // A loop that divides a resource takes from visits on purpose, so slower scans do not count.
  WatchedChange divided = after_a_change(Yardstick::Foreground, scanning);
  CHECK(verdict_of(divided, slower) == Verdict::Keep);
  // The job has ended, so scans cannot be compared.
  WatchedChange ended = after_a_change(Yardstick::Total, scanning);
  CHECK(verdict_of(ended, busy()) == Verdict::Unknown);
  // A scan that begins after the change counts neither for nor against it.
  WatchedChange begun = after_a_change();
  CHECK(verdict_of(begun, slower) == Verdict::Keep);
}

TEST_CASE("watched change: several changes of a kind are judged as one, and dropped when somebody else takes over") {
  WatchedChange watch = after_a_change();
  watch.extended("tune-2");
  CHECK(verdict_of(watch, busy(900, 0.004), 3) == Verdict::RollBack);
  CHECK(watch.ids() == std::vector<std::string>{"tune-1", "tune-2"});
  WatchedChange dropped = after_a_change();
  dropped.drop();
  CHECK(dropped.observe(of(busy(900, 0.004))) == Verdict::Idle);
  CHECK(dropped.periods_before() == 1);
}

}  // namespace fjord::tuner
