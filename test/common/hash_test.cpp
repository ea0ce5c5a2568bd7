#include "fjord/common/hash.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

namespace fjord {
namespace {

// These values are in files and on the wire: a change here changes every format.
TEST_CASE("hash: the values never change") {
  CHECK(hash64("") == 0x2d06800538d394c2);
  CHECK(hash64("a") == 0xe6c632b61e964e1f);
  CHECK(hash64("abc") == 0x78af5f94892f3950);
  CHECK(hash64("fjord", 42) == 0xadd8f56eaba31f3e);
  CHECK(hash64(std::string(1000, 'x')) == 0xc0a4877b962cba82);
  // Makes long inputs, which take another code path.
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) bytes.push_back(static_cast<char>(i % 251));
  CHECK(hash64(std::string_view(bytes).substr(0, 16383), 42) == 0x5f25a46090a1b1b9);
  CHECK(hash64(std::string_view(bytes).substr(0, 16384), 42) == 0x131aada0ed8b3b90);
  CHECK(hash64(bytes) == 0x42c23aeead96750d);
  CHECK(checksum32("abc") == 0x892f3950);
  CHECK(mix64(0, 0) == 0xa706dd2f4d197e6f);
  CHECK(mix64(1, 2) == 0xbcd9dbb49673066b);
}

TEST_CASE("hash: the seed and every byte count") {
  CHECK(hash64("abc", 1) != hash64("abc", 2));
  CHECK(checksum32("abc", 1) != checksum32("abc", 2));
  const std::string bytes(200, 'x');
  std::set<std::uint32_t> seen = {checksum32(bytes)};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = 'y';
    seen.insert(checksum32(changed));
  }
  CHECK(seen.size() == 201);
}

TEST_CASE("hash: mix64 depends on the order of its numbers and spreads small ones") {
  CHECK(mix64(1, 2) != mix64(2, 1));
  std::set<std::uint64_t> high_bytes;
  for (std::uint64_t i = 0; i < 4096; ++i) high_bytes.insert(mix64(i / 64, i % 64) >> 56);
  CHECK(high_bytes.size() == 256);
}

}  // namespace
}  // namespace fjord
