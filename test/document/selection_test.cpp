#include "fjord/document/selection.h"

#include <catch2/catch.hpp>
#include <functional>
#include <random>

#include "selection/selection_node.h"

namespace fjord {
namespace {

Field field(const std::string& name, std::shared_ptr<const DataType> type, bool in_header) {
  return {name, stable_id(name), std::move(type), in_header};
}

std::shared_ptr<const DocumentTypeRepo> make_repo() {
  const auto text = DataType::primitive(TypeTag::String);
  const auto number = DataType::primitive(TypeTag::Int);
  const auto track = DataType::struct_of("track", {field("title", text, true), field("seconds", number, true)});
  std::vector<std::unique_ptr<const DocumentType>> types;
  const std::vector<Field> music = {field("title", text, true),
                                    field("year", number, true),
                                    field("lyrics", text, false),
                                    field("tracks", DataType::array_of(track), true),
                                    field("scores", DataType::map_of(text, number), true),
                                    field("ranks", DataType::map_of(number, text), true),
                                    field("flags", DataType::map_of(DataType::primitive(TypeTag::Bool), text), true),
                                    field("tags", DataType::weighted_set_of(text), true)};
  types.push_back(std::make_unique<DocumentType>("music", music));
  types.push_back(std::make_unique<DocumentType>("jazz", music, std::vector<std::string>{"music"}));
  types.push_back(std::make_unique<DocumentType>("book", std::vector<Field>{field("title", text, true)}));
  return DocumentTypeRepo::of(std::move(types)).value();
}

Selection parse(const std::string& text) {
  Result<Selection> selection = Selection::parse(text, *make_repo());
  INFO(text << ": " << selection.status());
  REQUIRE(selection);
  return *selection;
}

std::string error_of(const std::string& text) {
  const Result<Selection> selection = Selection::parse(text, *make_repo());
  INFO(text);
  REQUIRE_FALSE(selection);
  CHECK(selection.error().code() == StatusCode::InvalidSelection);
  return selection.error().message();
}

std::vector<std::uint32_t> types_of(const std::string& text) {
  const Selection selection = parse(text);
  return selection.possible_types() == nullptr ? std::vector<std::uint32_t>{1} : *selection.possible_types();
}

std::vector<std::uint32_t> ids(std::vector<std::string> names) {
  std::vector<std::uint32_t> result;
  for (const std::string& name : names) result.push_back(stable_id(name));
  std::sort(result.begin(), result.end());
  return result;
}

Match evaluate(const std::string& text, const std::string& type_name, const std::function<void(Document&)>& fill) {
  const auto repo = make_repo();
  Document document(*repo->find(type_name), DocumentId::parse("id:ns:" + type_name + ":n=7:x").value());
  fill(document);
  const EncodedDocument encoded = encode(document);
  const auto view = DocumentView::open(*repo, encoded.header, encoded.body);
  REQUIRE(view);
  const auto selection = Selection::parse(text, *repo);
  INFO(text << ": " << selection.status());
  REQUIRE(selection);
  return selection->evaluate(*view);
}

}  // namespace

TEST_CASE("selection: errors name the column, what was found and what was expected", "[selection]") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"film", "column 1: unknown document type 'film'"},
      {"music and film.title == 1", "column 11: unknown document type 'film'"},
      {"year == 1990", "column 1: unknown document type 'year'; did you mean music.year?"},
      {"1990 < year", "column 8: unknown document type 'year'; did you mean music.year?"},
      {"music.title == Oslo", "column 16: unknown document type 'Oslo'; a text stands in quotes: \"Oslo\""},
      {"music.title = Oslo and true", "column 15: unknown document type 'Oslo'; a text stands in quotes: \"Oslo\""},
      {"music.artist == 'x'", "column 7: document type 'music' has no field 'artist'"},
      {"music.tracks.artist == 'x'", "column 14: struct 'track' has no field 'artist'"},
      {"music.title.upper() == 'x'", "column 13: unknown function 'upper': expected lowercase, hash or abs"},
      {"'x'.md5() == 1", "column 5: unknown function 'md5'"},
      {"music.version() == 1", "column 7: unknown function 'version'"},
      {"music.title == 1 or music.title.hash( == 1", "column 39: unexpected '==': expected ')'"},
      {"music.year > today()", "column 14: unknown function 'today': expected now"},
      {"music.year > now(1)", "column 18: unexpected '1': expected ')'"},
      {"music.title =~ '['", "column 16: not a regular expression: missing ]"},
      {"music.title =~ '(a)\\\\1'", "column 16: not a regular expression: invalid escape sequence"},
      {"music.title =~ '(?=a)'", "column 16: not a regular expression: invalid perl operator"},
      {"music.title =~ music.title", "column 16: expected a regular expression in quotes"},
      {"music.title =~ 5", "column 16: expected a regular expression in quotes"},
      {"music.year + 1", "column 1: a value is not a condition"},
      {"music.year + == 2", "column 14: unexpected '=='"},
      {"music + 1 == 2", "column 7: unexpected '+'"},
      {"1 + (music or book) == 2", "column 5: a condition or document type is not a value"},
      {"music.year + 1 2", "column 16: unexpected '2': expected a comparison, '+'"},
      {"music.year ==", "column 14: unexpected end of the text"},
      {"music == 1", "column 7: unexpected '=='"},
      {"1 == 1 == 1", "column 8: unexpected '=='"},
      {"1", "column 1: a value is not a condition"},
      {"(music.year == 1", "column 17: unexpected end of the text: expected ')'"},
      {"music.year == 'x", "column 15: string without a closing quote"},
      {"music.year == '\\q'", "column 16: unknown escape"},
      {"music.year == 99999999999999999999", "column 15: not a number, or out of range: '99999999999999999999'"},
      {"music.year == 1.2.3", "column 19: unexpected '3': expected a name after '.'"},
      {"music.year == 12ab", "column 15: not a number, or out of range: '12ab'"},
      {"music # book", "column 7: unexpected character"},
      {"id.order == 1", "column 4: unknown part of the id 'order'"},
      {"music.tracks[$x].title == 'x'", "column 14: unknown variable"},
      {"$x == 1", "column 1: unexpected '$'"},
      {"music.scores{} == 1", "column 14: expected a key"},
      {"music.scores{a == 1", "'{' without '}'"},
      {"not", "column 4: unexpected end of the text"},
      {"music and", "column 10: unexpected end of the text"},
      {"and", "column 1: unexpected 'and'"},
  };
  for (const auto& [text, part] : cases) {
    INFO(text);
    CHECK_THAT(error_of(text), Catch::Contains(part));
  }
}

