#include "fjord/common/byte_units.h"

#include <catch2/catch.hpp>

namespace fjord {

TEST_CASE("byte units: a number with a unit of 1000 or of 1024 is read, also with a fraction and a space") {
  const auto bytes = [](std::string_view text) { return parse_bytes(text).value(); };
  CHECK(bytes("0") == 0);
  CHECK(bytes("1500") == 1500);
  CHECK(bytes("8192B") == 8192);
  CHECK(bytes("64KiB") == 64 * 1024);
  CHECK(bytes("64 MiB") == 64 << 20);
  CHECK(bytes("1.5GiB") == 3LL << 29);
  CHECK(bytes("2TiB") == 2LL << 40);
  CHECK(bytes("10k") == 10'000);
  CHECK(bytes("10 MB") == 10'000'000);
  CHECK(bytes("1TB") == 1'000'000'000'000);
}

TEST_CASE("byte units: other text is refused with an example of what is expected") {
  for (const char* text :
       {"", "MiB", "-1", "-1B", "1MIB", "1 mib", "1MiB/s", "1 MiB x", "nan", "inf", "9999999999TiB"}) {
    INFO(text);
    const auto parsed = parse_bytes(text);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code() == StatusCode::InvalidArgument);
    CHECK(parsed.error().message() ==
          "\"" + std::string(text) + "\" is not a number of bytes such as 64MiB, 10MB or 1500");
  }
}

TEST_CASE("byte units: the exact text is what parse_bytes() reads, and the other one is for people") {
  for (const std::int64_t bytes : {0LL, 1LL, 1023LL, 1024LL, 1536LL, 64LL << 20, (64LL << 20) + 1, 3LL << 40}) {
    CHECK(parse_bytes(exact_bytes_text(bytes)).value() == bytes);
  }
  CHECK(exact_bytes_text(0) == "0B");
  CHECK(exact_bytes_text(1536) == "1536B");
  CHECK(exact_bytes_text(64 << 20) == "64MiB");
  CHECK(bytes_text(1.5 * (1 << 30)) == "1.5 GiB");
  CHECK(bytes_text(0) == "0 B");
}

}  // namespace fjord
