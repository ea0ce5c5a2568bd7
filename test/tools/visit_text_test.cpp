#include "output/visit_text.h"

#include <catch2/catch.hpp>

namespace fjord::cli {

TEST_CASE("times of options are points in time or ages") {
  constexpr std::int64_t kNow = 1'800'000'000'000'000;
  CHECK(parse_time("2027-01-15T08:00:00Z", kNow)->us == 1'800'000'000'000'000);
  CHECK(parse_time("15m", kNow)->us == 1'800'000'000'000'000 - 900'000'000);
  CHECK(parse_time("2d", kNow)->us == 1'800'000'000'000'000 - 172'800'000'000);
  CHECK(parse_time("1700000000", kNow)->us == 1'700'000'000'000'000);
  CHECK(parse_time("17us", kNow)->us == 17);
  for (const char* wrong : {"", "m", "3w", "-5m", "2027-01-15", "99999999999d", "1e9"}) {
    CHECK_FALSE(parse_time(wrong, kNow).has_value());
  }
}

TEST_CASE("a slice of an option counts from 1") {
  CHECK(parse_slice("1/4")->index == 0);
  CHECK(parse_slice("4/4")->index == 3);
  CHECK(parse_slice("4/4")->count == 4);
  for (const char* wrong : {"", "0/4", "5/4", "1", "1/", "/4", "1/4x", "1/2000000"}) {
    CHECK_FALSE(parse_slice(wrong).has_value());
  }
}

}  // namespace fjord::cli