TEST_CASE("selection: nesting and size are limited, chains are not", "[selection]") {
  const auto repeat = [](const std::string& unit, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += unit;
    return text;
  };
  CHECK_THAT(error_of(repeat("not ", 10000) + "true"), Catch::Contains("nested deeper than 256 levels"));
  CHECK_THAT(error_of(repeat("(", 10000) + "true" + repeat(")", 10000)), Catch::Contains("nested deeper"));
  CHECK_THAT(error_of("music.tracks" + repeat(".title", 50000) + " == 1"), Catch::Contains("has no member 'title'"));
  CHECK_THAT(error_of(std::string(Selection::kBytesMax + 1, ' ')), Catch::Contains("limit"));
  CHECK(parse(repeat("not ", 200) + "true").is_trivial());
  CHECK(parse("true" + repeat(" and true", 5000)).is_trivial());
  CHECK_THAT(error_of("true" + repeat(" and true", 10000)), Catch::Contains("more than 10000 literals"));
  CHECK_THAT(error_of("1 == 1" + repeat(" + 1", 10000)), Catch::Contains("more than 10000 literals"));
  const std::string deep =
      repeat("not (false or true and ", 80) + "1 == " + repeat("(1 * 1 * (", 48) + "1" + repeat("))", 48);
  CHECK(parse(deep + repeat(")", 80)).matches_id("id:a:b::c"));
  CHECK(parse("5001 == 1" + repeat(" + 1", 5000)).matches_id("id:a:b::c"));
  CHECK_THAT(error_of("music.year" + repeat(".abs()", 300) + " == 1"), Catch::Contains("more than 256 functions"));
  CHECK_THAT(error_of("true" + repeat(" and id =~ 'a'", 33)), Catch::Contains("more than 32 regular expressions"));
  CHECK_THAT(error_of("id =~ '" + repeat("(a{50}){20}b", 1000) + "'"), Catch::Contains("not a regular expression"));
}

TEST_CASE("selection: parts of ids of all schemes", "[selection]") {
  const auto match = [](const std::string& text, const char* id) { return parse(text).evaluate_id(id); };
  const char* plain = "id:ns:music::a:b";
  const char* numbered = "id:ns:music:n=18446744073709551615:x";
  CHECK(match("id == 'id:ns:music::a:b'", plain) == Match::True);
  CHECK(match("id.specific == 'a:b' and id.namespace == 'ns' and id.type == 'music'", plain) == Match::True);
  CHECK(match("id.user == null and id.group == null", plain) == Match::True);
  CHECK(match("id.user == 0xffffffffffffffff", numbered) == Match::True);
  CHECK(match("id.group == 'g' and id.specific == 'x'", "id:ns:music:g=g:x") == Match::True);
  CHECK(match("id.user == 5 and id.specific == 'a:b' and id.scheme == 'userdoc'", "userdoc:ns:5:a:b") == Match::True);
  CHECK(match("id.group = 'g*' and id.scheme == 'groupdoc'", "groupdoc:ns:grp:x") == Match::True);
  CHECK(match("id.type == 'music'", "doc:ns:x") == Match::Invalid);
  CHECK(match("music", "doc:ns:x") == Match::Invalid);
  CHECK(match("music", plain) == Match::True);
  CHECK(match("book", plain) == Match::False);
  CHECK(match("id.user == 1", "no id") == Match::Invalid);
}

