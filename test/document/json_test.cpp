#include "fjord/document/json.h"

#include <cmath>
#include <fmt/format.h>
#include <random>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "fjord/document/json_conversion.h"
#include "sample_schema.h"

namespace fjord {
namespace {

const std::string kFull =
    R"({"put":"id:music:song:n=7:full","fields":{"title":"Fjære ♫","year":-1969,"plays":9000000000,)"
    R"("loudness":-7.25,"seconds":213.125,"live":true,"stars":-5,"cover":"AP8Q","lyrics":"la\nla","tags":["a","","c"],)"
    R"("moods":{"calm":10,"sad":-3},"charts":{"no":1,"se":40},)"
    R"("main_credit":{"name":"Kari","share":0.5,"roles":["voice"]},"credits":[{"name":"Ola","share":0.1}],)"
    R"("by_country":{"no":[{"name":"Kari"}],"dk":[]},"ratings":{"5":100,"1":2},"flags":[true,false],"grid":[[1,2],[]]}})";

Status error_of(std::string_view json) {
  const auto operation = parse_feed_operation(*test::sample_repo(), json);
  REQUIRE_FALSE(operation);
  return operation.error();
}

Status field_error(const std::string& fields) {
  return error_of(R"({"put":"id:music:song::x","fields":)" + fields + "}");
}

/// Returns the JSON of the fields after parsing and printing.
std::string round_trip(const std::string& fields) {
  const auto repo = test::sample_repo();
  const auto operation = parse_feed_operation(*repo, R"({"put":"id:music:song::x","fields":)" + fields + "}");
  INFO(fields);
  INFO(operation.status());
  REQUIRE(operation);
  const Status valid = validate(*repo, operation->document->header, operation->document->body);
  INFO(valid);
  CHECK(valid);
  const auto view = DocumentView::open(*repo, operation->document->header, operation->document->body);
  REQUIRE(view);
  const auto json = to_json_fields(*view);
  REQUIRE(json);
  return *json;
}

}  // namespace

TEST_CASE("json: a put with a field of every kind reads back as the same text") {
  const auto repo = test::sample_repo();
  const auto operation = parse_feed_operation(*repo, kFull);
  INFO(operation.status());
  REQUIRE(operation);
  CHECK(operation->kind == FeedOperation::Kind::Put);
  CHECK(operation->id.str() == "id:music:song:n=7:full");
  REQUIRE(operation->document);
  CHECK(validate(*repo, operation->document->header, operation->document->body));
  const auto view = DocumentView::open(*repo, operation->document->header, operation->document->body);
  REQUIRE(view);
  CHECK(to_json_document(*view).value() == kFull);
}

TEST_CASE("json: many documents in one text have no fields without content") {
  const auto repo = test::sample_repo();
  const std::size_t begin_of_fields = kFull.find("{\"title");
  const std::string full = kFull.substr(begin_of_fields, kFull.size() - begin_of_fields - 1);
  JsonLines lines;
  lines.append("[");
  for (const std::string& fields :
       {full,
        std::string(
            R"({"title":"","cover":"","tags":[],"moods":{},"charts":{},"main_credit":{},"year":0,"live":false})"),
        std::string("{}")}) {
    const auto operation = parse_feed_operation(*repo, R"({"put":"id:music:song::x","fields":)" + fields + "}");
    INFO(operation.status());
    REQUIRE(operation);
    const auto view = DocumentView::open(*repo, operation->document->header, operation->document->body);
    REQUIRE(view);
    const std::size_t begin = lines.size();
    lines.append_string("a\"\n");
    lines.cut_to(begin);
    REQUIRE(lines.append_content(*view));
    lines.append(",");
  }
  lines.append_string("a\"\n");
  lines.append("]");
  CHECK(lines.take() == "[" + full + R"(,{"year":0,"live":false},{},"a\"\n"])");
  CHECK(lines.size() == 0);
}

