#include "http/json_body.h"

#include <catch2/catch.hpp>

namespace fjord::gateway {
namespace {

std::string literal_of(std::string_view text) {
  std::string literal;
  append_json_string(literal, text);
  return literal;
}

TEST_CASE("json body: a text that is not UTF-8 gets replacement characters") {
  constexpr const char* kReplaced = "\xef\xbf\xbd";
  CHECK(literal_of("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80") == "\"a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
  CHECK(literal_of("\xc3") == "\"" + std::string(kReplaced) + "\"");
  CHECK(literal_of("\x80") == "\"" + std::string(kReplaced) + "\"");
  for (const auto* wrong : {"\xed\xa0\x80", "\xe0\x80\x80"}) {
    CHECK(literal_of(wrong) == "\"" + std::string(kReplaced) + kReplaced + kReplaced + "\"");
  }
  for (const auto* wrong : {"\xf4\x90\x80\x80", "\xf0\x80\x80\x80"}) {
    CHECK(literal_of(wrong) == "\"" + std::string(kReplaced) + kReplaced + kReplaced + kReplaced + "\"");
  }
  CHECK(literal_of("\"\\\n") == R"("\"\\\u000a")");
}

}  // namespace
}  // namespace fjord::gateway
