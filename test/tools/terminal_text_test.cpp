#include "output/terminal_text.h"

#include <catch2/catch.hpp>

namespace fjord::cli {
namespace {

TEST_CASE("terminal text: what a terminal would obey is escaped as in JSON") {
  CHECK(terminal_text("plain \t d\xc3\xa9j\xc3\xa0\n\xc2\xa0") == "plain \t d\xc3\xa9j\xc3\xa0\n\xc2\xa0");
  CHECK(terminal_text("{\"a\":\"\xc2\x9b"
                      "31m\x7f\"}\n") == "{\"a\":\"\\u009b31m\\u007f\"}\n");
  CHECK(terminal_text("\x1b]0;x\x07\r") == "\\u001b]0;x\\u0007\\u000d");
  CHECK(terminal_text("\xc2") == "\xc2");
}

}  // namespace
}  // namespace fjord::cli
