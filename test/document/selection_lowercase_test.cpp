#include "selection/selection_lowercase.h"

#include <catch2/catch.hpp>
#include <string>

#include "fjord/common/hash.h"

namespace fjord::selection {
namespace {

void append_character(std::string& text, char32_t c) {
  const auto byte = [&](unsigned value) { text.push_back(static_cast<char>(value)); };
  if (c < 0x80) return byte(c);
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr unsigned kLead[] = {0, 0xc0, 0xe0, 0xf0};
  byte(kLead[more] | (c >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) byte(0x80U | ((c >> (6 * i)) & 0x3fU));
}

}  // namespace

TEST_CASE("lowercase: all characters of Unicode have their simple mapping") {
  std::string all;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c < 0xd800 || c >= 0xe000) append_character(all, c);
  }
  Scratch scratch;
  const auto lower = lowercase(all, scratch);
  REQUIRE(lower.has_value());
  // These numbers come from the table that Fjord had before it used utf8proc; it was made from UnicodeData.txt. A newer
  // Unicode may add letters. Compare then, and change the numbers.
  CHECK(lower->size() == 4382570);
  CHECK(hash64(*lower) == 0x2e4edc8c038b1289);
}

TEST_CASE("lowercase: texts grow by at most a half, and bytes that are not UTF-8 stay") {
  Scratch scratch;
  std::string text;
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    text += "Ⱥ";  // This letter has two bytes, and three in lower case.
    expected += "ⱥ";
  }
  CHECK(lowercase(text, scratch) == expected);
  CHECK(lowercase("\xc3", scratch) == "\xc3");
  CHECK(lowercase("Ä\xff\xed\xa0\x80Ö\xf0\x9f", scratch) == "ä\xff\xed\xa0\x80ö\xf0\x9f");
}

}  // namespace fjord::selection
