#include "fjord/tuner/change_watch.h"

#include <catch2/catch.hpp>

#include "fjord/common/random.h"

namespace fjord::tuner {
namespace {

using Verdict = ChangeWatch::Verdict;

}  // namespace

TEST_CASE("change watch: bad advice is taken back within three periods, every time") {
  for (std::uint64_t trial = 1; trial <= 300; ++trial) {
    CAPTURE(trial);
    Random random(trial);
    const auto noisy = [&](double value) { return value * (1 + 0.02 * (2 * random.uniform() - 1)); };
    ChangeWatch watch;
    const double before = 100 * (1 + 9 * random.uniform());
    for (int i = 0; i < 8; ++i) CHECK(watch.observe(noisy(before)) == Verdict::Idle);
    // The value becomes worse by 10 % to 95 %.
    const double after = before * (0.05 + 0.85 * random.uniform());
    watch.changed("bad");
    int periods = 1;
    while (watch.observe(noisy(after)) != Verdict::RollBack && periods < 100) ++periods;
    CHECK(periods == 3);
    CHECK(watch.id() == "bad");
    CHECK(watch.observe(noisy(before)) == Verdict::Idle);
  }
}

TEST_CASE("change watch: good advice stays, and so does what changes nothing") {
  for (std::uint64_t trial = 1; trial <= 300; ++trial) {
    CAPTURE(trial);
    Random random(trial);
    const auto noisy = [&](double value) { return value * (1 + 0.02 * (2 * random.uniform() - 1)); };
    ChangeWatch watch;
    for (int i = 0; i < 8; ++i) static_cast<void>(watch.observe(noisy(100)));
    watch.changed("good");
    const double after = 100 * (1 + random.uniform());
    Verdict verdict = Verdict::Watching;
    for (int i = 0; i < 12 && verdict == Verdict::Watching; ++i) verdict = watch.observe(noisy(after));
    CHECK(verdict == Verdict::Keep);
  }
}

TEST_CASE("change watch: one or two bad periods are not enough") {
  ChangeWatch watch;
  for (int i = 0; i < 8; ++i) static_cast<void>(watch.observe(100));
  watch.changed("a");
  for (int i = 0; i < 3; ++i) {
    CHECK(watch.observe(50) == Verdict::Watching);
    CHECK(watch.observe(50) == Verdict::Watching);
    CHECK(watch.observe(99) == Verdict::Watching);
  }
}

TEST_CASE("change watch: after roll-backs the same baseline counts, however many there were") {
  ChangeWatch watch;
  for (int i = 0; i < 8; ++i) static_cast<void>(watch.observe(100));
  for (const char* bad : {"a", "b", "c", "d", "e", "f"}) {
    watch.changed(bad);
    CHECK(watch.baseline() == 100);
    CHECK(watch.observe(50) == Verdict::Watching);
    CHECK(watch.observe(50) == Verdict::Watching);
    CHECK(watch.observe(50) == Verdict::RollBack);
  }
}

TEST_CASE("change watch: without anything before there is nothing to compare with") {
  ChangeWatch watch;
  watch.changed("a");
  CHECK(watch.baseline() == 0);
  for (int i = 0; i < 5; ++i) CHECK(watch.observe(1) == Verdict::Idle);
}

}  // namespace fjord::tuner
