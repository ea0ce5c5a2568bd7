#include "fjord/common/printable.h"

#include <catch2/catch.hpp>

namespace fjord {
namespace {

TEST_CASE("printable: texts without control characters stay as they are") {
  for (const char* text :
       {"", "plain", "d\xc3\xa9j\xc3\xa0 \xe2\x82\xac \xf0\x9f\x90\x9f", "a \\ \"quote\"", "\xc2\xa0"}) {
    INFO(text);
    CHECK(is_printable(text));
    CHECK(to_printable(text) == text);
  }
}

TEST_CASE("printable: what moves the cursor, ends a line or turns the text is escaped") {
  const std::pair<std::string, std::string> cases[] = {
      {"a\nb\r\tc", "a\\nb\\r\\tc"},
      {"\x1b[31m", "\\x1b[31m"},
      {std::string("\0\x7f", 2), "\\x00\\x7f"},
      {"\x0b\x0c\x1c", "\\x0b\\x0c\\x1c"},
      {"\xc2\x9b"
       "31m",
       "\\u{9b}31m"},  // CSI as a character of C1
      {"\x9b"
       "31m",
       "\\x9b31m"},  // and as a byte, for terminals without UTF-8
      {"\xc2\x85", "\\u{85}"},
      {"\xe2\x80\xa8\xe2\x80\xa9", "\\u{2028}\\u{2029}"},
      {"\xe2\x80\xae", "\\u{202e}"},
      {"\xc0\x8a", "\\xc0\\x8a"},           // a line feed in two bytes, which UTF-8 forbids
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},  // half of a surrogate pair
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
      {"\xe2\x82", "\\xe2\\x82"},
  };
  for (const auto& [text, shown] : cases) {
    INFO(shown);
    CHECK_FALSE(is_printable(text));
    CHECK(to_printable(text) == shown);
  }
}

TEST_CASE("printable: a long text is cut at a character") {
  CHECK(to_printable(std::string(4096, 'x'), 4096) == std::string(4096, 'x'));
  CHECK(to_printable(std::string(5000, 'x'), 4096) == std::string(4096, 'x') + "... (904 bytes more)");
  CHECK(to_printable("abc\xe2\x82\xac", 5) == "abc... (3 bytes more)");
  CHECK(to_printable("abc\n\n", 5) == "abc\\n... (1 bytes more)");
}

}  // namespace
}  // namespace fjord