TEST_CASE("selection: without fields comparisons are Invalid unless logic decides", "[selection]") {
  const char* id = "id:ns:music::x";
  CHECK(parse("music.year == 1").evaluate_id(id) == Match::Invalid);
  CHECK(parse("not music.year == 1").evaluate_id(id) == Match::Invalid);
  CHECK(parse("book and music.year == 1").evaluate_id(id) == Match::False);
  CHECK(parse("music.year == 1 and book").evaluate_id(id) == Match::False);
  CHECK(parse("music.year == 1 or music").evaluate_id(id) == Match::True);
  CHECK(parse("music.year == 1 or book").evaluate_id(id) == Match::Invalid);
  CHECK_FALSE(parse("music.year == 1 or book").matches_id(id));
}

TEST_CASE("selection: the table of three-valued logic", "[selection]") {
  const std::map<std::string, Match> leaves = {
      {"true", Match::True}, {"false", Match::False}, {"1 == 'x'", Match::Invalid}};
  for (const auto& [left, a] : leaves) {
    for (const auto& [right, b] : leaves) {
      Match both = Match::Invalid;
      if (a == Match::False || b == Match::False)
        both = Match::False;
      else if (a == Match::True && b == Match::True)
        both = Match::True;
      Match either = Match::Invalid;
      if (a == Match::True || b == Match::True)
        either = Match::True;
      else if (a == Match::False && b == Match::False)
        either = Match::False;
      CHECK(parse(left + " and " + right).evaluate_id("id:a:b::c") == both);
      CHECK(parse(left + " or " + right).evaluate_id("id:a:b::c") == either);
    }
  }
}

TEST_CASE("selection: the types that can match follow from the logic", "[selection]") {
  CHECK(types_of("music") == ids({"music"}));
  CHECK(types_of("music or book") == ids({"music", "book"}));
  CHECK(types_of("music and book").empty());
  CHECK(types_of("music.year == 1") == ids({"music", "jazz"}));
  CHECK(types_of("jazz.year == 1 and music.title == 'x'") == ids({"jazz"}));
  CHECK(types_of("not music.year == 1") == ids({"music", "jazz"}));
  CHECK(types_of("not (music.year == 1 or book.title == 'x')").empty());
  CHECK(types_of("false").empty());
  CHECK(parse("not music").possible_types() == nullptr);
  CHECK(parse("id.user == 1").possible_types() == nullptr);
  CHECK(parse("music or id.user == 1").possible_types() == nullptr);
}

TEST_CASE("selection: what is trivial and what needs the body", "[selection]") {
  for (const char* text : {"", "  ", "true", "(true)", "not false", "true or music.year == 1"})
    CHECK(parse(text).is_trivial());
  for (const char* text : {"false", "music", "true and music", "1 == 1"}) CHECK_FALSE(parse(text).is_trivial());
  CHECK(Selection().is_trivial());
  CHECK(parse("music and not (music.lyrics = '*x*')").needs_body());
  CHECK_FALSE(parse("music.title = '*x*' or book").needs_body());
}

TEST_CASE("selection: fields of a subtype can be selected through its ancestor", "[selection]") {
  const auto fill = [](Document& d) { REQUIRE(d.set("year", std::int32_t{1959}).is_ok()); };
  CHECK(evaluate("music.year == 1959", "jazz", fill) == Match::True);
  CHECK(evaluate("jazz.year == 1959", "music", fill) == Match::Invalid);
  CHECK(evaluate("music", "jazz", fill) == Match::False);
  CHECK(evaluate("book.title == 'x' or music.year < 1960.5", "music", fill) == Match::True);
}

TEST_CASE("selection: a path that no value of the field's type can take is refused with its column", "[selection]") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"music.year{x} == 1",
       "column 11: \"music.year\" is of type int, which has no keys: expected a map or a weighted set"},
      {"music.year[0] == 1", "column 11: \"music.year\" is of type int, which has no element [0]: expected an array"},
      {"music.year.x == 1",
       "column 12: \"music.year\" is of type int, which has no member 'x': expected a struct, or an "
       "array or map of structs"},
      {"book or music.title.foo == 'x'", "column 21: \"music.title\" is of type string, which has no member 'foo'"},
      {"music.scores[0] == 1", "column 13: \"music.scores\" is of type map<string, int>, which has no element [0]"},
      {"music.scores.foo == 1", "column 14: \"music.scores\" is of type map<string, int>, which has no member 'foo'"},
      {"music.scores{a}{b} == 1", "column 16: \"music.scores{\"a\"}\" is of type int, which has no keys"},
      {"music.scores.value.x == 1", "column 20: \"music.scores.value\" is of type int, which has no member 'x'"},
      {"music.tracks{a} == 1", "column 13: \"music.tracks\" is of type array<track>, which has no keys"},
      {"music.tracks[0].title[1] == 'x'", "column 22: \"music.tracks[0].title\" is of type string"},
      {"music.tags.key == 'x'", "column 12: \"music.tags\" is of type weightedset<string>, which has no member 'key'"},
      {"music.ranks{x} == 'a'", "column 13: \"x\" cannot be a key of \"music.ranks\": expected a key of type int"},
      {"music.ranks{ 3000000000 } == 'a'", "column 14: \"3000000000\" cannot be a key of \"music.ranks\""},
      {"not music.ranks{'1.5'}", "column 17: \"1.5\" cannot be a key of \"music.ranks\": expected a key of type int"},
      {"music.flags{2} == 'a'", "column 13: \"2\" cannot be a key of \"music.flags\": expected a key of type bool"},
      {"music.year.x.hash() == 1", "column 12: \"music.year\" is of type int"},
  };
  for (const auto& [text, part] : cases) {
    INFO(text);
    CHECK_THAT(error_of(text), Catch::Contains(part));
  }
}

