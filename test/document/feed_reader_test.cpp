#include "fjord/document/feed_reader.h"

#include <catch2/catch.hpp>
#include <cstring>

namespace fjord {
namespace {

/// Returns a source that gives `text` in pieces of `step` bytes and then ends, or fails if `fails`.
FeedReader::Source source(std::string text, std::size_t step, bool fails = false) {
  return [text = std::move(text), step, fails,
          at = std::size_t{0}](std::span<char> buffer) mutable -> Result<std::size_t> {
    const std::size_t n = std::min({step, buffer.size(), text.size() - at});
    if (n == 0 && fails) return Status(StatusCode::IoError, "disk gone");
    std::memcpy(buffer.data(), text.data() + at, n);
    at += n;
    return n;
  };
}

/// Returns all results of the reader: texts as "line@offset text", errors as "! message".
std::vector<std::string> read_all(FeedReader& reader) {
  std::vector<std::string> out;
  for (;;) {
    const auto item = reader.next();
    if (!item) {
      out.push_back("! " + item.error().message());
    } else if (!*item) {
      break;
    } else {
      out.push_back(std::to_string((*item)->line) + "@" + std::to_string((*item)->offset) + " " +
                    std::string((*item)->json));
    }
    REQUIRE(out.size() < 1000);
  }
  const auto after = reader.next();
  CHECK((after.has_value() && !after->has_value()));
  return out;
}

/// Returns the results of the reader, which have to be equal for all sizes of reads.
std::vector<std::string> read(const std::string& text, bool expect_failed = false, std::size_t max = 1000) {
  std::vector<std::string> first;
  for (std::size_t step : {1000, 1, 2, 3, 7}) {
    FeedReader reader(source(text, step), {.operation_bytes_max = max, .read_bytes = 16});
    const auto out = read_all(reader);
    CHECK(reader.failed() == expect_failed);
    if (step == 1000) first = out;
    CHECK(out == first);
  }
  return first;
}

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("feed reader: one operation a line, with its place") {
  CHECK(read("{\"a\":1}\n\n  {\"b\":2} \r\n{\"c\":3}") == Strings{"1@0 {\"a\":1}", "3@11 {\"b\":2}", "4@21 {\"c\":3}"});
  CHECK(read("").empty());
  CHECK(read(" \n\n ").empty());
  CHECK(read("\xef\xbb\xbf{}\n") == Strings{"1@3 {}"});
}

TEST_CASE("feed reader: a line that is no object is said, and reading goes on") {
  CHECK(read("{\"a\":1}\nnonsense\n{\"b\":2}\n") ==
        Strings{"1@0 {\"a\":1}",
                "! feed, line 2, byte 8: expected an operation, which is a JSON object, found \"nonsense\"",
                "3@17 {\"b\":2}"});
}

TEST_CASE("feed reader: an operation over several lines is one error, whatever the pieces are") {
  const std::string pretty = "{\n  \"put\": \"id:a:b::1\",\n  \"fields\": {\n    \"s\": [\n      1\n    ]\n  }\n}\n";
  const std::string text = "{\"a\":1}\n" + pretty + pretty + "{\"b\": {\n{\"c\":3}\n\nno\n{\"d\": \"{\"}\n" + pretty;
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{10000}}) {
    FeedReader reader(source(text, step));
    const std::vector<std::string> found = read_all(reader);
    REQUIRE(found.size() == 8);
    CHECK(found[0] == "1@0 {\"a\":1}");
    for (const std::size_t at : {1, 2, 7}) CHECK(found[at].find("goes on for 7 more lines") != std::string::npos);
    CHECK(found[1].starts_with("! feed, line 2, byte 8:"));
    CHECK(found[2].starts_with("! feed, line 10,"));
    CHECK(found[3] == "18@" + std::to_string(8 + 2 * pretty.size()) + " {\"b\": {");
    CHECK(found[4].ends_with(" {\"c\":3}"));
    CHECK(found[5].starts_with("! feed, line 21,"));
    CHECK(found[6].ends_with(" {\"d\": \"{\"}"));
  }
}

