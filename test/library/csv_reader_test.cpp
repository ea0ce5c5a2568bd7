#include "csv_reader.h"

#include <algorithm>

using fjord::CsvReader;
using fjord::split_csv;

namespace {

/// Returns a source that gives `text` in pieces of `piece` bytes.
CsvReader::Source source_of(std::string text, std::size_t piece) {
  return
      [text = std::move(text), piece, at = std::size_t{0}](std::span<char> into) mutable -> fjord::Result<std::size_t> {
        const std::size_t size = std::min({piece, into.size(), text.size() - at});
        std::copy_n(text.data() + at, size, into.data());
        at += size;
        return size;
      };
}

std::vector<std::pair<std::uint64_t, std::string>> records_of(const std::string& text, std::size_t piece) {
  CsvReader reader(source_of(text, piece));
  std::vector<std::pair<std::uint64_t, std::string>> records;
  while (true) {
    const auto record = reader.next();
    REQUIRE(record.has_value());
    if (!record->has_value()) return records;
    records.emplace_back((*record)->line, std::string((*record)->text));
  }
}

std::vector<std::string> cells_of(const std::string& record) {
  const auto cells = split_csv(record);
  REQUIRE(cells.has_value());
  std::vector<std::string> texts;
  for (const auto& cell : *cells) texts.push_back(cell.text);
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("csv: records end at line ends outside of quotes, whatever the pieces", "[csv]") {
  const std::string text =
      "\xEF\xBB\xBF"
      "a,b\r\n1,\"x\ny\"\n\n\"q\"\"\n\",2\nlast,3";
  for (const std::size_t piece : {1, 2, 3, 7, 1000}) {
    CHECK(records_of(text, piece) == std::vector<std::pair<std::uint64_t, std::string>>{
                                         {1, "a,b"}, {2, "1,\"x\ny\""}, {5, "\"q\"\"\n\",2"}, {7, "last,3"}});
  }
}

TEST_CASE("csv: a quote inside an unquoted cell opens nothing", "[csv]") {
  CHECK(records_of("a 6\" pipe,1\nb,2\n", 4).size() == 2);
  CHECK(cells_of("a 6\" pipe,1") == Texts{"a 6\" pipe", "1"});
}

TEST_CASE("csv: a quote that is never closed is an error that names the line where its record begins", "[csv]") {
  CsvReader reader(source_of("a,b\n1,\"x\n2,y\n", 5));
  REQUIRE(reader.next().has_value());
  const auto record = reader.next();
  REQUIRE_FALSE(record.has_value());
  CHECK_THAT(record.error().message(), Catch::Contains("line 2"));
  CHECK(reader.failed());
  const auto after = reader.next();
  REQUIRE(after.has_value());
  CHECK_FALSE(after->has_value());
}

TEST_CASE("csv: cells", "[csv]") {
  CHECK(cells_of("a,,c,") == Texts{"a", "", "c", ""});
  CHECK(cells_of("\"a\"\"b\",\"c,d\",\"\"") == Texts{"a\"b", "c,d", ""});
  CHECK(cells_of("") == Texts{""});
  CHECK((*split_csv("\"\",x"))[0].quoted);
  CHECK_FALSE((*split_csv("x,\"\""))[0].quoted);
  const auto bad = split_csv("a,\"b\"c,d");
  REQUIRE_FALSE(bad.has_value());
  CHECK_THAT(bad.error().message(), Catch::Contains("column 2"));
}
