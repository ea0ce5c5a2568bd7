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

std::string fields_of(const std::string& members) { return "{\"fields\":{" + members + "}}"; }

std::string refusal_of(const std::string& body) {
  const auto read = read_document_body(body);
  return read ? "" : read.error().message();
}

TEST_CASE("json body: the fields of a body are the text that was sent") {
  const std::string text =
      R"("a" : "a\u00e9\"b, {", "b":[1.50e3,{"c":""}], "d":"a text that is longer than sixteen bytes\\")";
  const auto read =
      read_document_body(R"({"condition":"a.b\u003d1","create":true, "fields": {)" + text + "} , \"x\":[{}]}");
  REQUIRE(read);
  CHECK(read->fields == "{" + text + "}");
  CHECK(read->condition == "a.b=1");
  CHECK(read->create == true);
}

TEST_CASE("json body: characters that no string may have are refused") {
  for (const int before : {0, 5, 16, 33}) {
    const std::string text = std::string("\"a\":\"") + std::string(static_cast<std::size_t>(before), 'x');
    CHECK(refusal_of(fields_of(text + "\"")).empty());
    CHECK(refusal_of(fields_of(text + "\xc3\xa9\xf0\x9f\x98\x80 \\t\\n\\r\"")).empty());
    for (char c = 1; c < 0x20; ++c)
      CHECK_THAT(refusal_of(fields_of(text + c + "\"")), Catch::Contains("malformed JSON"));
    for (const char* wrong : {"\x80", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\xaf"}) {
      CHECK_THAT(refusal_of(fields_of(text + wrong + "\"")),
                 Catch::Contains("malformed JSON at byte " + std::to_string(16 + before)));
    }
    for (const char* escape : {"\\u0000", "\\u001f", "\\b"}) {
      CHECK_THAT(refusal_of(fields_of(text + escape + "\"")), Catch::Contains("control character"));
    }
    CHECK_THAT(refusal_of(fields_of(text + "\"") + std::string(1, '\0') + "x"), Catch::Contains("zero byte"));
  }
}

TEST_CASE("json body: a member that is there twice is refused") {
  for (const char* member : {"\"fields\":{}", "\"condition\":\"a\"", "\"create\":true"}) {
    const std::string name(member, std::string_view(member).find(':'));
    const std::string text = std::string("{\"fields\":{},\"x\":1,\"x\":2,") + member + "," + member + "}";
    CHECK_THAT(refusal_of(text), Catch::Contains("'" + name.substr(1, name.size() - 2) + "' is there twice"));
  }
  CHECK(refusal_of(R"({"fields":{"fields":{"condition":"b"}},"condition":"a","create":false})").empty());
}

}  // namespace
}  // namespace fjord::gateway