TEST_CASE("json: the encoded bytes are those of the same document built by hand") {
  const auto repo = test::sample_repo();
  const Document song = test::full_song(*repo);
  const EncodedDocument encoded = encode(song);
  const auto view = DocumentView::open(*repo, encoded.header, encoded.body);
  REQUIRE(view);
  const auto again = parse_feed_operation(*repo, to_json_document(*view).value());
  INFO(again.status());
  REQUIRE(again);
  CHECK(*again->document == encoded);
}

TEST_CASE("json: a remove, and members in any order") {
  const auto repo = test::sample_repo();
  const auto remove = parse_feed_operation(*repo, R"( {"remove":"id:music:song::x"} )");
  REQUIRE(remove);
  CHECK(remove->kind == FeedOperation::Kind::Remove);
  CHECK_FALSE(remove->document);
  CHECK(parse_feed_operation(*repo, R"({"remove":"doc:ns:x"})"));
  const auto put = parse_feed_operation(*repo, R"({"fields":{"year":1},"put":"id:music:song::x"})");
  CHECK(put);
}

TEST_CASE("json: lines that visits, gets and subscriptions print are puts") {
  const auto repo = test::sample_repo();
  for (const char* line :
       {R"({"id":"id:music:song::x","fields":{"year":1}})",
        R"({"pathId":"/document/v1/music/song/docid/x","id":"id:music:song::x","fields":{"year":1}})",
        R"({"put":"id:music:song::x","fields":{"year":1},"timestamp_us":5})",
        R"({"put":"id:music:song::x","fields":{"year":1},"version":5})"}) {
    const auto put = parse_feed_operation(*repo, line);
    REQUIRE(put);
    CHECK(put->kind == FeedOperation::Kind::Put);
    CHECK(put->id.str() == "id:music:song::x");
  }
  CHECK(parse_feed_operation(*repo, R"({"remove":"id:music:song::x","timestamp_us":5})"));
  CHECK_FALSE(parse_feed_operation(*repo, R"({"id":"id:music:song::x","put":"id:music:song::x","fields":{}})"));
  CHECK_FALSE(parse_feed_operation(*repo, R"({"id":"id:music:song::x"})"));
}

TEST_CASE("json: ids of the old schemes take the type from the member type") {
  const auto repo = test::sample_repo();
  const std::string text = R"({"put":"userdoc:mail:5:x","type":"song","fields":{"year":1}})";
  const auto put = parse_feed_operation(*repo, text);
  REQUIRE(put);
  const auto view = DocumentView::open(*repo, put->document->header, put->document->body);
  REQUIRE(view);
  CHECK(to_json_document(*view).value() == text);
  CHECK(error_of(R"({"put":"doc:ns:x","fields":{}})").code() == StatusCode::UnknownType);
  CHECK(error_of(R"({"put":"doc:ns:x","type":"nothing","fields":{}})").code() == StatusCode::UnknownType);
  CHECK(error_of(R"({"put":"id:ns:song::x","type":"other","fields":{}})").code() == StatusCode::InvalidArgument);
}

TEST_CASE("json: an operation that is wrong is refused with code and place") {
  CHECK(error_of("").code() == StatusCode::InvalidArgument);
  CHECK(error_of("[1]").message() == "JSON, byte 0: expected an operation, which is an object, found an array");
  CHECK(error_of(R"({"put":"id:music:song::x"})").message() == "JSON, byte 0: a put without fields");
  CHECK(error_of(R"({"put":7,"fields":{}})").message() == "JSON, byte 7: expected a document id, found an integer");
  CHECK(error_of(R"({"put":"nonsense","fields":{}})").code() == StatusCode::InvalidId);
  CHECK(error_of(R"({"put":"id:music:film::x","fields":{}})").code() == StatusCode::UnknownType);
  CHECK(error_of(R"({"remove":"id:music:film::x"})").code() == StatusCode::UnknownType);
  CHECK(error_of(R"({"remove":"id:music:song::x","fields":{}})").code() == StatusCode::InvalidArgument);
  CHECK(error_of(R"({"put":"id:music:song::x","remove":"id:music:song::x"})").code() == StatusCode::InvalidArgument);
  CHECK(error_of(R"({"put":"id:music:song::x","fields":{},"unless":"true"})").message().find("\"unless\"") !=
        std::string::npos);
  CHECK(error_of(R"({"put":"id:music:song::x","fields":{},"fields":{}})").message().find("twice") != std::string::npos);
  CHECK(error_of(R"({"put":"id:music:song::x","fields":{}} x)").code() == StatusCode::InvalidArgument);
  CHECK(error_of(std::string(R"({"put":"id:music:song::x","fields":{}})") + '\0' + "x").code() ==
        StatusCode::InvalidArgument);
  CHECK(error_of("{\"put\":\"id:music:song::x\",\"fields\":{\"title\":\"\xff\"}}").message().find("not UTF-8") !=
        std::string::npos);
  CHECK(field_error("[]").code() == StatusCode::InvalidField);
}

