#include "runner/job_throttle.h"

#include <catch2/catch.hpp>

#include "fjord/common/traffic.h"
#include "runner/job_progress.h"
#include "runner/job_settings.h"

namespace fjord {
namespace {

using mapreduce::HistogramPeriod;
using mapreduce::JobProgress;
using mapreduce::JobSettings;
using mapreduce::JobThrottle;

constexpr MonotonicTime at(double seconds_from_start) { return {static_cast<std::int64_t>(seconds_from_start * 1e6)}; }
double in_seconds(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

TEST_CASE("by delay a job takes the time of seed 6.4.3 for its traffic") {
  // 25 buckets with 1,000 documents each, as in the experiment of [VDS 2007, 6.4.3]: 4 kB, and redundancy 3.
  JobThrottle throttle;
  throttle.set(2'000'000, JobSettings::ThrottleBy::Delay, at(0));
  for (int i = 0; i < 25; ++i) throttle.bucket_done(4'000'000, 1000, 3, at(0));
  const double total = 25'000 * traffic::put_traffic(3, 4000);
  // (n + 1) * (2m + d) + (n + 1) * (1 + 3) * 58 bytes a document: n replicas, m message, d document, 58 a TCP header
  CHECK(total == Approx(25'000.0 * (4 * (2 * 200 + 4000) + 4 * (1 + 3) * 58)));
  CHECK(in_seconds(throttle.bucket_delay()) == Approx(total / (2'000'000.0 * 25)));
  // The time for all buckets is the total number of bytes divided by the rate.
  double now = 0;
  for (int i = 0; i < 25; ++i) {
    while (throttle.wait(1, at(now)) > Duration(0)) now += 0.001;
  }
  CHECK(now == Approx(24 * total / (2'000'000.0 * 25)).margin(0.1));
  CHECK(in_seconds(throttle.waited()) == Approx(now).margin(0.1));
}

TEST_CASE("by what is sent a job keeps to its rate, whatever its tasks send") {
  JobThrottle throttle;
  throttle.set(1'000'000, JobSettings::ThrottleBy::Sent, at(0));
  REQUIRE(throttle.wait(1, at(0)) == Duration(0));
  CHECK(throttle.wait(1, at(0)) > Duration(0));  // The first task counts although its bytes are not known yet.
  double now = 0.1;
  double sent = 0;
  for (int i = 0; i < 50; ++i) {
    throttle.bucket_done(static_cast<std::uint64_t>(100'000 * (1 + i % 3)), 1, 0, at(now));
    sent += 100'000 * (1 + i % 3);
    while (throttle.wait(1, at(now)) > Duration(0)) now += 0.001;
  }
  CHECK(now >= sent / 1e6 - 0.6);
  CHECK(now <= sent / 1e6 + 0.2);
  throttle.set(0, JobSettings::ThrottleBy::Sent, at(now));
  CHECK_FALSE(throttle.is_on());
  CHECK(throttle.wait(100, at(now)) == Duration(0));
}

TEST_CASE("a first task that never ends does not hold the others back for ever") {
  JobThrottle throttle;
  throttle.set(1000, GENERATE(JobSettings::ThrottleBy::Sent, JobSettings::ThrottleBy::Delay), at(0));
  REQUIRE(throttle.wait(1, at(0)) == Duration(0));
  CHECK(throttle.wait(1, at(0.5)) > Duration(0));
  CHECK(throttle.wait(1, at(1.1)) == Duration(0));
}

TEST_CASE("a histogram's quantile of a period is that of what came in it") {
  Histogram histogram;
  for (int i = 0; i < 1000; ++i) histogram.observe(seconds(10));
  HistogramPeriod period(histogram);
  CHECK_FALSE(period.end().has_value());
  for (int i = 0; i < 100; ++i) histogram.observe(milliseconds(2));
  const auto fast = period.end();
  REQUIRE(fast);
  CHECK(*fast > 0.001);
  CHECK(*fast < 0.0041);
  for (int i = 0; i < 10; ++i) histogram.observe(milliseconds(200));
  CHECK(*period.end() > 0.1);
  CHECK_FALSE(period.end().has_value());
}

TEST_CASE("a quantile of a period lies between the bounds of its bucket, at its share of what is counted there") {
  Histogram histogram;
  HistogramPeriod period(histogram);
  const double first = Histogram::upper_bound_seconds(0);
  const double second = Histogram::upper_bound_seconds(1);
  histogram.observe_many(Duration(0), 100);
  CHECK(*period.end(0.25) == Approx(0.25 * first));
  histogram.observe_many(Duration(0), 50);
  histogram.observe_many(Duration(static_cast<std::int64_t>(second * 1e6)), 50);
  CHECK(*period.end(0.75) == Approx((first + second) / 2));
}

TEST_CASE("the time that is left follows from the tasks that ended, with an error that shrinks") {
  JobProgress progress;
  progress.begin(10, at(100));
  CHECK(progress.left(10, 110, at(105)).time == Duration(0));
  const auto few = progress.left(14, 110, at(104));
  CHECK(in_seconds(few.time) == Approx(96));
  CHECK(in_seconds(few.error) == Approx(std::sqrt(96.0 * 96 / 4 + 96)));
  progress.pause(at(104));
  CHECK(progress.left(14, 110, at(500)).time == few.time);
  progress.resume(at(504));
  const auto many = progress.left(60, 110, at(550));
  CHECK(in_seconds(many.time) == Approx(50));
  CHECK(many.error * 4 < few.error);
  CHECK(progress.left(110, 110, at(600)).time == Duration(0));
}

TEST_CASE("settings are read with their units, and what is wrong is said") {
  const auto parsed = JobSettings::parse({{"throttle", "10MB/s"},
                                          {"throttle_by", "delay"},
                                          {"dead_letters_max", "7"},
                                          {"memory_max", "64MiB"},
                                          {"disk_max", "1.5 GB"},
                                          {"sent_max", "1500"},
                                          {"cpu_max", "60"},
                                          {"visitors_per_node", "3"}});
  REQUIRE(parsed);
  CHECK(parsed->throttle == 10'000'000);
  CHECK(parsed->throttle_by == JobSettings::ThrottleBy::Delay);
  CHECK(parsed->dead_letters_max == 7);
  CHECK(parsed->memory_max == 64 << 20);
  CHECK(parsed->disk_max == 1'500'000'000);
  CHECK(parsed->sent_max == 1500);
  CHECK(parsed->cpu_max == 60);
  CHECK(parsed->visitors_per_node == 3);
  CHECK(JobSettings::parse({})->dead_letters_max == 100);
  for (const rpc::Parameter& wrong : std::vector<rpc::Parameter>{{"throttle", "fast"},
                                                                 {"throttle", "-1"},
                                                                 {"throttle", "1 furlong"},
                                                                 {"throttle_by", "wish"},
                                                                 {"dead_letters_max", "10001"},
                                                                 {"dead_letters_max", "1.5"},
                                                                 {"cpu_max", ""},
                                                                 {"colour", "red"}}) {
    const auto refused = JobSettings::parse({wrong});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message().find(wrong.name + "=" + wrong.value) == 0);
  }
  const auto merged = mapreduce::merge_settings({{"throttle", "1"}, {"cpu_max", "2"}}, {{"throttle", "3"}});
  CHECK(merged == std::vector<rpc::Parameter>{{"cpu_max", "2"}, {"throttle", "3"}});
}

}  // namespace
}  // namespace fjord
