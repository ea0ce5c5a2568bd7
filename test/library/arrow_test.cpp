#include "fjord/library/arrow.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <utility>

#include "arrow/document_columns.h"
#include "arrow/row_encoder.h"
#include "fjord/document/json.h"

namespace fjord {
namespace {

constexpr const char* kAllKinds = R"(schema thing { document thing {
  struct part { field no type int {} field names type array<string> {} }
  field text type string { header }
  field data type raw {}
  field small type byte {}
  field whole type int { header }
  field large type long {}
  field half type float {}
  field real type double {}
  field yes type bool { header }
  field tags type array<string> {}
  field parts type array<part> {}
  field moods type weightedset<string> {}
  field charts type map<string, array<int>> {}
  field main type part {}
} })";

constexpr const char* kFull =
    R"({"text": "ä, \"b\"", "data": "AQI=", "small": -7, "whole": 40000, "large": 4611686018427387905,
  "half": 0.5, "real": 0.1, "yes": true, "tags": ["x", "", "y"], "parts": [{"no": 1, "names": ["a", "b"]}, {}, {"names": []}],
  "moods": {"sad": 3, "glad": -1}, "charts": {"de": [1, 2], "at": []}, "main": {"no": 9}})";

std::shared_ptr<const DocumentTypeRepo> repo_of(const std::vector<std::string>& schemas) {
  return DocumentTypeRepo::build(schemas).value();
}

/// A batch and its schema, released at the end.
struct Table {
  ArrowSchema schema{};
  ArrowArray batch{};
  Table() = default;
  Table(const Table&) = delete;
  ~Table() {
    if (schema.release != nullptr) schema.release(&schema);
    if (batch.release != nullptr) batch.release(&batch);
  }
  std::int64_t column(const std::string& name) const {
    for (std::int64_t i = 0; i < schema.n_children; ++i) {
      if (schema.children[i]->name == name) return i;
    }
    return -1;
  }
};

EncodedDocument encoded(const DocumentTypeRepo& repo, const std::string& id, const std::string& json) {
  const DocumentId parsed = DocumentId::parse(id).value();
  return fields_from_json(*repo.find(parsed.type()), parsed, json).value();
}

void append(DocumentColumns& columns, const DocumentTypeRepo& repo, const std::string& id, const std::string& json) {
  const EncodedDocument document = encoded(repo, id, json);
  REQUIRE(columns.append(DocumentView::open(repo, document.header, document.body).value(), Timestamp{77}).is_ok());
}

TEST_CASE("arrow: rows become the documents they came from, nested fields too", "[arrow]") {
  const auto repo = repo_of({kAllKinds});
  const auto columns = DocumentColumns::make(repo, "thing", {}, false);
  // More rows than one byte of a bitmap has bits, with and without values, in two batches.
  for (int batch = 0; batch < 2; ++batch) {
    Table table;
    for (int i = 0; i < 21; ++i) {
      append(*columns, *repo, "id:a:thing::" + std::to_string(i), i % 3 == 1 ? "{}" : kFull);
    }
    columns->schema(&table.schema);
    columns->finish(&table.batch);
    REQUIRE(table.batch.length == 21);
    CHECK(table.batch.children[table.column("text")]->null_count == 7);
    CHECK(table.batch.children[table.column("_id")]->null_count == 0);
    std::vector<std::string> warnings;
    const auto encoder = RowEncoder::make(table.schema, *repo, *repo->find("thing"), 0, warnings).value();
    CHECK(warnings.empty());
    REQUIRE(encoder->set(table.batch).is_ok());
    for (int i = 0; i < 21; ++i) {
      const std::string id = "id:a:thing::" + std::to_string(i);
      const auto document = encoder->encode(i, id);
      REQUIRE(document.has_value());
      CHECK(*document == encoded(*repo, id, i % 3 == 1 ? "{}" : kFull));
    }
  }
}

