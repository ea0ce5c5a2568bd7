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
  // Dates of GNU date: date -u -d TEXT +%s
  CHECK(parse_time("2027-01-15", kNow)->us == 1'799'971'200'000'000);
  CHECK(parse_time("2027-01-15T08:00", kNow)->us == 1'800'000'000'000'000);
  CHECK(parse_time("2027-01-15 09:30:00+01:30", kNow)->us == 1'800'000'000'000'000);
  CHECK(parse_time("2027-01-15T03:00:00-0500", kNow)->us == 1'800'000'000'000'000);
  CHECK(parse_time("2027-01-15T08:00:00.25Z", kNow)->us == 1'800'000'000'250'000);
  CHECK(parse_time("2024-02-29", kNow)->us == 1'709'164'800'000'000);
  CHECK(parse_time("1970-01-01T00:00:00Z", kNow)->us == 0);
  for (const char* wrong : {"",
                            "m",
                            "3w",
                            "-5m",
                            "99999999999d",
                            "1e9",
                            "2026-02-30T00:00:00Z",
                            "2025-02-29",
                            "2026-04-31",
                            "2026-13-01",
                            "2026-00-10",
                            "2026-1-1",
                            "2026-01-01T24:00:00Z",
                            "2026-01-01T00:60Z",
                            "2026-01-01T00:00:60Z",
                            "2026-01-01T00:00:00.Z",
                            "2026-01-01T00:00:00ZZ",
                            "2026-01-01T",
                            "2026-01-01Z",
                            "2026-01-01T00:00+1",
                            "1969-12-31",
                            "1970-01-01T00:00+01:00"}) {
    INFO(wrong);
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