TEST_CASE("selection: keys are read as the type of the keys says", "[selection]") {
  const auto fill = [](Document& d) {
    MapValue ranks;
    ranks.entries.emplace_back(std::int32_t{-7}, "low");
    REQUIRE(d.set("ranks", ranks).is_ok());
    MapValue flags;
    flags.entries.emplace_back(true, "yes");
    REQUIRE(d.set("flags", flags).is_ok());
    MapValue scores;
    scores.entries.emplace_back("7", std::int32_t{3});
    REQUIRE(d.set("scores", scores).is_ok());
  };
  for (const char* text : {"music.ranks{-7} == 'low'", "music.ranks{\"-7\"} == 'low'", "music.flags{true} == 'yes'",
                           "music.flags{1} == 'yes'", "music.flags{false} == null", "music.scores{7} == 3",
                           "music.scores{'7'} == 3", "music.ranks{8} == null"}) {
    INFO(text);
    CHECK(evaluate(text, "music", fill) == Match::True);
    CHECK(evaluate(parse(text).to_string(), "music", fill) == Match::True);
  }
}

namespace {

void fill_lists(Document& d) {
  const DataType& track = *d.type().field("tracks")->type->element();
  ArrayValue tracks;
  for (const std::int32_t seconds : {15, 16}) {
    StructValue value;
    value.set(track.field("seconds")->id, seconds);
    tracks.elements.push_back(value);
  }
  StructValue untimed;
  untimed.set(track.field("title")->id, "silence");
  tracks.elements.push_back(untimed);
  REQUIRE(d.set("tracks", tracks).is_ok());
  MapValue scores;
  scores.entries.emplace_back("a", std::int32_t{15});
  scores.entries.emplace_back("b", std::int32_t{16});
  REQUIRE(d.set("scores", scores).is_ok());
}

}  // namespace

// Tests the decisions that SELECTION.md lists under "Where answers could have been others".
TEST_CASE("selection: a part that the id does not have is Invalid except beside null", "[selection]") {
  const auto match = [](const std::string& text, const char* id) { return parse(text).evaluate_id(id); };
  const char* plain = "id:ns:music::a";
  for (const char* text : {"id.user == 7", "id.user != 7", "not id.user == 7", "id.user > 7", "id.group = '*'",
                           "id.group != 'g'", "'g' == id.group", "id.user == id.group", "id.user + 1 == 8"}) {
    INFO(text);
    CHECK(match(text, plain) == Match::Invalid);
  }
  CHECK(match("id.user == null and id.group == null and null == id.user", plain) == Match::True);
  CHECK(match("id.user != null or id.group != null", plain) == Match::False);
  CHECK(match("id.user > null", plain) == Match::Invalid);
  CHECK(match("id.user != 8 and id.user != null", "id:ns:music:n=7:a") == Match::True);
  CHECK(match("id.group == 7", "id:ns:music:g=7:a") == Match::Invalid);
  CHECK(match("not id.user == 7 or music", plain) == Match::True);
}

TEST_CASE("selection: a bare type is that type and none that inherits it", "[selection]") {
  const auto nothing = [](Document&) {};
  CHECK(evaluate("music", "jazz", nothing) == Match::False);
  CHECK(evaluate("music", "music", nothing) == Match::True);
  CHECK(evaluate("music or jazz", "jazz", nothing) == Match::True);
  CHECK(evaluate("music.title == null", "jazz", nothing) == Match::True);
  CHECK(parse("music").evaluate_id("id:ns:jazz::x") == Match::False);
}

TEST_CASE("selection: a number and a string are neither equal nor different", "[selection]") {
  const auto fill = [](Document& d) { REQUIRE(d.set("year", std::int32_t{1959}).is_ok()); };
  for (const char* text : {"music.year != 'x'", "music.year == '1959'", "not music.year == 'x'", "'x' != music.year",
                           "music.year = '19*'", "1 != 'x'"}) {
    INFO(text);
    CHECK(evaluate(text, "music", fill) == Match::Invalid);
  }
}

TEST_CASE("selection: a member of an array of structs matches if one element's does, and 'not' is the opposite",
          "[selection]") {
  const auto match = [](const std::string& text) { return evaluate(text, "music", fill_lists); };
  CHECK(match("music.tracks.seconds == 15") == Match::True);
  CHECK(match("not music.tracks.seconds == 15") == Match::False);
  CHECK(match("music.tracks.seconds != 15") == Match::True);
  CHECK(match("not music.tracks.seconds != 15") == Match::False);
  CHECK(match("music.tracks.seconds == 17") == Match::False);
  CHECK(match("music.tracks.seconds == 15 and music.tracks.seconds == 16") == Match::True);
  CHECK(match("music.tracks.seconds == '15'") == Match::Invalid);
  CHECK(match("music.tracks == 15") == Match::Invalid);
}