TEST_CASE("arrow: the columns of a visit can be chosen, and tell when a document was written", "[arrow]") {
  const auto repo = repo_of({kAllKinds});
  const auto columns = DocumentColumns::make(repo, "thing", {"whole"}, true);
  append(*columns, *repo, "id:a:thing::1", kFull);
  Table table;
  columns->schema(&table.schema);
  columns->finish(&table.batch);
  REQUIRE(table.schema.n_children == 3);
  CHECK(table.column("_id") == 0);
  const auto* versions = static_cast<const std::int64_t*>(table.batch.children[table.column("_version")]->buffers[1]);
  CHECK(versions[0] == 77);
  const auto* wholes = static_cast<const std::int32_t*>(table.batch.children[table.column("whole")]->buffers[1]);
  CHECK(wholes[0] == 40000);
}

TEST_CASE("arrow: fields that types declare differently are JSON texts, which rows can be made from", "[arrow]") {
  const auto repo = repo_of({"document one { field same type int {} field other type array<int> {} }",
                             "document two { field same type int {} field other type string {} }"});
  const auto columns = DocumentColumns::make(repo, "", {}, false);
  append(*columns, *repo, "id:a:one::1", R"({"same": 1, "other": [3, 4]})");
  append(*columns, *repo, "id:a:two::2", R"({"other": "x"})");
  Table table;
  columns->schema(&table.schema);
  columns->finish(&table.batch);
  CHECK(std::string(table.schema.children[table.column("same")]->format) == "i");
  CHECK(std::string(table.schema.children[table.column("other")]->format) == "u");
  const ArrowArray& texts = *table.batch.children[table.column("other")];
  const auto* offsets = static_cast<const std::int32_t*>(texts.buffers[1]);
  CHECK(std::string(static_cast<const char*>(texts.buffers[2]), static_cast<std::size_t>(offsets[2])) == "[3,4]\"x\"");
  std::vector<std::string> warnings;
  const auto encoder = RowEncoder::make(table.schema, *repo, *repo->find("one"), 0, warnings).value();
  REQUIRE(encoder->set(table.batch).is_ok());
  CHECK(encoder->encode(0, "id:a:one::1").value() == encoded(*repo, "id:a:one::1", R"({"same": 1, "other": [3, 4]})"));
  CHECK_FALSE(encoder->encode(1, "id:a:one::2").has_value());  // "x" is no array.
}

TEST_CASE("arrow: a value that does not fit its field is an error of its row", "[arrow]") {
  const auto wide = repo_of({"document thing { field n type long {} field r type double {} }"});
  const auto narrow = repo_of({"document thing { field n type byte {} field r type int {} }"});
  const auto columns = DocumentColumns::make(wide, "thing", {}, false);
  append(*columns, *wide, "id:a:thing::1", R"({"n": 127, "r": 3.0})");
  append(*columns, *wide, "id:a:thing::2", R"({"n": 128})");
  append(*columns, *wide, "id:a:thing::3", R"({"r": 3.5})");
  append(*columns, *wide, "id:a:thing::4", R"({"r": 2147483648})");
  Table table;
  columns->schema(&table.schema);
  columns->finish(&table.batch);
  std::vector<std::string> warnings;
  const auto encoder = RowEncoder::make(table.schema, *narrow, *narrow->find("thing"), 0, warnings).value();
  REQUIRE(encoder->set(table.batch).is_ok());
  const std::string id = "id:a:thing::1";
  CHECK(encoder->encode(0, id).value() == encoded(*narrow, "id:a:thing::1", R"({"n": 127, "r": 3})"));
  for (int row = 1; row < 4; ++row) CHECK(encoder->encode(row, id).status().code() == StatusCode::InvalidField);
  CHECK_THAT(encoder->encode(1, id).error().message(),
             Catch::Contains("column n: 128 is out of the range -128 to 127"));
}

