#include "output/yaml_text.h"

#include <catch2/catch.hpp>

namespace fjord::cli {

TEST_CASE("yaml: members and elements have a line each, empty ones stay behind their key") {
  CHECK(yaml_of_json_lines(R"({"node":"storage.0","up":true,"load":0.10,"list":[1,[],{"a":null}],"none":{}})"
                           "\n") ==
        "---\n"
        "node: storage.0\n"
        "up: true\n"
        "load: 0.10\n"
        "list:\n"
        "  - 1\n"
        "  - []\n"
        "  -\n"
        "    a: null\n"
        "none: {}\n");
}

TEST_CASE("yaml: a text that YAML would read as something else is quoted") {
  CHECK(yaml_of_json_lines(R"(["no","7","a: b","","1.5","two words","line\nend","id:a:music::1"])") ==
        "---\n- \"no\"\n- \"7\"\n- \"a: b\"\n- \"\"\n- \"1.5\"\n- \"two words\"\n- \"line\\nend\"\n"
        "- \"id:a:music::1\"\n");
}

TEST_CASE("yaml: characters that YAML must not have as they are, are escaped") {
  // PyYAML reads each of these as the text that it was.
  CHECK(yaml_of_json_lines("[\"it\xc2\x92s\",\"\xc2\x85\",\"\x7f\",\"\\u0001\"]\n") ==
        "---\n- \"it\\x92s\"\n- \"\\x85\"\n- \"\\x7f\"\n- \"\\u0001\"\n");
  CHECK(
      yaml_of_json_lines("[\"\xe2\x80\xa8\",\"\xe2\x80\xa9\",\"\xef\xbb\xbf\",\"\xef\xbf\xbe\",\"\xef\xbf\xbf\"]\n") ==
      "---\n- \"\\u2028\"\n- \"\\u2029\"\n- \"\\ufeff\"\n- \"\\ufffe\"\n- \"\\uffff\"\n");
  CHECK(yaml_of_json_lines("{\"\xc2\x80 k\":\"\xc2\xa0\xc3\xa9\xf0\x9f\x90\x9f\"}\n") ==
        "---\n\"\\x80 k\": \"\xc2\xa0\xc3\xa9\xf0\x9f\x90\x9f\"\n");
}

TEST_CASE("yaml: each line of JSON is a document, another line stays as it is") {
  CHECK(yaml_of_json_lines("{\"a\":1}\nplain text\n18446744073709551615\n") ==
        "---\na: 1\nplain text\n---\n18446744073709551615\n");
  CHECK(yaml_of_json_lines("").empty());
}

}  // namespace fjord::cli