TEST_CASE("selection: two lists of values compare element by element", "[selection]") {
  const auto match = [](const std::string& text) { return evaluate(text, "music", fill_lists); };
  CHECK(match("music.tracks.seconds == music.tracks.seconds") == Match::True);
  CHECK(match("music.tracks.seconds != music.tracks.seconds") == Match::False);
  CHECK(match("music.tracks.seconds < music.tracks.seconds") == Match::False);
  CHECK(match("music.tracks.seconds <= music.tracks.seconds") == Match::True);
  CHECK(match("music.tracks.seconds == music.scores.value and music.scores.value = music.tracks.seconds") ==
        Match::True);
  CHECK(match("music.tracks.title == music.tracks.seconds") == Match::Invalid);
  CHECK(match("music.scores.key == music.scores") == Match::True);
  CHECK(match("music.tracks.title == music.scores.key") == Match::False);
  CHECK(match("music.scores.key > music.tracks.title") == Match::False);
  const auto without_times = [](Document& d) {
    fill_lists(d);
    StructValue untimed;
    untimed.set(d.type().field("tracks")->type->element()->field("title")->id, "silence");
    ArrayValue tracks;
    tracks.elements.push_back(untimed);
    REQUIRE(d.set("tracks", tracks).is_ok());
  };
  CHECK(evaluate("music.tracks.seconds == music.tracks.seconds", "music", without_times) == Match::True);
  CHECK(evaluate("music.tracks.seconds == music.scores.value", "music", without_times) == Match::False);
  CHECK(evaluate("music.tracks.seconds < music.scores.value", "music", without_times) == Match::Invalid);
}

TEST_CASE("selection: a function may stand before its argument", "[selection]") {
  const auto fill = [](Document& d) {
    REQUIRE(d.set("year", std::int32_t{-1959}).is_ok());
    REQUIRE(d.set("title", "Blue").is_ok());
  };
  CHECK(evaluate("abs(music.year) == 1959 and ABS(music.year - 1) == 1960", "music", fill) == Match::True);
  CHECK(evaluate("lowercase(music.title) == 'blue' and hash(music.title) == music.title.hash()", "music", fill) ==
        Match::True);
  CHECK(evaluate("abs(music.year).abs() + abs(-1) == 1960", "music", fill) == Match::True);
  CHECK(parse("abs(music.year + 1) == 2").to_string() == "(music.year + 1).abs() == 2");
  CHECK_THAT(error_of("abs() == 1"), Catch::Contains("column 5: unexpected ')'"));
  CHECK_THAT(error_of("abs(music) == 1"), Catch::Contains("a condition or document type is not a value"));
  CHECK_THAT(error_of("abs(1, 2) == 1"), Catch::Contains("column 6: unexpected"));
  CHECK_THAT(error_of("upper(music.title) == 'x'"),
             Catch::Contains("column 1: unknown function 'upper': expected now, lowercase, hash or abs"));
  std::string deep = "1";
  for (int i = 0; i < 300; ++i) deep = "abs(" + deep + ")";
  CHECK_THAT(error_of(deep + " == 1"), Catch::Contains("nested deeper than 256 levels"));
}

TEST_CASE("selection: a collection on the right side is searched as on the left", "[selection]") {
  const auto fill = [](Document& d) {
    MapValue scores;
    scores.entries.emplace_back("a", std::int32_t{3});
    scores.entries.emplace_back("b", std::int32_t{9});
    REQUIRE(d.set("scores", scores).is_ok());
  };
  CHECK(evaluate("5 < music.scores.value", "music", fill) == Match::True);
  CHECK(evaluate("not 9 < music.scores.value", "music", fill) == Match::True);
  CHECK(evaluate("3 != music.scores.value", "music", fill) == Match::True);
  CHECK(evaluate("'b' == music.scores", "music", fill) == Match::True);
  CHECK(evaluate("music.scores{b} == 9 and music.scores{'a'} <= 3 and music.scores{c} == null", "music", fill) ==
        Match::True);
  CHECK(evaluate("music.scores.key = '?'", "music", fill) == Match::True);
  CHECK(evaluate("music.scores == music.scores and not music.scores != music.scores", "music", fill) == Match::True);
}

TEST_CASE("selection: the canonical text reads back to itself", "[selection]") {
  for (const char* text :
       {"music", "not (music or book) and id.user == 5", "music.tracks[1].title == \"x\\x00\\xff\\\"\"", "1.0 < -2.5",
        "music.scores{\"a b\"} >= -9223372036854775808", "music.tracks.seconds != null", "1e999 > 1e+20",
        "((true)) and (false) == (1)", "id.specific = \"*\"", "music.scores{7} == 1", "music.title =~ \"^a\\\\b\"",
        "(1 + 2) * -3 - 4 / 5 % 6 == now() - 300", "music.title.lowercase().hash() % 10 < 5", "id.hash().abs() == 1",
        "id.gid == \"x\" or id.bucket != 7", "(music.year).hash() != (-1.5).abs()"}) {
    CHECK(parse(text).to_string() == text);
  }
  CHECK(parse("1==1 OR nOt TRUE").to_string() == "1 == 1 or not true");
}