TEST_CASE("json: an error in a value names its place in the text and in the document") {
  const Status status = field_error(R"({"credits":[{"name":"a"},{"share":"x"}]})");
  CHECK(status.code() == StatusCode::InvalidField);
  CHECK(
      status.message() ==
      "document \"id:music:song::x\", field credits[1].share: JSON, byte 69: expected a number for type float, found a "
      "string");
  CHECK(field_error(R"({"by_country":{"no":[{"roles":["a",1]}]}})")
            .message()
            .find("field by_country.\"no\"[0].roles[1]: ") != std::string::npos);
  CHECK(field_error(R"({"unheard":1})").message().find("document type song has no field \"unheard\"") !=
        std::string::npos);
  CHECK(field_error(R"({"main_credit":{"unheard":1}})").message().find("struct credit has no field") !=
        std::string::npos);
}

TEST_CASE("json: the offset is that of the value, whatever its kind") {
  for (const char* value : {"null", "true", "false", "17", "-1.5", "\"x\"", "{}", "[ ]"}) {
    INFO(value);
    // An array of arrays of integers, where only the integer fits.
    const Status status = field_error(std::string(R"({"grid":[[1, )") + value + (value[0] == '1' ? "e0" : "") + "]]}");
    CHECK(status.message().find("field grid[0][1]: JSON, byte 48: expected an integer") != std::string::npos);
    INFO(status);
  }
}

TEST_CASE("json: values of another kind or out of range are refused") {
  for (const char* fields : {R"({"year":2147483648})",
                             R"({"year":-2147483649})",
                             R"({"year":1.5})",
                             R"({"year":1e3})",
                             R"({"year":"1"})",
                             R"({"year":true})",
                             R"({"stars":128})",
                             R"({"stars":-129})",
                             R"({"plays":9223372036854775808})",
                             R"({"plays":18446744073709551616})",
                             R"({"loudness":1e39})",
                             R"({"loudness":"1"})",
                             R"({"live":1})",
                             R"({"live":"true"})",
                             R"({"title":1})",
                             R"({"title":["a"]})",
                             R"({"cover":"****"})",
                             R"({"cover":"QQ=A"})",
                             R"({"tags":"a"})",
                             R"({"tags":[null]})",
                             R"({"tags":{"a":1}})",
                             R"({"moods":["a"]})",
                             R"({"moods":{"a":1.5}})",
                             R"({"moods":{"a":1,"a":2}})",
                             R"({"ratings":{"x":1}})",
                             R"({"ratings":{"1":1,"1":1}})",
                             R"({"ratings":{"01x":1}})",
                             R"({"charts":{"a":"b"}})",
                             R"({"charts":[{"key":"a"}]})",
                             R"({"charts":[{"key":"a","value":1,"more":2}]})",
                             R"({"charts":[{"key":"a","value":1},{"key":"a","value":2}]})",
                             R"({"charts":{"a":1,"a":1}})",
                             R"({"main_credit":[]})",
                             R"({"main_credit":{"name":"a","name":"b"}})",
                             R"({"year":1,"year":2})"}) {
    INFO(fields);
    CHECK(field_error(fields).code() == StatusCode::InvalidField);
  }
  CHECK(field_error(R"({"seconds":NaN})").code() == StatusCode::InvalidArgument);
  CHECK(field_error(R"({"seconds":1e999})").code() == StatusCode::InvalidArgument);
  CHECK(field_error(R"({"title":"\ud800"})").code() == StatusCode::InvalidArgument);
  CHECK(field_error(R"({"title":"\udc00"})").code() == StatusCode::InvalidArgument);
}

