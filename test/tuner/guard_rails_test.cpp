#include "fjord/tuner/guard_rails.h"

#include <catch2/catch.hpp>

#include "hand_clock.h"

namespace fjord::tuner {
namespace {

Change change_of(const char* knob, std::int64_t old_value, std::int64_t new_value) {
  Change change;
  change.knob = find_knob(knob);
  change.old_value = old_value;
  change.new_value = new_value;
  return change;
}

}  // namespace

TEST_CASE("guard rails: nothing is done while the cluster is degraded or somebody works on it") {
  HandClock clock;
  GuardRails rails({}, clock);
  const Change change = change_of("storage.visitors_max", 5, 6);
  CHECK(rails.check(change, {}));
  CHECK(rails.check(change, {.is_degraded = true}).code() == StatusCode::Busy);
  CHECK(rails.check(change, {.is_under_maintenance = true}).code() == StatusCode::Busy);
  CHECK(rails.check(change_of("storage.visitors_max", 5, 0), {}).code() == StatusCode::InvalidArgument);
  CHECK(rails.check(Change{}, {}).code() == StatusCode::InvalidArgument);
}

TEST_CASE("guard rails: no knob weakens durability or redundancy") {
  for (const Knob& knob : knobs()) {
    CHECK(knob.name.find("durability") == std::string_view::npos);
    CHECK(knob.name.find("redundancy") == std::string_view::npos);
  }
}

TEST_CASE("guard rails: memory that is not there is not given away") {
  HandClock clock;
  GuardRails rails({}, clock);
  Change change = change_of("storage.held_bytes_max", 1 << 20, 1 << 30);
  change.memory_bytes = 1 << 30;
  CHECK(rails.check(change, {.memory_left_bytes = 1e9}).code() == StatusCode::InvalidArgument);
  CHECK(rails.check(change, {.memory_left_bytes = 2e9}));
}

TEST_CASE("guard rails: nothing is moved into a node above the watermark, nor too much in an hour") {
  HandClock clock;
  GuardRails rails({}, clock);
  Change change = change_of("storage.held_bytes_max", 1 << 20, 1 << 21);
  change.moved_bytes = 30e9;
  CHECK(rails.check(change, {.fullest_used_share = 0.9}).code() == StatusCode::Busy);
  CHECK(rails.check(change, {.fullest_used_share = 0.5}));
  rails.made(change);
  CHECK(rails.check(change, {}).code() == StatusCode::Busy);
  clock.advance(seconds(3601));
  CHECK(rails.check(change, {}));
}

TEST_CASE("guard rails: a structural change has to be far off, or to gain more than it costs") {
  HandClock clock;
  GuardRails rails({}, clock);
  Change change = change_of("storage.file_bytes_max", 16 << 20, 32 << 20);
  CHECK(rails.check(change, {}).code() == StatusCode::InvalidArgument);
  change.predicted_gain = 1.09;
  CHECK_FALSE(rails.check(change, {}));
  change.predicted_gain = 1.2;
  CHECK(rails.check(change, {}));
  change.moved_bytes = 40e9;  // Moving this much costs 0.33 % of a day's work, and the gain is 20 %.
  CHECK(rails.check(change, {}));
  GuardOptions slow;
  slow.work_bytes_per_hour = 10e9;  // Now the same move costs 17 % of a day's work: too much for this gain.
  CHECK_FALSE(GuardRails(slow, clock).check(change, {}));
  CHECK(rails.check(change_of("storage.file_bytes_max", 16 << 20, 64 << 20), {}));
}

TEST_CASE("guard rails: one structural change at a time") {
  HandClock clock;
  GuardRails rails({}, clock);
  const Change first = change_of("storage.file_bytes_max", 16 << 20, 64 << 20);
  const Change second = change_of("distributor.bucket_bytes_max", 64 << 20, 256 << 20);
  rails.made(first);
  CHECK(rails.check(second, {}).code() == StatusCode::Busy);
  CHECK(rails.check(change_of("storage.visitors_max", 5, 6), {}));
  clock.advance(seconds(6 * 3600));
  CHECK(rails.check(second, {}));
}

}  // namespace fjord::tuner
