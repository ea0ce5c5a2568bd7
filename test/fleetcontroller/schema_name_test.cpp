#include "schema_name.h"

#include <catch2/catch.hpp>

namespace fjord::fleetcontroller {

TEST_CASE("schema name: the word after the first 'document'") {
  const auto [text, name] = GENERATE(table<std::string, std::string>({
      {"document song { }", "song"},
      {"document song{}", "song"},
      {"document song inherits base { }", "song"},
      {"\n\t document\r\n\tsong_2\n{", "song_2"},
      {"# document other {\ndocument song {", "song"},
      {"document # the name follows\n song {", "song"},
      {"search music { document song { field title type string { } } }", "song"},
      {"my_document other document song {", "song"},
      {"document song { } document other { }", "song"},
  }));
  INFO(text);
  Result<std::string> found = schema_name(text);
  REQUIRE(found);
  CHECK(*found == name);
}

TEST_CASE("schema name: a text that declares no type is refused") {
  const std::string text = GENERATE(as<std::string>(), "", " \n", "# document song", "documents song {", "document",
                                    "document {", "document # song", "struct song { }", std::string("\0\x80", 2));
  INFO(text);
  Result<std::string> found = schema_name(text);
  REQUIRE_FALSE(found);
  CHECK(found.error().code() == StatusCode::InvalidArgument);
}

TEST_CASE("schema name: a message about a text names the type that the text declares") {
  const std::vector<std::string> texts = {"document a { }", "schema b { document b { } }"};
  CHECK(with_schema_names("schema, text 2, line 3: expected '}'", texts) ==
        "schema, the schema of b, line 3: expected '}'");
  CHECK(with_schema_names("text 1 and text 2", texts) == "the schema of a and the schema of b");
  CHECK(with_schema_names("text 3, some text", texts) == "text 3, some text");
  CHECK(with_schema_names("text 1", std::vector<std::string>{"nothing declared"}) == "text 1");
}

}  // namespace fjord::fleetcontroller