TEST_CASE("arrow: columns that are no fields are reported, and those of another type refused", "[arrow]") {
  const auto from = repo_of({"document thing { field a type string {} field b type array<int> {} }"});
  ArrowSchema table;
  arrow_schema_of(*from->find("thing"), &table);
  std::vector<std::string> warnings;
  const auto lacks = repo_of({"document thing { field a type string {} }"});
  CHECK(RowEncoder::make(table, *lacks, *lacks->find("thing"), 0, warnings).has_value());
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] == "the column \"b\" is not a field of thing");
  const auto other = repo_of({"document thing { field a type int {} }"});
  const auto refused = RowEncoder::make(table, *other, *other->find("thing"), 0, warnings);
  REQUIRE_FALSE(refused.has_value());
  CHECK_THAT(refused.error().message(), Catch::Contains("column a: Arrow's type string has no values of type int"));
  table.release(&table);
}

TEST_CASE("arrow: a schema survives the way to Arrow and back", "[arrow]") {
  const auto repo = repo_of({kAllKinds});
  ArrowSchema table;
  arrow_schema_of(*repo->find("thing"), &table);
  const auto fit = sd_of_arrow_schema(table, "thing");
  table.release(&table);
  REQUIRE(fit.has_value());
  CHECK(fit->problems.empty());
  const auto again = repo_of({fit->sd});
  const auto columns = DocumentColumns::make(again, "thing", {}, false);
  append(*columns, *again, "id:a:thing::1", kFull);
  for (const Field& field : repo->find("thing")->fields()) {
    const Field* back = again->find("thing")->field(field.name);
    REQUIRE(back != nullptr);
    CHECK(back->type->tag() == field.type->tag());
  }
}

TEST_CASE("arrow: what no schema can hold is reported", "[arrow]") {
  const SchemaNode node{
      "+s", "", false, {}, {{"tsu:UTC", "when"}, {"l", "a-b"}, {"L", "size"}, {"d:10,2", "price"}, {"u", "name"}}};
  ArrowSchema table;
  export_schema(node, &table);
  const auto fit = sd_of_arrow_schema(table, "thing");
  table.release(&table);
  REQUIRE(fit.has_value());
  REQUIRE(fit->problems.size() == 4);
  CHECK_THAT(fit->problems[0], Catch::StartsWith("when: left out") && Catch::Contains("timestamp[us, tz=UTC]"));
  CHECK_THAT(fit->problems[1], Catch::StartsWith("a-b: left out"));
  CHECK_THAT(fit->problems[2], Catch::StartsWith("size: values of 2^63"));
  CHECK(repo_of({fit->sd})->find("thing")->fields().size() == 2);
}

TEST_CASE("arrow: rows of an aggregation have columns of their kinds", "[arrow]") {
  AggregateResult result;
  result.columns = {"city", "n", "mean", "mixed"};
  result.types = {CellType::Text, CellType::Integer, CellType::Number, CellType::Json};
  result.rows = {{std::string("Oslo"), std::int64_t{3}, 0.5, std::int64_t{1}},
                 {std::string("Rome"), std::int64_t{4}, std::monostate(), std::string("x")}};
  ArrowArrayStream stream;
  aggregate_to_arrow(result, &stream);
  Table table;
  REQUIRE(stream.get_schema(&stream, &table.schema) == 0);
  REQUIRE(stream.get_next(&stream, &table.batch) == 0);
  std::string formats;
  for (std::int64_t i = 0; i < table.schema.n_children; ++i) formats += table.schema.children[i]->format;
  CHECK(formats == "ulgu");
  CHECK(table.batch.length == 2);
  CHECK(static_cast<const std::int64_t*>(table.batch.children[1]->buffers[1])[1] == 4);
  CHECK(table.batch.children[2]->null_count == 1);
  ArrowArray end;
  REQUIRE(stream.get_next(&stream, &end) == 0);
  CHECK(end.release == nullptr);
  stream.release(&stream);
}

