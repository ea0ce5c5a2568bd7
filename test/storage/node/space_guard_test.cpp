#include "space_guard.h"

namespace fjord::storage {

namespace {

constexpr SpaceLimits kLimits{.warn_percent = 80,
                              .throttle_percent = 90,
                              .refuse_external_percent = 94,
                              .refuse_all_percent = 97,
                              .hysteresis_percent = 2,
                              .reserve_bytes = 0};

SpaceInfo used(double percent, std::uint64_t total = 1'000'000) {
  return {.total_bytes = total, .free_bytes = total - static_cast<std::uint64_t>(percent / 100 * double(total))};
}

SpaceStage after(SpaceGuard& guard, double percent, const SpaceLimits& limits = kLimits) {
  guard.update(used(percent), limits);
  return guard.stage();
}

}  // namespace

TEST_CASE("space: each stage begins at its percentage") {
  SpaceGuard guard;
  CHECK(after(guard, 79.9) == SpaceStage::Normal);
  CHECK(after(guard, 80) == SpaceStage::Warn);
  CHECK(after(guard, 89.9) == SpaceStage::Warn);
  CHECK(after(guard, 90) == SpaceStage::Throttle);
  CHECK(after(guard, 94) == SpaceStage::RefuseExternal);
  CHECK(after(guard, 97) == SpaceStage::RefuseAll);
  CHECK(after(guard, 100) == SpaceStage::RefuseAll);
}

TEST_CASE("space: a stage ends only well below where it began, and several may end at once") {
  SpaceGuard guard;
  CHECK(after(guard, 97) == SpaceStage::RefuseAll);
  CHECK(after(guard, 95.1) == SpaceStage::RefuseAll);
  CHECK(after(guard, 94.9) == SpaceStage::RefuseExternal);
  CHECK(after(guard, 96.9) == SpaceStage::RefuseExternal);
  CHECK(after(guard, 92.1) == SpaceStage::RefuseExternal);
  CHECK(after(guard, 91.9) == SpaceStage::Throttle);
  CHECK(after(guard, 88.1) == SpaceStage::Throttle);
  CHECK(after(guard, 97.5) == SpaceStage::RefuseAll);
  CHECK(after(guard, 10) == SpaceStage::Normal);
  CHECK(after(guard, 79) == SpaceStage::Normal);
}

TEST_CASE("space: a value that moves to and fro around a limit changes the stage once") {
  SpaceGuard guard;
  int changes = 0;
  for (int i = 0; i < 100; ++i) changes += guard.update(used(i % 2 == 0 ? 94.2 : 93.4), kLimits) ? 1 : 0;
  CHECK(changes == 1);
  CHECK(guard.stage() == SpaceStage::RefuseExternal);
}

TEST_CASE("space: a reserve in bytes counts beside the percentages, with a hysteresis of its own") {
  SpaceGuard guard;
  SpaceLimits limits = kLimits;
  limits.reserve_bytes = 100'000;  // A tenth of the disk, which has 1,000,000 bytes.
  CHECK(after(guard, 79, limits) == SpaceStage::Normal);
  CHECK(after(guard, 81, limits) == SpaceStage::RefuseExternal);
  CHECK(guard.explain() ==
        "81.0 % used, 190000 bytes free; storage.space_reserve_bytes is 100000, and this ends with 250000 bytes free");
  CHECK(after(guard, 91, limits) == SpaceStage::RefuseAll);
  CHECK(guard.explain() ==
        "91.0 % used, 90000 bytes free; storage.space_reserve_bytes is 100000, and this ends with 150000 bytes free");
  CHECK(after(guard, 86, limits) == SpaceStage::RefuseAll);
  CHECK(after(guard, 84, limits) == SpaceStage::RefuseExternal);
  CHECK(after(guard, 76, limits) == SpaceStage::RefuseExternal);
  CHECK(after(guard, 74, limits) == SpaceStage::Normal);
}

TEST_CASE("space: limits that change while running count from the next measurement") {
  SpaceGuard guard;
  CHECK(after(guard, 85) == SpaceStage::Warn);
  SpaceLimits changed = kLimits;
  changed.refuse_all_percent = 84;
  CHECK(after(guard, 85, changed) == SpaceStage::RefuseAll);
  changed = kLimits;
  changed.warn_percent = 95;
  CHECK(after(guard, 85, changed) == SpaceStage::Normal);
}

TEST_CASE("space: the share of refused puts grows from the beginning of the throttling to its end") {
  SpaceGuard guard;
  unsigned last = 0;
  CHECK((guard.update(used(89), kLimits), guard.refused_percent()) == 0);
  for (const double percent : {90.0, 91.0, 92.0, 93.0, 93.9}) {
    guard.update(used(percent), kLimits);
    CHECK(guard.refused_percent() > last);
    CHECK(guard.refused_percent() < 100);
    last = guard.refused_percent();
  }
  guard.update(used(94), kLimits);
  CHECK(guard.refused_percent() == 100);
}

TEST_CASE("space: what is left ends where puts are refused, by percent or by the reserve") {
  SpaceGuard guard;
  guard.update(used(90), kLimits);
  CHECK(guard.bytes_left() == 40'000);
  SpaceLimits limits = kLimits;
  limits.reserve_bytes = 45'000;
  guard.update(used(90), limits);
  CHECK(guard.bytes_left() == 10'000);
  guard.update(used(95), limits);
  CHECK(guard.bytes_left() == 0);
}

TEST_CASE("space: the message says what was measured and which setting it ran into") {
  SpaceGuard guard;
  guard.update(used(97.25), kLimits);
  CHECK(guard.explain() ==
        "97.2 % used, 27500 bytes free; storage.space_refuse_all_percent is 97, and this ends below 95 % used");
  guard.update(used(95.5), kLimits);  // Below the limit, and the stage goes on.
  CHECK(guard.stage() == SpaceStage::RefuseAll);
  CHECK(guard.explain() ==
        "95.5 % used, 45000 bytes free; storage.space_refuse_all_percent is 97, and this ends below 95 % used");
  guard.update(used(50), kLimits);
  CHECK(guard.explain() == "50.0 % used, 500000 bytes free");
}

TEST_CASE("space: a file system that tells no size stops nothing") {
  SpaceGuard guard;
  guard.update({}, kLimits);
  CHECK(guard.stage() == SpaceStage::Normal);
}

}  // namespace fjord::storage
