#include "fjord/common/tunable.h"

#include <catch2/catch.hpp>

#include "fjord/common/log.h"

namespace fjord {
namespace {

Tunable::Declaration merges_max() {
  return {
      .name = "distributor.merges_max", .unit = Unit::Count, .default_value = 16, .min = 1, .max = 256, .help = "h"};
}

TEST_CASE("tunable: starts with its default and stays within its bounds") {
  Tunable tunable(merges_max());
  CHECK(tunable.value() == 16);
  CHECK(tunable.set(1));
  CHECK(tunable.set(256));
  for (const std::int64_t bad : {0, 257, -1}) {
    const Status status = tunable.set(bad);
    CHECK(status.code() == StatusCode::InvalidArgument);
    CHECK(status.message() == "distributor.merges_max: " + std::to_string(bad) + " is outside of [1, 256]");
  }
  CHECK(tunable.value() == 256);
}

TEST_CASE("tunables: declaring a name again returns the same one with its value") {
  TunableRegistry registry;
  Tunable& first = registry.declare(merges_max());
  CHECK(registry.set("distributor.merges_max", 5));
  CHECK(&registry.declare(merges_max()) == &first);
  CHECK(first.value() == 5);
  CHECK(registry.set("distributor.merges_max", 0).code() == StatusCode::InvalidArgument);
  CHECK(registry.all() == std::vector<const Tunable*>{&first});
}

TEST_CASE("tunables: a value set before the declaration takes effect with it, if it is allowed") {
  TunableRegistry registry;
  CHECK(registry.set("distributor.merges_max", 7).code() == StatusCode::NotFound);
  CHECK(registry.all().empty());
  CHECK(registry.declare(merges_max()).value() == 7);

  log::set_level(log::Level::Off);
  TunableRegistry other;
  CHECK(other.set("distributor.merges_max", 700).code() == StatusCode::NotFound);
  CHECK(other.declare(merges_max()).value() == 16);
  log::set_level(log::Level::Info);
}

TEST_CASE("log: levels are named, and Off silences all of them") {
  CHECK(log::level_from_string("warning") == log::Level::Warning);
  CHECK(log::level_from_string("loud") == log::Level::Info);
  log::set_level(log::Level::Warning);
  CHECK_FALSE(log::enabled(log::Level::Info));
  CHECK(log::enabled(log::Level::Warning));
  log::set_level(log::Level::Off);
  CHECK_FALSE(log::enabled(log::Level::Error));
  CHECK_FALSE(log::enabled(log::Level::Off));
  log::set_level(log::Level::Info);
}

}  // namespace
}  // namespace fjord
