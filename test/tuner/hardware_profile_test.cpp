#include "fjord/tuner/hardware_profile.h"

#include <catch2/catch.hpp>
#include <vector>

namespace fjord::tuner {

TEST_CASE("profile: there are at most twelve constants, each with a default inside its band") {
  CHECK(constant_declarations().size() <= 12);
  for (const ConstantDeclaration& one : constant_declarations()) {
    CAPTURE(std::string(one.name));
    CHECK(&declaration_of(one.id) == &one);
    CHECK(one.default_value > one.plausible_min);
    CHECK(one.default_value < one.plausible_max);
  }
}

TEST_CASE("profile: the median of repetitions counts, and the more they agree the more it is trusted") {
  HardwareProfile profile;
  CHECK(profile.measured(Constant::SyncS, std::vector<double>{1e-3, 50e-3, 2e-3, 1.5e-3, 1.4e-3}));
  CHECK(profile[Constant::SyncS] == 1.5e-3);
  CHECK(profile.at(Constant::SyncS).origin == Origin::Measured);
  const double loose = profile.at(Constant::SyncS).confidence;
  CHECK(profile.measured(Constant::SyncS, std::vector<double>{1.5e-3, 1.5e-3, 1.5e-3}));
  CHECK(profile.at(Constant::SyncS).confidence == 1);
  CHECK(loose < 0.8);
  CHECK(profile.measured(Constant::SyncS, std::vector<double>{1.5e-3}));
  CHECK(profile.at(Constant::SyncS).confidence == 0.5);
}

TEST_CASE("profile: what is not plausible is not taken, the last valid value stays and is trusted less") {
  HardwareProfile profile;
  REQUIRE(profile.measured(Constant::SequentialReadRate, std::vector<double>{2e9, 2e9, 2e9}));
  CHECK_FALSE(profile.measured(Constant::SequentialReadRate, std::vector<double>{9e12, 9e12, 9e12}));
  const ConstantValue& kept = profile.at(Constant::SequentialReadRate);
  CHECK(kept.value == 2e9);
  CHECK(kept.origin == Origin::LastValid);
  CHECK(kept.confidence == 0.5);
  CHECK(kept.rejected == 9e12);
  HardwareProfile fresh;
  CHECK_FALSE(fresh.measured(Constant::SyncS, std::vector<double>{-1.0}));
  CHECK(fresh.at(Constant::SyncS).origin == Origin::Default);
}

TEST_CASE("profile: a file that was written can be read") {
  HardwareProfile profile;
  REQUIRE(profile.measured(Constant::SyncS, std::vector<double>{2e-3, 2e-3, 2.1e-3}));
  REQUIRE(profile.measured(Constant::CopyRate, std::vector<double>{7e9, 7e9}));
  REQUIRE_FALSE(profile.measured(Constant::CopyRate, std::vector<double>{1.0, 1.0}));
  const auto read = parse_profile(profile_text(profile, "a machine"), "p.yaml");
  REQUIRE(read.has_value());
  for (const ConstantDeclaration& one : constant_declarations()) {
    CHECK((*read)[one.id] == Approx(profile[one.id]).epsilon(1e-5));
    CHECK(read->at(one.id).origin == profile.at(one.id).origin);
    CHECK(read->at(one.id).confidence == Approx(profile.at(one.id).confidence).margin(1e-3));
  }
}

TEST_CASE("profile: a file that is wrong is refused with the line") {
  const auto error = [](const std::string& text) { return parse_profile(text, "p.yaml").status().message(); };
  CHECK(error("constants: {}\n").find("p.yaml:1: version") == 0);
  CHECK(error("version: 1\nconstants:\n  speed_of_light: {value: 1}\n") ==
        "p.yaml:3: speed_of_light: unknown constant");
  CHECK(error("version: 1\nconstants:\n  sync_s: {value: 7, confidence: 1, origin: measured}\n")
            .find("p.yaml:3: sync_s: 7 is "
                  "not plausible") == 0);
  CHECK(error("version: 1\nconstants:\n  sync_s: {value: 0.001, confidence: 2, origin: measured}\n")
            .find("p.yaml:3: sync_s.confidence") == 0);
  CHECK(error("version: 1\nconstants:\n  sync_s: {value: 0.001, confidence: 1, origin: rumour}\n").find("rumour") !=
        std::string::npos);
  CHECK(error("version: 1\nconstants:\n  sync_s: [\n").find("p.yaml:") == 0);
}

}  // namespace fjord::tuner
