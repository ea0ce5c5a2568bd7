#include "text.h"

#include <catch2/catch.hpp>

namespace fjord {

TEST_CASE("text: well-formed UTF-8 is told from what is not") {
  CHECK(is_utf8(""));
  CHECK(is_utf8("plain text that is longer than eight bytes"));
  CHECK(
      is_utf8("bl\xc3\xa5"
              "b\xc3\xa6r \xe2\x82\xac \xf0\x9f\x90\x9f and then some more"));
  CHECK(is_utf8("\xf4\x8f\xbf\xbf"));
  CHECK(utf8_prefix("12345678\xff") == 8);
  CHECK(utf8_prefix("ab\xc3") == 2);
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xb0\x80",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xe2\x28\xa1"}) {
    CHECK(utf8_prefix(bad) == 0);
  }
}

TEST_CASE("text: quotes for messages are short and printable") {
  CHECK(quoted("a\nb\x7f") == "\"a\\x0ab\\x7f\"");
  CHECK(quoted("abcdef", 3) == "\"abc...\"");
}

}  // namespace fjord
