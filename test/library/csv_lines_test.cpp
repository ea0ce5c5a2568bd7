#include "csv_lines.h"

#include <catch2/catch.hpp>

#include "csv_reader.h"
#include "fjord/document/docblock.h"
#include "fjord/document/json.h"
#include "fjord/library/detail/csv_cell.h"

namespace fjord {
namespace {

constexpr const char* kSchemas[] = {R"(document thing {
  field name type string { header }
  field whole type long { header }
  field part type double { header }
  field yes type bool { header }
  field data type raw { }
  field tags type array<string> { }
})",
                                    "document more inherits thing { field extra type int { header } }"};

std::shared_ptr<const DocumentTypeRepo> types() {
  const std::vector<std::string> texts(std::begin(kSchemas), std::end(kSchemas));
  return DocumentTypeRepo::build(texts).value();
}

std::string block_of(const DocumentTypeRepo& repo, const std::vector<std::pair<std::string, std::string>>& documents) {
  DocBlockBuilder block;
  for (const auto& [text, fields] : documents) {
    const DocumentId id = DocumentId::parse(text).value();
    const EncodedDocument encoded = fields_from_json(*repo.find(id.type()), id, fields).value();
    block.add({.gid = id.gid(), .timestamp = {5}, .id = {}, .header = encoded.header, .body = encoded.body});
  }
  return block.take();
}

std::vector<CsvCell> cells_of(std::string line) {
  REQUIRE(line.ends_with('\n'));
  line.pop_back();
  const auto cells = split_csv(line);
  REQUIRE(cells.has_value());
  return *cells;
}

TEST_CASE("csv export: a row says what the fields say, and nested fields are JSON", "[export]") {
  const auto repo = types();
  const auto lines = CsvLines::make(repo, "thing", "");
  REQUIRE(lines.has_value());
  CHECK(lines->header() == "_id,name,whole,part,yes,data,tags,extra\n");
  std::string out;
  const auto count =
      lines->append(block_of(*repo, {{"id:a:thing::1",
                                      R"({"name": "a, \"b\"\nc", "whole": 4611686018427387905, "part": 0.1, "yes": true,
                            "data": "AQI=", "tags": ["x", "y,z"]})"}}),
                    out);
  REQUIRE(count.has_value());
  CHECK(*count == 1);
  const auto cells = cells_of(out);
  REQUIRE(cells.size() == 8);
  CHECK(cells[0].text == "id:a:thing::1");
  CHECK(cells[1].text == "a, \"b\"\nc");
  CHECK(cells[2].text == "4611686018427387905");
  CHECK(cells[3].text == "0.1");
  CHECK(cells[4].text == "true");
  CHECK(cells[5].text == "AQI=");
  CHECK(cells[6].text == R"(["x","y,z"])");
  CHECK(cells[7].text.empty());
}

TEST_CASE("csv export: a cell is quoted for a comma, a quote or the end of a line alone", "[export]") {
  CHECK(csv_cell("a b;c") == "a b;c");
  CHECK(csv_cell("a,b") == "\"a,b\"");
  CHECK(csv_cell("a\"b") == "\"a\"\"b\"");
  CHECK(csv_cell("a\nb") == "\"a\nb\"");
  CHECK(csv_cell("a\r") == "\"a\r\"");
}

TEST_CASE("csv export: what is not set is empty, an empty text is not, and types that inherit have their fields",
          "[export]") {
  const auto repo = types();
  std::string out;
  const std::string block =
      block_of(*repo, {{"id:a:thing::2", R"({"name": ""})"}, {"id:a:more::3", R"({"extra": 7})"}});
  REQUIRE(CsvLines::make(repo, "thing", "")->append(block, out).has_value());
  CHECK(out == "id:a:thing::2,\"\",,,,,,\nid:a:more::3,,,,,,,7\n");
}

TEST_CASE("csv export: fields in the order asked for, and what cannot be columns is refused", "[export]") {
  const auto repo = types();
  CHECK(CsvLines::make(repo, "thing", "whole,name,whole")->header() == "_id,whole,name\n");
  CHECK(CsvLines::make(repo, "thing", "thing:whole")->header() == "_id,whole\n");
  CHECK(CsvLines::make(repo, "thing", "[id]").status().code() == StatusCode::InvalidArgument);
  CHECK(CsvLines::make(repo, "thing", "nothing").status().code() == StatusCode::InvalidField);
  CHECK(CsvLines::make(repo, "", "").status().code() == StatusCode::InvalidArgument);
  CHECK(CsvLines::make(repo, "other", "").status().code() == StatusCode::UnknownType);
}

}  // namespace
}  // namespace fjord