TEST_CASE("json: the ends of the ranges are accepted and read back") {
  CHECK(round_trip(R"({"year":2147483647})") == R"({"year":2147483647})");
  CHECK(round_trip(R"({"year":-2147483648})") == R"({"year":-2147483648})");
  CHECK(round_trip(R"({"plays":9223372036854775807})") == R"({"plays":9223372036854775807})");
  CHECK(round_trip(R"({"plays":-9223372036854775808})") == R"({"plays":-9223372036854775808})");
  CHECK(round_trip(R"({"loudness":0.1})") == R"({"loudness":0.1})");
  CHECK(round_trip(R"({"seconds":0.1})") == R"({"seconds":0.1})");
  CHECK(round_trip(R"({"seconds":5e-324})") == R"({"seconds":5e-324})");
  CHECK(round_trip(R"({"seconds":3})") == R"({"seconds":3})");
  CHECK(round_trip(R"({"title":"\u0000\"\\\ud83d\udc1f"})") == "{\"title\":\"\\u0000\\\"\\\\\xf0\x9f\x90\x9f\"}");
  CHECK(round_trip(R"({"year":null,"title":"x"})") == R"({"title":"x"})");
  CHECK(round_trip("{}") == "{}");
  CHECK(round_trip(R"({"charts":[{"key":"a","value":1},{"value":2,"key":"b"}]})") == R"({"charts":{"a":1,"b":2}})");
}

TEST_CASE("json: fields come in the order that the type declares, or only those asked for") {
  CHECK(round_trip(R"({"grid":[],"year":1,"title":"t"})") == R"({"title":"t","year":1,"grid":[]})");
  const auto repo = test::sample_repo();
  const DocumentType& type = *repo->find("song");
  const EncodedDocument encoded = encode(test::full_song(*repo));
  const auto view = DocumentView::open(*repo, encoded.header, encoded.body);
  REQUIRE(view);
  const Field* only[] = {type.field("stars"), type.field("year")};
  CHECK(to_json_fields(*view, only).value() == R"({"year":-1969,"stars":-5})");
}

TEST_CASE("json: zeros with any exponent are zero, and what is too close to it for its type is refused") {
  for (const std::string text : {"0.0e-300", "0.0e-3000", "0e-310", "0.000000000000000000000000000000000e300"}) {
    CHECK(round_trip("{\"seconds\":" + text + "}") == round_trip(R"({"seconds":0.0})"));
    CHECK(round_trip("{\"seconds\":-" + text + "}") == round_trip(R"({"seconds":-0.0})"));
  }
  CHECK(round_trip(R"({"seconds":5e-324})") == R"({"seconds":5e-324})");
  CHECK(round_trip(R"({"seconds":1.7976931348623157e308})") == R"({"seconds":1.7976931348623157e+308})");
  CHECK(round_trip(R"({"seconds":18446744073709551616})") == R"({"seconds":18446744073709551616})");
  CHECK_FALSE(field_error(R"({"seconds":1.8e308})").is_ok());
  CHECK_FALSE(field_error(R"({"seconds":99999e308})").is_ok());
  for (const char* tiny : {R"({"seconds":1e-400})", R"({"seconds":-2e-324})", R"({"loudness":1e-60})"}) {
    CHECK(field_error(tiny).message().find("too close to 0") != std::string::npos);
  }
}