TEST_CASE("feed reader: a JSON array, element by element, over any white space") {
  CHECK(read("[]").empty());
  CHECK(read(" [ ] \n").empty());
  CHECK(read("[{\"a\":[1,{\"x\":\"]},\\\"\"}]},\n {\"b\":2}\n]\n") ==
        Strings{"1@1 {\"a\":[1,{\"x\":\"]},\\\"\"}]}", "2@27 {\"b\":2}"});
  CHECK(read("[\n{\n\"a\": 1\n}\n,\n{}\n]") == Strings{"2@2 {\n\"a\": 1\n}", "6@15 {}"});
}

TEST_CASE("feed reader: an element that is no operation is said, and reading goes on") {
  CHECK(read("[{\"a\":1}, 17, \"x,]\", [1,{}], {\"b\":2}]") ==
        Strings{"1@1 {\"a\":1}", "! feed, line 1, byte 10: expected an operation, which is a JSON object, found \"17\"",
                "! feed, line 1, byte 14: expected an operation, which is a JSON object, found \"\"x,]\"\"",
                "! feed, line 1, byte 21: expected an operation, which is a JSON object, found \"[1,{}]\"",
                "1@29 {\"b\":2}"});
  CHECK(read("[{},,{}]") == Strings{"1@1 {}", "! feed, line 1, byte 4: expected an operation after ','", "1@5 {}"});
  CHECK(read("[{},]") == Strings{"1@1 {}", "! feed, line 1, byte 4: expected an operation after ','"});
}

TEST_CASE("feed reader: an array whose brackets do not match ends the feed with an error") {
  CHECK(read("[{\"a\":1}", true) == Strings{"1@1 {\"a\":1}", "! feed, line 1, byte 8: the array is not closed"});
  CHECK(read("[{\"a\":1", true) == Strings{"! feed, line 1, byte 7: the array ends within an element"});
  CHECK(read("[{\"a\":\"x}]", true) == Strings{"! feed, line 1, byte 10: the array ends within an element"});
  CHECK(read("[{\"a\":[1}]},{}]", true) ==
        Strings{"! feed, line 1, byte 8: '}' closes nothing; the array cannot be read on"});
  CHECK(read("[{} {}]", true) == Strings{"1@1 {}", "! feed, line 1, byte 4: expected ',' or ']' after an element"});
  CHECK(read("[{}] {}", true) == Strings{"1@1 {}", "! feed, line 1, byte 5: expected nothing after the array"});
}

TEST_CASE("feed reader: an operation beyond the limit is passed over in bounded memory") {
  const std::string big = "{\"a\":\"" + std::string(5000, 'x') + "\"}";
  CHECK(read(big + "\n{}\n", false, 100) == Strings{"! feed, line 1, byte 0: a line of more than 100 bytes",
                                                    "2@" + std::to_string(big.size() + 1) + " {}"});
  CHECK(read("[" + big + ",{}]", false, 100) == Strings{"! feed, line 1, byte 1: an operation of more than 100 bytes",
                                                        "1@" + std::to_string(big.size() + 2) + " {}"});
  FeedReader reader(source(big + "\n", 1000), {.operation_bytes_max = 100, .read_bytes = 64});
  CHECK(reader.next().error().code() == StatusCode::TooLarge);
}

TEST_CASE("feed reader: a source that fails ends the feed with its error, and half an operation is not handed out") {
  for (const char* text : {"{\"a\":1}\n{\"b\":", "[{\"a\":1},{\"b\":"}) {
    FeedReader reader(source(text, 5, true));
    const auto out = read_all(reader);
    REQUIRE(out.size() == 2);
    CHECK(out[1].find("disk gone") != std::string::npos);
    CHECK(reader.failed());
  }
}

}  // namespace fjord
