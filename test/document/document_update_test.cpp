#include "fjord/document/document_update.h"

#include <cmath>
#include <limits>

#include "fjord/document/json.h"
#include "random_values.h"
#include "sample_schema.h"

namespace fjord {
namespace {

const std::string kId = "id:music:song::x";

struct Song {
  std::shared_ptr<const DocumentTypeRepo> repo = test::sample_repo();

  DocumentUpdate update(const std::string& fields) const {
    auto parsed = DocumentUpdate::from_json_fields(*repo->find("song"), test::id_of(kId), fields);
    INFO(fields);
    INFO(parsed.status());
    REQUIRE(parsed);
    return std::move(*parsed);
  }
  Status refused(const std::string& fields) const {
    const auto parsed = DocumentUpdate::from_json_fields(*repo->find("song"), test::id_of(kId), fields);
    INFO(fields);
    REQUIRE_FALSE(parsed);
    return parsed.error();
  }
  Result<std::string> apply(const DocumentUpdate& update, const std::string& before) const {
    const auto document = fields_from_json(*repo->find("song"), test::id_of(kId), before);
    REQUIRE(document);
    const auto view = DocumentView::open(*repo, document->header, document->body);
    FJORD_TRY_ASSIGN(const EncodedDocument after, update.apply_to(&*view));
    const Status valid = validate(*repo, after.header, after.body);
    INFO(valid);
    REQUIRE(valid);
    const auto changed = DocumentView::open(*repo, after.header, after.body);
    REQUIRE(changed);
    return to_json_fields(*changed);
  }
  std::string after(const std::string& before, const std::string& fields) const {
    const auto result = apply(update(fields), before);
    INFO(fields);
    INFO(result.status());
    REQUIRE(result);
    return *result;
  }
  Status failure(const std::string& before, const std::string& fields) const {
    const auto result = apply(update(fields), before);
    INFO(fields);
    REQUIRE_FALSE(result);
    return result.error();
  }
};

}  // namespace

TEST_CASE("update: assign sets, null clears, other fields stay as they are") {
  const Song song;
  CHECK(song.after(R"({"title":"a","lyrics":"l"})", R"({"year":{"assign":7}})") ==
        R"({"title":"a","year":7,"lyrics":"l"})");
  CHECK(song.after(R"({"title":"a","year":1,"lyrics":"l"})", R"({"lyrics":{"assign":null},"year":{"assign":2}})") ==
        R"({"title":"a","year":2})");
  CHECK(song.after(R"({"year":1})", R"({"title":{"assign":null}})") == R"({"year":1})");
  CHECK(song.after("{}", R"({"tags":{"assign":["a","b"]},"main_credit":{"assign":{"name":"K"}}})") ==
        R"({"tags":["a","b"],"main_credit":{"name":"K"}})");
}

TEST_CASE("update: several actions on one value run in the order of the text") {
  const Song song;
  CHECK(song.after(R"({"year":1})", R"({"year":{"increment":1,"multiply":10,"decrement":3}})") == R"({"year":17})");
  CHECK(song.after(R"({"year":1})", R"({"year":{"increment":1},"title":{"assign":"t"},"year":{"multiply":10}})") ==
        R"({"title":"t","year":20})");
  CHECK(song.after(R"({"charts":{"a":1}})",
                   R"({"charts{a}":{"assign":5},"charts":{"assign":{}},"charts{b}":{"assign":2}})") ==
        R"({"charts":{"b":2}})");
}

TEST_CASE("update: add appends to arrays and sets weights and entries") {
  const Song song;
  CHECK(song.after(R"({"tags":["a"]})", R"({"tags":{"add":["b","a"]}})") == R"({"tags":["a","b","a"]})");
  CHECK(song.after("{}", R"({"tags":{"add":["b"]}})") == R"({"tags":["b"]})");
  CHECK(song.after(R"({"moods":{"calm":1,"sad":2}})", R"({"moods":{"add":{"sad":9,"new":-1}}})") ==
        R"({"moods":{"calm":1,"sad":9,"new":-1}})");
  CHECK(song.after(R"({"charts":{"no":1}})", R"({"charts":{"add":{"no":2,"se":3}}})") ==
        R"({"charts":{"no":2,"se":3}})");
  CHECK(song.after(R"({"grid":[[1],[2]]})", R"({"grid[1]":{"add":[3,4]}})") == R"({"grid":[[1],[2,3,4]]})");
  CHECK(song.after("{}", R"({"main_credit.roles":{"add":["x"]}})") == R"({"main_credit":{"roles":["x"]}})");
}

TEST_CASE("update: remove takes out elements, entries and positions") {
  const Song song;
  CHECK(song.after(R"({"tags":["a","b","a"]})", R"({"tags":{"remove":["a","q"]}})") == R"({"tags":["b"]})");
  CHECK(song.after(R"({"moods":{"calm":1,"sad":2}})", R"({"moods":{"remove":{"sad":0}}})") ==
        R"({"moods":{"calm":1}})");
  CHECK(song.after(R"({"ratings":{"5":1,"6":2}})", R"({"ratings":{"remove":[5,"6"]}})") == R"({"ratings":{}})");
  CHECK(song.after(R"({"charts":{"no":1,"se":2}})", R"({"charts":{"remove":["no"]}})") == R"({"charts":{"se":2}})");
  CHECK(song.after(R"({"charts":{"no":1,"se":2}})", R"({"charts{no}":{"remove":0}})") == R"({"charts":{"se":2}})");
  CHECK(song.after(R"({"moods":{"a b":1}})", R"({"moods{\"a b\"}":{"remove":0}})") == R"({"moods":{}})");
  CHECK(song.after(R"({"tags":["a","b","c"]})", R"({"tags[1]":{"remove":0}})") == R"({"tags":["a","c"]})");
  CHECK(song.after(R"({"year":1})", R"({"charts{no}":{"remove":0},"tags":{"remove":["a"]},)"
                                    R"("main_credit.name":{"assign":null}})") == R"({"year":1})");
}

TEST_CASE("update: paths and matches reach values within values and make what is missing") {
  const Song song;
  CHECK(song.after(R"({"credits":[{"name":"a"},{"name":"b"}]})", R"({"credits[1].name":{"assign":"c"}})") ==
        R"({"credits":[{"name":"a"},{"name":"c"}]})");
  CHECK(song.after(R"({"credits":[{"name":"a"},{"name":"b"}]})",
                   R"({"credits":{"match":{"element":1,"assign":{"share":0.5}}}})") ==
        R"({"credits":[{"name":"a"},{"share":0.5}]})");
  CHECK(song.after(R"({"moods":{"sad":2}})", R"({"moods":{"match":{"element":"sad","increment":3}}})") ==
        R"({"moods":{"sad":5}})");
  CHECK(song.after(R"({"moods":{"sad":2}})", R"({"moods":{"match":{"increment":3,"element":"new"}}})") ==
        R"({"moods":{"sad":2,"new":3}})");
  CHECK(song.after("{}", R"({"charts{no}":{"assign":4}})") == R"({"charts":{"no":4}})");
  CHECK(song.after(R"({"ratings":{"5":1}})", R"({"ratings":{"match":{"element":5,"multiply":7}}})") ==
        R"({"ratings":{"5":7}})");
  CHECK(song.after("{}", R"({"main_credit.share":{"increment":0.5}})") == R"({"main_credit":{"share":0.5}})");
  CHECK(song.after(R"({"by_country":{"no":[{"name":"a"}]}})",
                   R"({"by_country{no}[0].share":{"assign":0.5},"by_country{dk}":{"add":[{"name":"d"}]}})") ==
        R"({"by_country":{"no":[{"name":"a","share":0.5}],"dk":[{"name":"d"}]}})");
  CHECK(song.after(R"({"grid":[[1,2],[3]]})",
                   R"({"grid":{"match":{"element":0,"match":{"element":1,"increment":5}}}})") ==
        R"({"grid":[[1,7],[3]]})");
}

TEST_CASE("update: arithmetic is exact with integers and cuts off towards zero otherwise") {
  const Song song;
  CHECK(song.after("{}", R"({"plays":{"increment":5}})") == R"({"plays":5})");
  CHECK(song.after(R"({"plays":9007199254740993})", R"({"plays":{"increment":1}})") == R"({"plays":9007199254740994})");
  CHECK(song.after(R"({"year":-7})", R"({"year":{"divide":2}})") == R"({"year":-3})");
  CHECK(song.after(R"({"year":7})", R"({"year":{"divide":2.0}})") == R"({"year":3})");
  CHECK(song.after(R"({"year":7})", R"({"year":{"multiply":1.5}})") == R"({"year":10})");
  CHECK(song.after(R"({"year":-7})", R"({"year":{"multiply":1.5}})") == R"({"year":-10})");
  CHECK(song.after(R"({"seconds":1.5,"loudness":1.5})", R"({"seconds":{"divide":4},"loudness":{"decrement":1}})") ==
        R"({"loudness":0.5,"seconds":0.375})");
  CHECK(song.after(R"({"stars":120})", R"({"stars":{"increment":7}})") == R"({"stars":127})");
}

TEST_CASE("update: a whole number is exact in whichever form it is written") {
  // The right values are those of Python's integers.
  struct Case {
    const char* before;
    const char* action;
    const char* after;
  };
  const Song song;
  for (const Case& each : {
           Case{"9007199254740993", R"("increment":1.0)", "9007199254740994"},
           Case{"9007199254740993", R"("increment":0.0)", "9007199254740993"},
           Case{"9007199254740993", R"("increment":-0.0)", "9007199254740993"},
           Case{"9007199254740993", R"("multiply":1.0)", "9007199254740993"},
           Case{"9007199254740993", R"("divide":1e0)", "9007199254740993"},
           Case{"-9007199254740993", R"("decrement":1E0)", "-9007199254740994"},
           Case{"9223372036854775807", R"("increment":-1.0)", "9223372036854775806"},
           Case{"9223372036854775806", R"("increment":1.0)", "9223372036854775807"},
           Case{"-9223372036854775808", R"("increment":9223372036854775808)", "0"},
           Case{"-9223372036854775808", R"("increment":9223372036854775808.0)", "0"},
           Case{"9223372036854775807", R"("decrement":9223372036854775808)", "-1"},
           Case{"9223372036854775807", R"("divide":2.0)", "4611686018427387903"},
           Case{"-9223372036854775807", R"("divide":2.0)", "-4611686018427387903"},
           Case{"9223372036854775807", R"("divide":1e300)", "0"},
           Case{"9223372036854775807", R"("multiply":0.5)", "4611686018427387903"},
           Case{"9007199254740993", R"("increment":0.5)", "9007199254740993"},
           Case{"3074457345618258602", R"("multiply":3.0)", "9223372036854775806"},
           Case{"1", R"("increment":9007199254740993.0)", "9007199254740994"},
           Case{"1", R"("increment":9007199254740993e0)", "9007199254740994"},
           Case{"1", R"("increment":900719925474099300.00e-2)", "9007199254740994"},
           Case{"-1", R"("decrement":-9223372036854775807.0)", "9223372036854775806"},
           Case{"7", R"("multiply":0e5)", "0"},
       }) {
    INFO(each.before << " " << each.action);
    CHECK(song.after(std::string(R"({"plays":)") + each.before + "}",
                     std::string(R"({"plays":{)") + each.action + "}}") ==
          std::string(R"({"plays":)") + each.after + "}");
  }
  for (const char* action : {R"("increment":1.0)", R"("multiply":1e300)", R"("increment":18446744073709551616.0)"}) {
    INFO(action);
    CHECK(song.failure(R"({"plays":9223372036854775807})", std::string(R"({"plays":{)") + action + "}}").code() ==
          StatusCode::InvalidField);
  }
}

TEST_CASE("update: a whole number that no form of a change holds is refused") {
  const Song song;
  for (const std::string number : {"9223372036854775809", "9223372036854775809.0", "-9223372036854775809"}) {
    const Status refused = song.refused(R"({"plays":{"decrement":)" + number + "}}");
    CHECK(refused.code() == StatusCode::InvalidField);
    CHECK(refused.message().find("expected a number of 64 bits") != std::string::npos);
  }
}

TEST_CASE("update: overflow and division by zero are refused and named") {
  const Song song;
  const Status overflow = song.failure(R"({"year":2147483647})", R"({"year":{"increment":1}})");
  CHECK(overflow.code() == StatusCode::InvalidField);
  CHECK(overflow.message() ==
        "document \"id:music:song::x\": field year: increment of 2147483647 by 1 is out of the range of int");
  CHECK(song.failure(R"({"plays":9223372036854775807})", R"({"plays":{"increment":1}})").code() ==
        StatusCode::InvalidField);
  CHECK(song.failure(R"({"plays":-9223372036854775808})", R"({"plays":{"divide":-1}})").code() ==
        StatusCode::InvalidField);
  CHECK(song.failure(R"({"plays":9223372036854775807})", R"({"plays":{"multiply":1.5}})").code() ==
        StatusCode::InvalidField);
  CHECK(song.failure(R"({"stars":-128})", R"({"stars":{"decrement":1}})").code() == StatusCode::InvalidField);
  CHECK(song.failure(R"({"seconds":1e308})", R"({"seconds":{"multiply":10}})").code() == StatusCode::InvalidField);
  CHECK(song.failure(R"({"loudness":3e38})", R"({"loudness":{"multiply":2}})").code() == StatusCode::InvalidField);
  CHECK(song.failure(R"({"moods":{"a":2147483647}})", R"({"moods{a}":{"increment":1}})").code() ==
        StatusCode::InvalidField);
  for (const char* zero : {R"({"year":{"divide":0}})", R"({"seconds":{"divide":0.0}})"}) {
    CHECK(song.refused(zero).message().find("division by zero") != std::string::npos);
  }
}

TEST_CASE("update: a position that the array does not have is refused") {
  const Song song;
  const Status status = song.failure(R"({"tags":["a"]})", R"({"tags[1]":{"assign":"b"}})");
  CHECK(status.code() == StatusCode::InvalidField);
  CHECK(status.message().find("field tags[1]: expected position 1 of the array, which has 1 elements") !=
        std::string::npos);
  CHECK(song.failure("{}", R"({"tags[0]":{"remove":0}})").code() == StatusCode::InvalidField);
}

TEST_CASE("update: without a document it says NotFound, or makes one if asked to") {
  const Song song;
  DocumentUpdate update = song.update(R"({"plays":{"increment":2}})");
  CHECK(update.apply_to(nullptr).error().code() == StatusCode::NotFound);
  update.set_create_if_missing(true);
  const auto made = update.apply_to(nullptr);
  REQUIRE(made);
  CHECK(validate(*song.repo, made->header, made->body));
  const auto view = DocumentView::open(*song.repo, made->header, made->body);
  CHECK(view->id() == kId);
  CHECK(to_json_fields(*view).value() == R"({"plays":2})");
}

TEST_CASE("update: another document, another type and a damaged document are refused") {
  const auto repo = test::repo_of("document song { field year type int { header } }\ndocument film { }");
  DocumentUpdate update(*repo->find("song"), test::id_of("doc:ns:x"));
  REQUIRE(update.add("year", UpdateAction::Assign, std::int32_t{1}));
  const auto apply = [&](const EncodedDocument& document) {
    const auto view = DocumentView::open(*repo, document.header, document.body);
    REQUIRE(view);
    return update.apply_to(&*view).status();
  };
  CHECK(apply(encode(Document(*repo->find("song"), test::id_of("doc:ns:x")))));
  CHECK(apply(encode(Document(*repo->find("song"), test::id_of("doc:ns:y")))).code() == StatusCode::InvalidArgument);
  CHECK(apply(encode(Document(*repo->find("film"), test::id_of("doc:ns:x")))).code() == StatusCode::InvalidArgument);
  EncodedDocument damaged = encode(Document(*repo->find("song"), test::id_of("doc:ns:x")));
  damaged.body = "abc";
  CHECK(apply(damaged).code() == StatusCode::Corruption);
}

TEST_CASE("update: fields of a newer schema stay, and a field that moved goes to its part") {
  const auto before = test::repo_of(
      "document song { field year type int { body } field more type string { } field title type string { header } }");
  const auto after =
      test::repo_of("document song { field year type int { header } field title type string { header } }");
  Document document(*before->find("song"), test::id_of(kId));
  REQUIRE(document.set("year", std::int32_t{7}));
  REQUIRE(document.set("more", "kept"));
  const EncodedDocument stored = encode(document);
  DocumentUpdate update(*after->find("song"), test::id_of(kId));
  REQUIRE(update.add("title", UpdateAction::Assign, "t"));
  const auto view = DocumentView::open(*after, stored.header, stored.body);
  const auto result = update.apply_to(&*view);
  REQUIRE(result);
  const auto changed = DocumentView::open(*after, result->header, "");
  CHECK(changed->field("year")->as_int64() == 7);
  CHECK(changed->field("title")->as_string_view() == "t");
  const auto whole = DocumentView::open(*before, result->header, result->body);
  CHECK(whole->field("more")->as_string_view() == "kept");
}

TEST_CASE("update: a stored value that no longer fits its field can only be replaced") {
  const auto before = test::repo_of("document song { field year type string { header } }");
  const auto after = test::repo_of("document song { field year type int { header } }");
  Document document(*before->find("song"), test::id_of(kId));
  REQUIRE(document.set("year", "text"));
  const EncodedDocument stored = encode(document);
  const auto view = DocumentView::open(*after, stored.header, stored.body);
  DocumentUpdate update(*after->find("song"), test::id_of(kId));
  REQUIRE(update.add("year", UpdateAction::Increment, std::int64_t{1}));
  CHECK(update.apply_to(&*view).error().message().find("field year, as it is stored: expected int, found string") !=
        std::string::npos);
  DocumentUpdate replacing(*after->find("song"), test::id_of(kId));
  REQUIRE(replacing.add("year", UpdateAction::Assign, std::int32_t{3}));
  REQUIRE(replacing.add("year", UpdateAction::Increment, std::int64_t{1}));
  const auto result = replacing.apply_to(&*view);
  REQUIRE(result);
  CHECK(DocumentView::open(*after, result->header, result->body)->field("year")->as_int64() == 4);
}

TEST_CASE("update: what does not fit the type is refused with its path and place") {
  const Song song;
  CHECK(song.refused(R"({"year":{"assign":"x"}})").message() ==
        "document \"id:music:song::x\": field year: JSON, byte 18: expected an integer for type int, found a string");
  CHECK(song.refused(R"({"credits":{"add":[{"name":"a"},{"share":"x"}]}})").message() ==
        "document \"id:music:song::x\": field credits[1].share: JSON, byte 41: expected a number for type float, "
        "found a string");
  const std::string named_once = song.refused(R"({"title":{"increment":1}})").message();
  CHECK(named_once.find("field title: JSON, byte ") != std::string::npos);
  CHECK(named_once.find("field title") == named_once.rfind("field title"));
  CHECK(song.refused(R"({"unheard":{"assign":1}})").message().find("has no field \"unheard\"") != std::string::npos);
  for (const char* bad : {R"([])",
                          R"({"year":7})",
                          R"({"year":{}})",
                          R"({"year":{"set":1}})",
                          R"({"year":{"add":1}})",
                          R"({"year":{"remove":0}})",
                          R"({"year":{"increment":"1"}})",
                          R"({"year":{"increment":null}})",
                          R"({"title":{"increment":1}})",
                          R"({"live":{"increment":1}})",
                          R"({"tags":{"increment":1}})",
                          R"({"tags":{"add":"a"}})",
                          R"({"tags":{"add":[1]}})",
                          R"({"tags":{"remove":{"a":0}}})",
                          R"({"ratings":{"remove":["x"]}})",
                          R"({"ratings":{"remove":{"x":0}}})",
                          R"({"moods":{"add":["a"]}})",
                          R"({"year[0]":{"assign":1}})",
                          R"({"year{a}":{"assign":1}})",
                          R"({"year.x":{"assign":1}})",
                          R"({"tags{a}":{"assign":"a"}})",
                          R"({"charts[0]":{"assign":1}})",
                          R"({"ratings{x}":{"assign":1}})",
                          R"({"charts{no":{"assign":1}})",
                          R"({"charts{\"no}":{"assign":1}})",
                          R"({"charts{$x}":{"assign":1}})",
                          R"({"charts{\"no\"x}":{"assign":1}})",
                          R"({"tags[":{"assign":"a"}})",
                          R"({"tags[x]":{"assign":"a"}})",
                          R"({"tags[-1]":{"assign":"a"}})",
                          R"({"tags[4294967296]":{"assign":"a"}})",
                          R"({"tags[1":{"assign":"a"}})",
                          R"({"main_credit.unheard":{"assign":1}})",
                          R"({"main_credit.":{"assign":1}})",
                          R"({"":{"assign":1}})",
                          R"({"moods{a}":{"assign":1.5}})",
                          R"({"moods{a}":{"assign":2147483648}})",
                          R"({"moods":{"match":{"element":"a"}}})",
                          R"({"moods":{"match":{"increment":1}}})",
                          R"({"moods":{"match":{"element":"a","increment":1,"multiply":2}}})",
                          R"({"moods":{"match":7}})",
                          R"({"tags":{"match":{"element":-1,"assign":"a"}}})",
                          R"({"tags":{"match":{"element":"x","assign":"a"}}})",
                          R"({"year":{"match":{"element":1,"assign":1}}})",
                          R"({"ratings":{"match":{"element":1.5,"assign":1}}})",
                          R"({"charts{a}{b}":{"assign":1}})",
                          R"({"moods{a}{b}":{"assign":1}})"}) {
    INFO(bad);
    const Status status = song.refused(bad);
    INFO(status);
    CHECK(status.code() == StatusCode::InvalidField);
    CHECK(status.message().find("JSON, byte ") != std::string::npos);
  }
}

TEST_CASE("update: a change that does not fit is not added") {
  const Song song;
  const DocumentType& type = *song.repo->find("song");
  DocumentUpdate update(type, test::id_of(kId));
  CHECK(update.add("year", UpdateAction::Assign, "x").code() == StatusCode::InvalidField);
  CHECK(update.add("year", UpdateAction::Clear, std::int32_t{1}).code() == StatusCode::InvalidField);
  CHECK(update.add("year", UpdateAction::None).code() == StatusCode::InvalidField);
  CHECK(update.add("year", UpdateAction::Increment, 1.0F).code() == StatusCode::InvalidField);
  CHECK(update.add("year", UpdateAction::Increment, std::nan("")).code() == StatusCode::InvalidField);
  CHECK(update.add("tags", UpdateAction::Remove, "a").code() == StatusCode::InvalidField);
  CHECK(update.add("tags", UpdateAction::Remove, ArrayValue{{std::int32_t{1}}}).code() == StatusCode::InvalidField);
  CHECK(update.add(FieldUpdate{}).code() == StatusCode::InvalidField);
  const Field elsewhere = *type.field("year");
  CHECK(update.add({&elsewhere, {}, UpdateAction::Clear, {}}).code() == StatusCode::InvalidField);
  CHECK(update.add({type.field("year"), {{UpdateStep::Kind::Member, 1, {}}}, UpdateAction::Clear, {}}).code() ==
        StatusCode::InvalidField);
  CHECK(update.updates().empty());
  for (std::size_t i = 0; i < DocumentUpdate::kFieldUpdatesMax; ++i) {
    REQUIRE(update.add("year", UpdateAction::Increment, std::int64_t{1}));
  }
  CHECK(update.add("year", UpdateAction::Increment, std::int64_t{1}).code() == StatusCode::TooLarge);
}

TEST_CASE("update: what may make a document longer is told apart") {
  const Song song;
  for (const char* small :
       {R"({"year":{"assign":1}})", R"({"plays":{"increment":1}})", R"({"lyrics":{"assign":null}})",
        R"({"tags":{"remove":["a"]}})", R"({"main_credit.share":{"assign":1}})", R"({"moods{a}":{"remove":0}})"}) {
    CHECK_FALSE(song.update(small).may_grow());
  }
  for (const char* large : {R"({"lyrics":{"assign":"x"}})", R"({"tags":{"add":["a"]}})",
                            R"({"moods":{"match":{"element":"a","increment":1}}})", R"({"charts{a}":{"assign":1}})"}) {
    CHECK(song.update(large).may_grow());
  }
  DocumentUpdate creating = song.update(R"({"year":{"assign":1}})");
  creating.set_create_if_missing(true);
  CHECK(creating.may_grow());
}

TEST_CASE("update: one with millions of values is refused before they are in memory") {
  std::string fields = R"({"ratings":{"assign":{"1":1}},"flags":{"assign":[)";
  for (int i = 0; i < (4 << 20); ++i) fields += "true,";
  CHECK(Song().refused(fields + "true]}}").code() == StatusCode::TooLarge);
}

TEST_CASE("update: as JSON it is what feeds hold, with type and create where they are needed") {
  const Song song;
  DocumentUpdate update(*song.repo->find("song"), test::id_of("userdoc:mail:5:x"));
  update.set_create_if_missing(true);
  REQUIRE(update.add("charts{a b}", UpdateAction::Increment, std::int64_t{2}));
  REQUIRE(update.add("main_credit.name", UpdateAction::Clear));
  REQUIRE(update.add("ratings", UpdateAction::Remove, ArrayValue{{std::int32_t{5}}}));
  const std::string text =
      R"({"update":"userdoc:mail:5:x","type":"song","create":true,"fields":{"charts{\"a b\"}":{"increment":2},)"
      R"("main_credit.name":{"assign":null},"ratings":{"remove":[5]}}})";
  CHECK(update.to_json().value() == text);
  CHECK(DocumentUpdate::from_json(*song.repo, text).value() == update);
  REQUIRE(update.add("seconds", UpdateAction::Assign, std::nan("")));
  const std::string with_nan = update.to_json().value();
  CHECK(with_nan.find(R"("seconds":{"assign":"NaN"})") != std::string::npos);
  CHECK(DocumentUpdate::from_json(*song.repo, with_nan)->to_json().value() == with_nan);
  CHECK(DocumentUpdate::from_json(*song.repo, R"({"remove":"id:m:song::x"})").error().code() ==
        StatusCode::InvalidArgument);
  CHECK(DocumentUpdate::from_json(*song.repo, R"({"update":"id:m:song::x","condition":"song","fields":{}})")
            .error()
            .code() == StatusCode::InvalidArgument);
}

TEST_CASE("update: bytes of another version, type or shape are refused") {
  const Song song;
  DocumentUpdate update = song.update(R"({"charts{no}":{"assign":1},"tags":{"add":["a"]},"plays":{"increment":1}})");
  const std::string bytes = update.encode();
  CHECK(DocumentUpdate::decode(*song.repo, bytes).value() == update);
  CHECK(DocumentUpdate::id_of(bytes) == kId);
  CHECK(DocumentUpdate::id_of("").empty());
  CHECK(DocumentUpdate::decode(*song.repo, "").error().code() == StatusCode::Corruption);
  CHECK(DocumentUpdate::decode(*song.repo, bytes + "x").error().code() == StatusCode::Corruption);
  std::string other = bytes;
  other[0] = 2;
  CHECK(DocumentUpdate::decode(*song.repo, other).error().code() == StatusCode::Corruption);
  const auto films = test::repo_of("document film { }");
  CHECK(DocumentUpdate::decode(*films, bytes).error().code() == StatusCode::UnknownType);
  const auto smaller = test::repo_of("document song { field plays type long { } }");
  CHECK(DocumentUpdate::decode(*smaller, bytes).error().code() == StatusCode::InvalidField);
  // The stored value has the same size, but another type.
  const auto floats = test::repo_of("document song { field year type float { header } }");
  const std::string assigned = song.update(R"({"year":{"assign":7}})").encode();
  CHECK(DocumentUpdate::decode(*floats, assigned).error().code() == StatusCode::InvalidField);
  const auto numbers = test::repo_of("document song { field charts type map<int, int> { } }");
  const std::string keyed = song.update(R"({"charts{four}":{"assign":7}})").encode();
  CHECK(DocumentUpdate::decode(*numbers, keyed).error().code() == StatusCode::InvalidField);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const std::vector<char> exact(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
    CHECK_FALSE(DocumentUpdate::decode(*song.repo, {exact.data(), exact.size()}));
  }
}

}  // namespace fjord