namespace {

Match on_id(const std::string& text) { return parse(text).evaluate_id("id:ns:music:n=7:x"); }

std::vector<BucketId> buckets_of(const std::string& text) {
  const Selection selection = parse(text);
  INFO(text);
  REQUIRE(selection.possible_buckets() != nullptr);
  return *selection.possible_buckets();
}

BucketId user_bucket(std::uint64_t user) { return {32, user}; }

}  // namespace

TEST_CASE("selection: arithmetic is exact where integers suffice", "[selection]") {
  for (const char* text : {"1 + 2 * 3 == 7", "(1 + 2) * 3 == 9", "10 - 4 - 3 == 3", "7 / 2 == 3.5", "7 % 4 == 3",
                           "-7 % 4 == -3", "2 * 3 % 4 == 2", "1 - -1 == 2", "9007199254740993 + 1 == 9007199254740994",
                           "0.5 + 1 == 1.5", "9223372036854775807 + 1 == 9223372036854775808.0",
                           "-9223372036854775808 % -1 == 0", "'a' + 'b' + 'c' == 'abc'", "1 / 0 > 1e300",
                           "true + 1 == 2", "id.user * 2 - 4 == 10", "id.specific + '!' = 'x?'"}) {
    INFO(text);
    CHECK(on_id(text) == Match::True);
  }
  for (const char* text :
       {"1 + 'a' == 1", "'a' - 'b' == 'a'", "'a' * 2 == 'aa'", "1 % 0 == 0", "1.5 % 1 == 0.5", "null + 1 == 1",
        "0.0 / 0.0 == 0", "id.group + 'x' == 'x'", "id.bucket + 1 == 1", "music.year + 1 == 1"}) {
    INFO(text);
    CHECK(on_id(text) == Match::Invalid);
  }
}

TEST_CASE("selection: integers and floating-point numbers compare exactly", "[selection]") {
  CHECK(on_id("9007199254740993 == 9007199254740992.0") == Match::False);
  CHECK(on_id("9007199254740993 > 9007199254740992.0") == Match::True);
  CHECK(on_id("9007199254740992.0 < 9007199254740993") == Match::True);
  CHECK(on_id("9223372036854775807 < 9223372036854775808.0 and -9223372036854775808 == -9223372036854775808.0") ==
        Match::True);
  CHECK(on_id("3 < 3.5 and 3.5 < 4 and -3 > -3.5 and -3.5 > -4 and 3.0 == 3 and 1e999 > 5 and -5 > -1e999") ==
        Match::True);
}

TEST_CASE("selection: functions on values", "[selection]") {
  const auto fill = [](Document& d) {
    REQUIRE(d.set("title", "ÄRGER im ΣΊΣΥΦΟΣ Ⱥ").is_ok());
    REQUIRE(d.set("year", std::int32_t{-1959}).is_ok());
  };
  CHECK(evaluate("music.title.lowercase() == 'ärger im σίσυφοσ ⱥ'", "music", fill) == Match::True);
  CHECK(evaluate("music.title.lowercase().lowercase() = '?rger*' and music.title =~ '^Ä.*Σ'", "music", fill) ==
        Match::True);
  CHECK(evaluate("music.year.abs() == 1959 and (music.year).abs() - 1 == 1958", "music", fill) == Match::True);
  CHECK(on_id("'A\\xff\\xc3B\\xf0\\x90C'.lowercase() == 'a\\xff\\xc3b\\xf0\\x90c'") == Match::True);
  CHECK(evaluate("music.year.lowercase() == 'x'", "music", fill) == Match::Invalid);
  CHECK(evaluate("music.tracks.lowercase() == 'x'", "music", fill) == Match::Invalid);
  CHECK(evaluate("music.title.abs() == 1", "music", fill) == Match::Invalid);
  CHECK(on_id("(-9223372036854775808).abs() == 9223372036854775808.0 and (-1.5).abs() == 1.5") == Match::True);
  CHECK(on_id("-1.5.abs() == 1.5 and -3.abs() == 3 and 1e2.abs() == 100 and 1.5e-2 == 0.015") == Match::True);
  const auto long_title = [](Document& d) { REQUIRE(d.set("title", std::string(5000, 'A')).is_ok()); };
  CHECK(evaluate("music.title.lowercase() == '" + std::string(5000, 'a') + "'", "music", long_title) == Match::True);
}