TEST_CASE("arrow: decimals and integers become what they are, or are refused", "[arrow]") {
  // The digits are those of Python's decimal. A decimal of 128 bits is its low half, then its high half.
  struct Case {
    const char* format;
    std::uint64_t low;
    std::int64_t high;
    TypeTag tag;
    const char* expected;  ///< Null: refused.
  };
  for (const Case& one :
       {Case{"d:38,0", 9007199254740993, 0, TypeTag::Long, "9007199254740993"},
        Case{"d:38,2", 12300, 0, TypeTag::Long, "123"}, Case{"d:38,2", 12345, 0, TypeTag::Long, nullptr},
        Case{"d:38,0", 0, 1, TypeTag::Long, nullptr}, Case{"d:38,0", 0, 1, TypeTag::String, "18446744073709551616"},
        Case{"d:38,3", ~std::uint64_t{0}, -1, TypeTag::String, "-0.001"},
        Case{"d:9,2,64", 5, 0, TypeTag::String, "0.05"}, Case{"d:5,-2", 7, 0, TypeTag::Int, "700"},
        Case{"l", 9007199254740993, 0, TypeTag::String, "9007199254740993"},
        Case{"L", ~std::uint64_t{0}, 0, TypeTag::String, "18446744073709551615"}}) {
    INFO(one.format << " " << one.low);
    ArrowSchema schema{};
    schema.format = one.format;
    const auto type = DataType::primitive(one.tag);
    const auto reader = ColumnReader::make(schema, *type);
    REQUIRE(reader);
    const std::uint64_t bytes[2] = {one.low, static_cast<std::uint64_t>(one.high)};
    const void* buffers[2] = {nullptr, bytes};
    ArrowArray array{};
    array.length = 1;
    array.n_buffers = 2;
    array.buffers = buffers;
    REQUIRE((*reader)->set(array));
    std::string out;
    CHECK((*reader)->append(0, out).is_ok() == (one.expected != nullptr));
    if (one.expected == nullptr) continue;
    const auto value = FieldSlice{one.tag, out}.value();
    REQUIRE(value);
    CHECK((one.tag == TypeTag::String ? out : std::to_string(FieldSlice{one.tag, out}.as_int64())) == one.expected);
  }
}

TEST_CASE("arrow: the columns of an aggregation keep all digits, and their types whichever values there are",
          "[arrow]") {
  AggregateResult result;
  result.columns = {"sum", "none", "truth", "most"};
  result.types = {CellType::Integer, CellType::Integer, CellType::Truth, CellType::Number};
  const double infinite = std::numeric_limits<double>::infinity();
  result.rows = {{Json{"18446744073709551614"}, std::monostate(), true, infinite},
                 {std::int64_t{-1}, std::monostate(), std::monostate(), 1.5},
                 {Json{"-18446744073709551615"}, std::monostate(), false, std::monostate()}};
  ArrowArrayStream stream;
  aggregate_to_arrow(result, &stream);
  Table table;
  REQUIRE(stream.get_schema(&stream, &table.schema) == 0);
  REQUIRE(stream.get_next(&stream, &table.batch) == 0);
  std::vector<std::string> formats;
  for (std::int64_t i = 0; i < table.schema.n_children; ++i) formats.push_back(table.schema.children[i]->format);
  CHECK(formats == std::vector<std::string>{"d:38,0", "l", "b", "g"});
  const auto* halves = static_cast<const std::uint64_t*>(table.batch.children[0]->buffers[1]);
  CHECK(halves[0] == 18446744073709551614u);
  CHECK(halves[1] == 0);
  CHECK(halves[2] == ~std::uint64_t{0});
  CHECK(halves[3] == ~std::uint64_t{0});
  CHECK(halves[4] == 1);
  CHECK(halves[5] == ~std::uint64_t{0});
  CHECK(static_cast<const double*>(table.batch.children[3]->buffers[1])[0] == infinite);
  stream.release(&stream);
}

}  // namespace
}  // namespace fjord
