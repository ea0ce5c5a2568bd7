#include "fjord/document/value_expression.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "document/sample_schema.h"

namespace fjord {
namespace {

using Kind = ValueExpression::Kind;

class Song {
 public:
  Song() : document_(*types_->find("song"), test::id_of("id:music:song:n=7:one")) {
    REQUIRE(document_.set("title", "Blue Train").is_ok());
    REQUIRE(document_.set("year", 1957).is_ok());
    REQUIRE(document_.set("seconds", 10.5).is_ok());
    REQUIRE(document_.set("live", true).is_ok());
    REQUIRE(document_.set("lyrics", "la").is_ok());
    REQUIRE(document_.set("main_credit", test::credit("Coltrane", 0.5F)).is_ok());
    REQUIRE(document_.set("tags", ArrayValue{{"jazz", "hard bop"}}).is_ok());
    encoded_ = encode(document_);
  }

  ValueExpression compile(const std::string& text) const {
    const auto expression = ValueExpression::compile(text, *types_, *types_->find("song"));
    INFO(text << ": " << expression.status());
    REQUIRE(expression);
    return *expression;
  }
  std::string error(const std::string& text) const {
    const auto expression = ValueExpression::compile(text, *types_, *types_->find("song"));
    REQUIRE_FALSE(expression.has_value());
    return expression.error().message();
  }
  /// Returns the value as text, which shows both kind and value.
  std::string value(const std::string& text) {
    const auto view = DocumentView::open(*types_, encoded_.header, encoded_.body);
    REQUIRE(view);
    ValueExpression::clear(scratch_);
    const ScalarView value = compile(text).evaluate(*view, scratch_);
    switch (value.kind) {
      case ScalarView::Kind::Absent:
        return "absent";
      case ScalarView::Kind::Integer:
        return std::to_string(value.integer);
      case ScalarView::Kind::Double:
        return "double " + std::to_string(value.number);
      case ScalarView::Kind::String:
        return "'" + std::string(value.string) + "'";
    }
    return {};
  }

  std::shared_ptr<const DocumentTypeRepo> types_ = test::sample_repo();

 private:
  Document document_;
  EncodedDocument encoded_;
  ValueExpression::Scratch scratch_;
};

TEST_CASE("an expression yields a field, a member, an element, a part of the id, or what is computed from them") {
  Song song;
  CHECK(song.value("title") == "'Blue Train'");
  CHECK(song.value("song.title") == "'Blue Train'");
  CHECK(song.value("year / 10") == "double 195.700000");
  CHECK(song.value("(year - 7) * 2") == "3900");
  CHECK(song.value("seconds") == "double 10.500000");
  CHECK(song.value("live") == "1");
  CHECK(song.value("main_credit.name") == "'Coltrane'");
  CHECK(song.value("tags[1]") == "'hard bop'");
  CHECK(song.value("title.lowercase() + '!'") == "'blue train!'");
  CHECK(song.value("id.user") == "7");
  CHECK(song.value("id.specific") == "'one'");
  CHECK(song.value("title.hash()") == song.value("'Blue Train'.hash()"));
}

TEST_CASE("what is not set or has no meaning is absent") {
  Song song;
  CHECK(song.value("plays") == "absent");
  CHECK(song.value("plays + 1") == "absent");
  CHECK(song.value("tags[7]") == "absent");
  CHECK(song.value("title * 2") == "absent");
  CHECK(song.value("year % 0") == "absent");
}

TEST_CASE("texts longer than the scratch are computed for every document anew") {
  Song song;
  std::string text = "title";
  for (int i = 0; i < 100; ++i) text += " + title";
  for (int i = 0; i < 3; ++i) CHECK(song.value(text).size() == 101 * 10 + 2);
}

TEST_CASE("the kind of the values is known before there is a document, and whether the body is needed") {
  Song song;
  CHECK(song.compile("year").kind() == Kind::Integer);
  CHECK(song.compile("title.hash()").kind() == Kind::Integer);
  CHECK(song.compile("year + 1").kind() == Kind::Number);
  CHECK(song.compile("loudness").kind() == Kind::Number);
  CHECK(song.compile("title + 'x'").kind() == Kind::String);
  CHECK(song.compile("id").kind() == Kind::String);
  CHECK(song.compile("id.user").kind() == Kind::Integer);
  CHECK(song.compile("live").kind() == Kind::Bool);
  CHECK(song.compile("moods{'calm'}").kind() == Kind::Integer);
  CHECK(song.compile("null").kind() == Kind::Any);
  CHECK_FALSE(song.compile("title").needs_body());
  CHECK(song.compile("title + lyrics").needs_body());
  CHECK(song.compile("year * 2").to_string() == "song.year * 2");
}

TEST_CASE("an expression without a single value is refused, with the place") {
  Song song;
  for (const char* text : {"tags", "main_credit", "credits.name", "charts.key", "id.bucket", "tags.hash()", "grid[0]",
                           "cover", "tags + 1"}) {
    INFO(text);
    CHECK(song.error(text).find("not a single value") != std::string::npos);
  }
  CHECK(song.error("year + ").find("column 8") != std::string::npos);
  CHECK(song.error("year == 1").find("column 6") != std::string::npos);
  CHECK(song.error("song").find("a condition or document type is not a value") != std::string::npos);
  CHECK(song.error("nothing").find("'nothing' is not a field of the document type 'song'") != std::string::npos);
  CHECK(song.error("year - now()").find("now()") != std::string::npos);
  CHECK(song.error("").find("column 1") != std::string::npos);
}

}  // namespace
}  // namespace fjord