TEST_CASE("selection: hash() never changes, is not negative and agrees for equal numbers", "[selection]") {
  CHECK(on_id("'foo'.hash() == 3129543674296171914") == Match::True);
  for (const char* text :
       {"id.hash() >= 0", "id.hash() == id.hash()", "'a'.hash() != 'b'.hash()", "id.hash() % 10 >= 0",
        "(1959).hash() == (1959.0).hash()", "(1.5).hash() != (2.5).hash()", "(-1).hash() >= 0"}) {
    INFO(text);
    CHECK(on_id(text) == Match::True);
  }
  CHECK(on_id("null.hash() == 1 or id.group.hash() == 1 or id.bucket.hash() == 1") == Match::Invalid);
}

TEST_CASE("selection: the time is what the caller says", "[selection]") {
  const auto at = [](const std::string& text, std::int64_t now) {
    return parse(text).with_now(now).evaluate_id("id:ns:music::x");
  };
  CHECK(at("now() == 1000", 1000) == Match::True);
  CHECK(at("now() - 300 > 600 and NOW() <= 1000", 1000) == Match::True);
  CHECK(at("now() - 300 > 600", 900) == Match::False);
  CHECK(on_id("now() > 0") == Match::Invalid);
  const Selection selection = parse("music.year < now()");
  CHECK((selection.needs_now() && !parse("music.year < 5").needs_now() &&
         parse("not (1 < -5 + now().abs())").needs_now()));
  const auto fill = [](Document& d) { REQUIRE(d.set("year", std::int32_t{50}).is_ok()); };
  CHECK(evaluate("music.year < now()", "music", fill) == Match::Invalid);
}

TEST_CASE("selection: regular expressions search, take linear time and do not take null", "[selection]") {
  for (const char* text : {"id.specific =~ 'x'", "id =~ 'music:n=[0-9]+:'", "'aXb' =~ '(?i)x'", "'a\\nb' =~ 'a(?s).b'",
                           "'a\\nb' =~ '(?m)^b$'", "'x' =~ ('^' + 'x$')"}) {
    INFO(text);
    CHECK(on_id(text) == Match::True);
  }
  CHECK(on_id("'a\\nb' =~ '^b$' or 'a\\nb' =~ 'a.b'") == Match::False);
  CHECK(on_id("id.group =~ '.*' or id.user =~ '7' or null =~ ''") == Match::Invalid);
  const auto fill = [](Document& d) { REQUIRE(d.set("title", std::string(100000, 'a')).is_ok()); };
  CHECK(evaluate("music.title =~ '(a|aa)*(a|a?)*$b'", "music", fill) == Match::False);
}

TEST_CASE("selection: buckets of ids", "[selection]") {
  const DocumentId id = DocumentId::parse("id:ns:music:n=7:x").value();
  const std::string raw = std::to_string(id.bucket(20).raw());
  CHECK(on_id("id.bucket == " + raw + " and " + raw + " == id.bucket and id.bucket = 0") == Match::True);
  CHECK(on_id("id.bucket != " + raw) == Match::False);
  CHECK(on_id("id.bucket == " + std::to_string(BucketId(3, 6).raw())) == Match::False);
  CHECK(on_id("id.bucket < 5 or id.bucket == 5.0 or id.bucket == '5'") == Match::Invalid);
  CHECK(on_id("id.bucket == null or id.bucket == -1") == Match::False);
  CHECK(on_id("id.gid == '" + id.gid().to_string() + "'") == Match::True);
  CHECK(parse("id.gid == 'x' or id.bucket == 5").evaluate_id("no id") == Match::Invalid);
}

TEST_CASE("selection: the buckets that can match follow from the logic", "[selection]") {
  CHECK(buckets_of("id.user == 7") == std::vector<BucketId>{user_bucket(7)});
  CHECK(buckets_of("7 == id.user and music.year > 5") == std::vector<BucketId>{user_bucket(7)});
  CHECK(buckets_of("id.user == 3 + 4") == std::vector<BucketId>{user_bucket(7)});
  CHECK(buckets_of("not id.user != 7") == std::vector<BucketId>{user_bucket(7)});
  CHECK(buckets_of("not (id.user != 7 or music)") == std::vector<BucketId>{user_bucket(7)});
  CHECK(buckets_of("id.user == 7 and id.user == 8").empty());
  CHECK(buckets_of("false").empty());
  CHECK(buckets_of("id.user == 7 or id.user == 8 or id.user == 7").size() == 2);
  CHECK(buckets_of("id.user == 7 or false") == std::vector<BucketId>{user_bucket(7)});
  const DocumentId id = DocumentId::parse("id:ns:music:n=7:x").value();
  // With `and` the smaller of two nested buckets remains, with `or` the larger one.
  CHECK(buckets_of("id.user == 7 and id == '" + id.str() + "'") == std::vector<BucketId>{id.bucket(58)});
  CHECK(buckets_of("id == '" + id.str() + "' or id.user == 7") == std::vector<BucketId>{user_bucket(7)});
  CHECK(buckets_of("id.bucket == " + std::to_string(BucketId(3, 7).raw()) + " and (id.user == 7 or id.user == 8)") ==
        std::vector<BucketId>{user_bucket(7)});
  for (const char* text :
       {"true", "id.user > 7", "id.user != 7", "id.user == 7 or music", "not id.user == 7", "id = '*'",
        "id.group = 'g?'", "'g' = id.group", "id =~ 'x'", "id.user == '7'", "id.user == null", "id.user + 0 == 7",
        "id == 'no id'", "id.group == 'a:b'", "id.specific == 'x'"}) {
    INFO(text);
    CHECK(parse(text).possible_buckets() == nullptr);
    CHECK(parse(text).may_match(user_bucket(7)));
  }
}

