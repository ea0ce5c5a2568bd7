#include "fjord/rpc/live_settings.h"

#include <catch2/catch.hpp>

namespace fjord::rpc {
namespace {

ClusterInfo config(std::uint64_t version, std::vector<std::string> settings) {
  ClusterInfo info;
  info.config_version = version;
  info.config = std::move(settings);
  return info;
}

}  // namespace

TEST_CASE("live settings: set what is declared here, and give back what it was when they are gone") {
  TunableRegistry tunables;
  Tunable& size = tunables.declare({.name = "a.size", .default_value = 10, .min = 1, .max = 100, .help = ""});
  REQUIRE(tunables.set("a.size", 20));  // The configuration file has set this value.
  LiveSettings settings(tunables);
  CHECK(settings.apply(config(1, {"a.size=30", "other.process=5"})).empty());
  CHECK(size.value() == 30);
  // The settings of a version that is already in force are ignored.
  CHECK(settings.apply(config(1, {"a.size=31"})).empty());
  CHECK(settings.apply(config(0, {})).empty());
  CHECK(size.value() == 30);
  CHECK(settings.apply(config(2, {"a.size=40"})).empty());
  CHECK(settings.apply(config(3, {})).empty());
  CHECK(size.value() == 20);
}

TEST_CASE("live settings: a node lists what its settings are without the live configuration, and where from") {
  TunableRegistry tunables;
  tunables.declare({.name = "a.size", .default_value = 10, .min = 1, .max = 100, .help = ""});
  tunables.declare({.name = "b.count", .default_value = 3, .min = 1, .max = 100, .help = ""});
  REQUIRE(tunables.set("a.size", 20));
  LiveSettings settings(tunables, {"a.size"});
  const std::vector<std::string> begin = {"a.size=20=file", "b.count=3="};
  CHECK(settings.base() == begin);
  CHECK(settings.apply(config(1, {"a.size=30", "b.count=4"})).empty());
  CHECK(settings.base() == begin);
}

TEST_CASE("live settings: a value that does not fit is refused with its name and stays refused") {
  TunableRegistry tunables;
  Tunable& size = tunables.declare({.name = "a.size", .default_value = 10, .min = 1, .max = 100, .help = ""});
  LiveSettings settings(tunables);
  const auto errors = settings.apply(config(1, {"a.size=1000"}));
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].find("a.size: ") == 0);
  CHECK(size.value() == 10);
  CHECK(settings.apply(config(1, {"a.size=1000"})) == errors);
  CHECK(settings.apply(config(2, {"a.size=x"})).size() == 1);
  CHECK(settings.apply(config(3, {"a.size=7"})).empty());
  CHECK(size.value() == 7);
}

}  // namespace fjord::rpc