TEST_CASE("json: a float is the one nearest to the digits, without a double in between") {
  // Half a step above 1.0000001 is 1.000000178813934326171875, which a double holds; these digits are below and above
  // it.
  CHECK(round_trip(R"({"loudness":1.00000017881393432617187499})") == R"({"loudness":1.0000001})");
  CHECK(round_trip(R"({"loudness":1.00000017881393432617187501})") == R"({"loudness":1.0000002})");
  CHECK(round_trip(R"({"loudness":9007199791611905})") == R"({"loudness":9.0072e+15})");  // 2^53 + 2^29 + 1
}

TEST_CASE("json: numbers that JSON does not have are texts, and come back") {
  const auto repo = test::sample_repo();
  Document song(*repo->find("song"), test::id_of("id:music:song::x"));
  REQUIRE(song.set("seconds", std::nan("")));
  REQUIRE(song.set("loudness", std::numeric_limits<float>::infinity()));
  const EncodedDocument encoded = encode(song);
  const auto view = DocumentView::open(*repo, encoded.header, encoded.body);
  REQUIRE(view);
  const std::string text = R"({"loudness":"Infinity","seconds":"NaN"})";
  CHECK(to_json_fields(*view).value() == text);
  CHECK(round_trip(text) == text);
  CHECK(round_trip(R"({"seconds":"-Infinity"})") == R"({"seconds":"-Infinity"})");
  for (const char* other :
       {R"({"seconds":"nan"})", R"({"seconds":"inf"})", R"({"seconds":"+Infinity"})", R"({"seconds":""})",
        R"({"seconds":"1"})", R"({"year":"NaN"})", R"({"plays":"Infinity"})"}) {
    INFO(other);
    CHECK(field_error(other).code() == StatusCode::InvalidField);
  }
}

TEST_CASE("json: zero keeps its sign in numbers that have one") {
  CHECK(round_trip(R"({"seconds":-0.0})") == R"({"seconds":-0.0})");
  CHECK(round_trip(R"({"seconds":-0})") == R"({"seconds":-0.0})");
  CHECK(round_trip(R"({"loudness":-0})") == R"({"loudness":-0.0})");
  CHECK(round_trip(R"({"seconds":0})") == R"({"seconds":0})");
  CHECK(round_trip(R"({"year":-0})") == R"({"year":0})");
}

TEST_CASE("json: positions are degrees, a text, or millionths of degrees") {
  const auto repo = test::repo_of("document place { field at type position {} field all type array<position> {} }");
  const DocumentType& type = *repo->find("place");
  const auto id = test::id_of("id:a:place::1");
  const auto stored = [&](const std::string& json) {
    const auto encoded = fields_from_json(type, id, json);
    if (!encoded) return "! " + encoded.error().message();
    return to_json_fields(*DocumentView::open(*repo, encoded->header, encoded->body)).value();
  };
  const std::string expected = R"({"at":{"x":10400000,"y":63400000}})";
  for (const char* text : {R"({"at":{"lat":63.4,"lng":10.4}})", R"({"at":{"lng":10.4,"lat":63.4}})",
                           R"({"at":{"x":10400000,"y":63400000}})", R"({"at":"N63.4;E10.4"})",
                           R"({"at":"E10.4;N63.4"})", R"({"at":"63.4;10.4"})"}) {
    INFO(text);
    CHECK(stored(text) == expected);
  }
  CHECK(stored(R"({"all":["S63.4;W10.4",{"lat":-90,"lng":180}]})") ==
        R"({"all":[{"x":-10400000,"y":-63400000},{"x":180000000,"y":-90000000}]})");
  for (const char* text :
       {R"({"at":{"lat":90.1,"lng":0}})", R"({"at":{"lat":"1","lng":0}})", R"({"at":{"lat":1e400,"lng":0}})",
        R"({"at":"here"})", R"({"at":"N91;E0"})", R"({"at":"N1;E181"})", R"({"at":"N-1;E0"})", R"({"at":""})",
        R"({"at":"1;2;3"})", R"({"at":7})", R"({"at":{"lat":1,"y":2}})", R"({"at":{"lat":1,"lon":2}})"}) {
    INFO(text);
    CHECK(stored(text).starts_with("! "));
  }
}

