#include "fjord/common/coding.h"

#include <catch2/catch.hpp>
#include <limits>

namespace fjord {
namespace {

std::string varint(std::uint64_t value) {
  std::string out;
  put_varint(out, value);
  return out;
}

TEST_CASE("coding: varints have the bytes of LEB128") {
  CHECK(varint(0) == std::string("\0", 1));
  CHECK(varint(127) == "\x7f");
  CHECK(varint(128) == "\x80\x01");
  CHECK(varint(300) == "\xac\x02");
  CHECK(varint(std::numeric_limits<std::uint64_t>::max()) == "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST_CASE("coding: what was written is read back") {
  std::string out;
  put_fixed<std::uint32_t>(out, 0x01020304);
  put_fixed<std::int64_t>(out, -5);
  put_fixed<double>(out, 1.5);
  for (int shift = 0; shift < 64; ++shift) {
    put_varint(out, std::uint64_t{1} << shift);
    put_varint(out, (std::uint64_t{1} << shift) - 1);
  }
  put_string(out, "fjord");
  put_string(out, "");
  CHECK(out.substr(0, 4) == "\x04\x03\x02\x01");

  ByteReader reader(out);
  CHECK(reader.fixed<std::uint32_t>() == 0x01020304);
  CHECK(reader.fixed<std::int64_t>() == -5);
  CHECK(reader.fixed<double>() == 1.5);
  for (int shift = 0; shift < 64; ++shift) {
    CHECK(reader.varint() == std::uint64_t{1} << shift);
    CHECK(reader.varint() == (std::uint64_t{1} << shift) - 1);
  }
  CHECK(reader.string() == "fjord");
  CHECK_FALSE(reader.at_end());
  CHECK(reader.string().empty());
  CHECK(reader.at_end());
}

TEST_CASE("coding: bytes that were cut off fail, and everything after them") {
  std::string out;
  put_fixed<std::uint32_t>(out, 7);
  put_varint(out, 1'000'000);
  put_string(out, "abc");
  for (std::size_t n = 0; n < out.size(); ++n) {
    ByteReader reader(std::string_view(out).substr(0, n));
    reader.fixed<std::uint32_t>();
    reader.varint();
    reader.string();
    INFO(n);
    CHECK_FALSE(reader.ok());
    CHECK_FALSE(reader.at_end());
    CHECK(reader.fixed<std::uint8_t>() == 0);
  }
}

TEST_CASE("coding: varints that do not fit into 64 bits or never end are refused") {
  for (const std::string& bytes : {std::string(9, '\xff') + "\x02", std::string(10, '\x80'), std::string(20, '\xff')}) {
    ByteReader reader(bytes);
    CHECK(reader.varint() == 0);
    CHECK_FALSE(reader.ok());
  }
}

TEST_CASE("coding: a string longer than what is left is refused") {
  std::string out;
  put_varint(out, std::numeric_limits<std::uint64_t>::max());
  out += "abc";
  ByteReader reader(out);
  CHECK(reader.string().empty());
  CHECK_FALSE(reader.ok());
}

}  // namespace
}  // namespace fjord