TEST_CASE("selection: a bucket may match if it overlaps one that can", "[selection]") {
  const Selection selection = parse("id.user == 7 or id.user == 0 or id.group == 'g'");
  for (unsigned bits = 0; bits <= 58; ++bits) CHECK(selection.may_match(BucketId(bits, 7)));
  CHECK(selection.may_match(BucketId(10, 0)));
  CHECK_FALSE(selection.may_match(BucketId(32, 8)));
  CHECK_FALSE(selection.may_match(BucketId(58, 8)));
  CHECK_FALSE(selection.may_match(BucketId(3, 6)));
  CHECK(selection.may_match(DocumentId::parse("id:a:b:g=g:x")->gid()));
  CHECK(selection.may_match(DocumentId::parse("groupdoc:a:g:x")->gid()));
  CHECK(selection.may_match(DocumentId::parse("userdoc:a:7:x")->gid()));
  CHECK_FALSE(selection.may_match(DocumentId::parse("id:a:b:g=h:x")->gid()));
  CHECK_FALSE(parse("false").may_match(BucketId()));
}

TEST_CASE("selection: a document that matches is always in a bucket that may match", "[selection]") {
  const std::vector<std::string> atoms = {"id.user == 1",
                                          "id.user != 1",
                                          "id.user == 2",
                                          "id.group == 'g'",
                                          "id.group != 'g'",
                                          "id == 'id:a:music:n=1:x'",
                                          "id.bucket == 1152921504606846977",
                                          "music",
                                          "true",
                                          "id.user > 1"};
  const std::vector<std::string> ids = {"id:a:music:n=1:x", "id:a:music:n=1:y", "id:a:book:n=2:x",
                                        "id:a:music:g=g:x", "id:a:book:g=h:x",  "id:a:music::x",
                                        "userdoc:a:1:x",    "groupdoc:a:g:x",   "doc:a:b"};
  int pruned = 0;
  for (const std::string& a : atoms) {
    for (const std::string& b : atoms) {
      for (const std::string& text : {a + " and " + b, a + " or " + b, "not (" + a + " and " + b + ")",
                                      "not (" + a + " or " + b + ")", "not " + a + " and not (" + b + " or false)"}) {
        const Selection selection = parse(text);
        for (const std::string& id : ids) {
          const bool may_match = selection.may_match(DocumentId::parse(id)->gid());
          if (!may_match) ++pruned;
          INFO(text << " on " << id);
          CHECK((may_match || !selection.matches_id(id)));
        }
      }
    }
  }
  CHECK(pruned > 500);
}

TEST_CASE("selection: pieces in any order are refused, or mean the same when printed", "[selection]") {
  const std::vector<std::string> pieces = {"music",
                                           "book",
                                           "music.year",
                                           "music.title",
                                           "music.tracks",
                                           "music.tracks[1].title",
                                           "music.scores{a}",
                                           "id",
                                           "id.user",
                                           "id.group",
                                           "id.bucket",
                                           "id.gid",
                                           "now()",
                                           "1",
                                           "-2.5",
                                           "0x10",
                                           "'a'",
                                           "\"*b?\"",
                                           "null",
                                           "true",
                                           "false",
                                           "and",
                                           "or",
                                           "not",
                                           "(",
                                           ")",
                                           "==",
                                           "!=",
                                           "<",
                                           ">=",
                                           "=",
                                           "=~",
                                           "+",
                                           "-",
                                           "*",
                                           "/",
                                           "%",
                                           ".lowercase()",
                                           ".hash()",
                                           ".abs()",
                                           ".",
                                           "[",
                                           "]",
                                           "{",
                                           "}",
                                           "$",
                                           "'",
                                           "\\",
                                           "e"};
  std::mt19937 random(7);
  const auto pick = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  const auto repo = make_repo();
  int parsed = 0;
  for (int i = 0; i < 40000; ++i) {
    std::string text;
    for (std::size_t n = 1 + pick(9); n > 0; --n) text += pieces[pick(pieces.size())] + (pick(8) == 0 ? "" : " ");
    const auto selection = Selection::parse(text, *repo);
    INFO(text);
    if (!selection) {
      CHECK_THAT(selection.error().message(), Catch::StartsWith("selection, column "));
      continue;
    }
    ++parsed;
    const auto again = Selection::parse(selection->to_string(), *repo);
    REQUIRE(again);
    CHECK(again->to_string() == selection->to_string());
    const char* id = "id:a:music:n=1:b";
    CHECK(again->with_now(5).evaluate_id(id) == selection->with_now(5).evaluate_id(id));
  }
  CHECK(parsed > 500);
}

}  // namespace fjord