TEST_CASE("json: texts are taken for numbers and numbers for texts where that is asked for") {
  const auto repo = test::repo_of(
      "document c { field i type int {} field l type long {} field d type double {} field f type float {} "
      "field s type string {} field b type bool {} field al type array<long> {} "
      "field m type map<string, string> {} field w type weightedset<string> {} }");
  const auto put = [&](const std::string& fields, JsonValues values) {
    const auto parsed = parse_feed_operation(*repo, R"({"put":"id:a:c::1","fields":)" + fields + "}", values);
    if (!parsed) return "! " + parsed.error().message();
    return to_json_fields(*DocumentView::open(*repo, parsed->document->header, parsed->document->body)).value();
  };
  const std::pair<const char*, const char*> taken[] = {
      {R"({"l":"9007199254740993"})", R"({"l":9007199254740993})"},
      {R"({"i":"-7","d":"0.1","f":"1e-45"})", R"({"i":-7,"d":0.1,"f":1e-45})"},
      {R"({"s":9007199254740993})", R"({"s":"9007199254740993"})"},
      {R"({"s":1.10,"b":"false"})", R"({"s":"1.10","b":false})"},
      {R"({"s":true,"al":["1",2],"m":{"k":7},"w":{"x":"3"}})", R"({"s":"true","al":[1,2],"m":{"k":"7"},"w":{"x":3}})"}};
  for (const auto& [given, stored] : taken) {
    INFO(given);
    CHECK(put(given, JsonValues::Converted) == stored);
    CHECK(put(given, JsonValues::Exact).starts_with("! "));
  }
  for (const char* refused : {R"({"l":""})", R"({"l":" 1"})", R"({"l":"1 "})", R"({"l":"1.5"})", R"({"l":"x"})",
                              R"({"l":"0x10"})", R"({"i":"2147483648"})", R"({"d":"1e400"})", R"({"b":"yes"})",
                              R"({"b":1})", R"({"l":true})", R"({"s":[1]})", R"({"s":{"a":1}})", R"({"l":"NaN"})"}) {
    INFO(refused);
    CHECK(put(refused, JsonValues::Converted).starts_with("! "));
  }
  CHECK_THAT(put(R"({"d":"1e400"})", JsonValues::Converted), Catch::Contains("1e400 is out of the range of double"));
  CHECK_THAT(put(R"({"d":"1e-400"})", JsonValues::Converted), Catch::Contains("1e-400 is too close to 0 for double"));
  for (const char* operand : {R"("1e400")", "1e400"}) {
    INFO(operand);
    const std::string line = fmt::format(R"({{"update":"id:a:c::1","fields":{{"d":{{"increment":{}}}}}}})", operand);
    CHECK_FALSE(parse_feed_operation(*repo, line, JsonValues::Converted).has_value());
  }
  const auto update = parse_feed_operation(
      *repo, R"({"update":"id:a:c::1","create":true,"fields":{"l":{"increment":"9007199254740993"},"s":{"assign":7}}})",
      JsonValues::Converted);
  REQUIRE(update);
  const auto made = update->update->apply_to(nullptr);
  REQUIRE(made);
  CHECK(to_json_fields(*DocumentView::open(*repo, made->header, made->body)).value() ==
        R"({"l":9007199254740993,"s":"7"})");
}

TEST_CASE("json: fields without an operation around them") {
  const auto repo = test::sample_repo();
  const auto id = test::id_of("id:music:song::x");
  const auto document = fields_from_json(*repo->find("song"), id, R"({"year":7})");
  REQUIRE(document);
  CHECK(DocumentView::open(*repo, document->header, document->body)->field("year")->as_int64() == 7);
  CHECK(fields_from_json(*repo->find("song"), test::id_of("id:music:film::x"), "{}").error().code() ==
        StatusCode::InvalidId);
  CHECK(fields_from_json(*repo->find("song"), id, "7").error().code() == StatusCode::InvalidField);
}

