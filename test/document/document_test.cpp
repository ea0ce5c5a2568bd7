#include "fjord/document/document.h"

#include "sample_schema.h"

namespace fjord {

TEST_CASE("document: fields are set, read, replaced and removed by name") {
  const auto repo = test::sample_repo();
  Document song(*repo->find("song"), test::id_of("id:music:song::a"));
  CHECK(song.get("title") == nullptr);
  REQUIRE(song.set("title", "one"));
  REQUIRE(song.set("title", "two"));
  REQUIRE(song.get("title") != nullptr);
  CHECK(*song.get("title") == FieldValue("two"));
  CHECK(song.has("title"));
  CHECK(song.remove("title"));
  CHECK_FALSE(song.remove("title"));
  CHECK_FALSE(song.remove("nothing"));
  CHECK_FALSE(song.has("title"));
}

TEST_CASE("document: a field that does not exist or does not fit is refused, and nothing changes") {
  const auto repo = test::sample_repo();
  Document song(*repo->find("song"), test::id_of("id:music:song::a"));
  CHECK(song.set("nothing", "x").code() == StatusCode::InvalidField);
  const Status wrong = song.set("year", "1969");
  CHECK(wrong.code() == StatusCode::InvalidField);
  CHECK(wrong.message() == "field year: expected int, found string");
  CHECK(song.set("credits", ArrayValue{{StructValue{{{1, "x"}}}}}).code() == StatusCode::InvalidField);
  CHECK(song.fields().empty());
}

TEST_CASE("document: what was encoded reads back equal, for every kind of value") {
  const auto repo = test::sample_repo();
  const Document song = test::full_song(*repo);
  REQUIRE(song.fields().size() == repo->find("song")->fields().size());
  const EncodedDocument encoded = encode(song);
  const Status valid = validate(*repo, encoded.header, encoded.body);
  INFO(valid);
  CHECK(valid);
  const auto view = DocumentView::open(*repo, encoded.header, encoded.body);
  REQUIRE(view);
  const auto back = view->document();
  INFO(back.status());
  REQUIRE(back);
  CHECK(*back == song);
  CHECK(encode(*back) == encoded);
}

TEST_CASE("document: without body fields the body part is empty") {
  const auto repo = test::sample_repo();
  Document song(*repo->find("song"), test::id_of("id:music:song::a"));
  REQUIRE(song.set("title", "x"));
  CHECK(encode(song).body.empty());
  CHECK(validate(*repo, encode(song).header, ""));
}

TEST_CASE("document: the bytes of the wire form are as FORMAT.md says") {
  const std::string schema = "document t {\n field a type int { header }\n field b type array<string> {}\n}";
  const auto repo = test::repo_of(schema);
  Document document(*repo->find("t"), test::id_of("id:n:t::1"));
  REQUIRE(document.set("a", std::int32_t{258}));
  REQUIRE(document.set("b", ArrayValue{{"xy", ""}}));
  const EncodedDocument encoded = encode(document);
  const auto u32 = [](std::uint32_t v) { return std::string(reinterpret_cast<const char*>(&v), 4); };
  CHECK(encoded.header == std::string("\x01") + u32(stable_id("t")) + "\x09" + "id:n:t::1" + u32(stable_id("a")) +
                              std::string("\x02\x04\x02\x01\x00\x00", 6));
  CHECK(encoded.body == u32(stable_id("b")) + std::string("\x09\x06\x01\x02\x02xy\x00", 8));
}

}  // namespace fjord
