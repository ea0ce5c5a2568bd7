#include "http/json_shape.h"

#include <catch2/catch.hpp>

namespace fjord::gateway {
namespace {

struct Read {
  std::string text = "kept";
  bool flag = true;
  std::uint64_t count = 7;
  std::optional<std::uint64_t> maybe;
  double number = 0.5;
  std::vector<std::string> texts;
  std::map<std::string, std::string> map;
  std::string inner;
  std::vector<std::string> of_objects;
  Status status;
};

Read read(std::string_view body) {
  Read to;
  std::vector<std::unique_ptr<std::string>> made;
  to.status = read_json(body, JsonShape()
                                  .text("text", to.text)
                                  .flag("flag", to.flag)
                                  .count("count", to.count)
                                  .count("maybe", to.maybe)
                                  .number("number", to.number)
                                  .texts("texts", to.texts)
                                  .text_map("map", to.map)
                                  .object("object", JsonShape().text("inner", to.inner).required("inner"))
                                  .objects("objects", [&made] {
                                    made.push_back(std::make_unique<std::string>());
                                    return JsonShape().text("name", *made.back()).required("name");
                                  }));
  for (const auto& name : made) to.of_objects.push_back(*name);
  return to;
}

TEST_CASE("values go to the members of the shape", "[gateway]") {
  const Read all = read(R"({"text":"x\u00e9","flag":false,"count":18446744073709551615,"maybe":0,"number":-1.5e3,)"
                        R"("texts":["a","b"],"map":{"k":"v","l":""},"object":{"inner":"i"},)"
                        R"("objects":[{"name":"one"},{"name":"two"}]})");
  REQUIRE(all.status == Status::ok());
  CHECK(all.text == "x\xc3\xa9");
  CHECK_FALSE(all.flag);
  CHECK(all.count == 18446744073709551615u);
  CHECK(all.maybe == 0);
  CHECK(all.number == -1500);
  CHECK(all.texts == std::vector<std::string>{"a", "b"});
  CHECK(all.map == std::map<std::string, std::string>{{"k", "v"}, {"l", ""}});
  CHECK(all.inner == "i");
  CHECK(all.of_objects == std::vector<std::string>{"one", "two"});
  const Read none = read("{}");
  CHECK(none.status == Status::ok());
  CHECK(none.text == "kept");
  CHECK(none.count == 7);
  CHECK_FALSE(none.maybe);
}

TEST_CASE("what the shape does not have is refused by name", "[gateway]") {
  const auto message = [](std::string_view body) {
    const Status status = read(body).status;
    CHECK(status.code() == StatusCode::InvalidArgument);
    return status.message();
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(message(R"({"other":1})"), Contains(R"("other": there is no such member; there are count, flag)"));
  CHECK_THAT(message(R"({"text":"a","text":"b"})"), Contains(R"("text": it is there twice)"));
  CHECK_THAT(message(R"({"map":{"a":"1","a":"2"}})"), Contains(R"("map.a": it is there twice)"));
  CHECK_THAT(message(R"({"text":1})"), Contains(R"("text": expected a string)"));
  CHECK_THAT(message(R"({"text":{}})"), Contains(R"("text": expected a string)"));
  CHECK_THAT(message(R"({"text":null})"), Contains(R"("text": null is not a value)"));
  CHECK_THAT(message(R"({"flag":"true"})"), Contains(R"("flag": expected true or false)"));
  CHECK_THAT(message(R"({"count":-1})"), Contains(R"("count": expected a whole number)"));
  CHECK_THAT(message(R"({"count":1.0})"), Contains(R"("count": expected a whole number)"));
  CHECK_THAT(message(R"({"maybe":18446744073709551616})"), Contains(R"("maybe": expected a whole number)"));
  CHECK_THAT(message(R"({"number":"1"})"), Contains(R"("number": expected a number)"));
  CHECK_THAT(message(R"({"texts":"a"})"), Contains(R"("texts": expected a list of strings)"));
  CHECK_THAT(message(R"({"texts":["a",1]})"), Contains(R"("texts": expected strings)"));
  CHECK_THAT(message(R"({"texts":[["a"]]})"), Contains(R"("texts": expected strings)"));
  CHECK_THAT(message(R"({"map":{"a":{}}})"), Contains(R"("map.a": expected strings)"));
  CHECK_THAT(message(R"({"map":[]})"), Contains(R"("map": expected an object)"));
  CHECK_THAT(message(R"({"object":{}})"), Contains(R"("object.inner": it is missing)"));
  CHECK_THAT(message(R"({"object":[{}]})"), Contains(R"("object": expected an object)"));
  CHECK_THAT(message(R"({"objects":{"name":"x"}})"), Contains(R"("objects": expected a list of objects)"));
  CHECK_THAT(message(R"({"objects":[{"name":"x"},{}]})"), Contains(R"("objects.1.name": it is missing)"));
  CHECK_THAT(message(R"({"objects":["x"]})"), Contains(R"(expected objects in the list)"));
  for (const char* body : {"[]", "1", "\"x\"", "null"}) CHECK_FALSE(read(body).status);
  for (const char* body : {"", "{", "{\"text\":\"\xff\"}", "{} {}", "{\"text\":\"x\",}"}) {
    CHECK_THAT(message(body), Contains("malformed JSON"));
  }
  CHECK_FALSE(read(std::string(100'000, '[')).status);
}

}  // namespace
}  // namespace fjord::gateway