TEST_CASE("json: a malformed document is an error and not a part of it") {
  const auto repo = test::sample_repo();
  const EncodedDocument encoded = encode(test::full_song(*repo));
  const auto cut = std::string_view(encoded.body).substr(0, encoded.body.size() - 1);
  const auto view = DocumentView::open(*repo, encoded.header, cut);
  REQUIRE(view);
  const auto json = to_json_fields(*view);
  REQUIRE_FALSE(json);
  CHECK(json.error().code() == StatusCode::Corruption);
}

TEST_CASE("json: deep nesting is refused without exhausting the stack") {
  const auto nested = [](int depth) {
    return R"({"put":"id:music:song::x","fields":{"grid":)" + std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']') + "}}";
  };
  CHECK(error_of(nested(63)).code() == StatusCode::InvalidArgument);
  CHECK(error_of(nested(62)).code() == StatusCode::InvalidField);
  CHECK(error_of(nested(1000000)).code() == StatusCode::InvalidArgument);
  CHECK(error_of(std::string(1000000, '[')).code() == StatusCode::InvalidArgument);
}

TEST_CASE("json: no truncation and no garbled byte does harm, and what is accepted is valid") {
  const auto repo = test::sample_repo();
  const auto attempt = [&](std::string_view text) {
    const std::vector<char> exact(text.begin(), text.end());
    const auto operation = parse_feed_operation(*repo, {exact.data(), exact.size()});
    if (operation && operation->document) {
      REQUIRE(validate(*repo, operation->document->header, operation->document->body));
    }
    return operation.has_value();
  };
  for (std::size_t n = 0; n < kFull.size(); ++n) CHECK_FALSE(attempt(std::string_view(kFull).substr(0, n)));
  std::mt19937 random(99);
  for (int round = 0; round < 5000; ++round) {
    std::string text = kFull;
    for (unsigned changes = 1 + random() % 2; changes > 0; --changes) {
      text[random() % text.size()] = R"([]{}":,0-9.e\ntx)"[random() % 16];
    }
    attempt(text);
  }
}

TEST_CASE("base64: the examples of RFC 4648 and what is not base64") {
  const std::pair<std::string, std::string> examples[] = {{"", ""},
                                                          {"f", "Zg=="},
                                                          {"fo", "Zm8="},
                                                          {"foo", "Zm9v"},
                                                          {"foob", "Zm9vYg=="},
                                                          {"fooba", "Zm9vYmE="},
                                                          {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : examples) {
    CHECK(base64_encode(bytes) == text);
    CHECK(base64_decode(text) == bytes);
  }
  CHECK(base64_decode("Zg") == "f");
  CHECK(base64_decode("Zm9v\r\nYmFy\n") == "foobar");  // Lines as MIME and openssl write them.
  CHECK(base64_decode("Zm9vYg=\n=") == "foob");
  CHECK_FALSE(base64_decode("Zm9v YmFy"));
  for (const char* bad : {"Z", "Zg=", "Zh==", "Z===", "Zm9v!", "Zm 9v", "====", "Zm9vA"})
    CHECK_FALSE(base64_decode(bad));
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  CHECK(base64_decode(base64_encode(all)) == all);
}

TEST_CASE("json: a string is written as RapidJSON writes it, wherever its special characters are") {
  const auto check = [](const std::string& text) {
    rapidjson::StringBuffer buffer;
    rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
    writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
    JsonLines lines;
    lines.append_string(text);
    REQUIRE(lines.take() == std::string(buffer.GetString(), buffer.GetSize()));
  };
  for (std::size_t length = 0; length < 36; ++length) {
    check(std::string(length, 'x'));
    for (std::size_t at = 0; at < length; ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string text(length, 'x');
        text[at] = static_cast<char>(byte);
        check(text);
      }
    }
  }
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    std::string text(random() % 80, ' ');
    for (char& c : text) c = static_cast<char>(random() % 256);
    check(text);
  }
}

}  // namespace fjord
