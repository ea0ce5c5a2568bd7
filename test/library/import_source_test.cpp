#include "import_source.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

#include "import_progress.h"

using fjord::DataType;
using fjord::FieldValue;
using fjord::TypeTag;
using fjord::value_from_text;

namespace {

const std::string kInput = "some folder/music 2 3.jsonl";

std::string error_of(TypeTag tag, const std::string& text) {
  const auto value = value_from_text(*DataType::primitive(tag), text);
  REQUIRE_FALSE(value.has_value());
  CHECK(value.error().code() == fjord::StatusCode::InvalidField);
  return value.error().message();
}

FieldValue value_of(TypeTag tag, const std::string& text) {
  const auto value = value_from_text(*DataType::primitive(tag), text);
  REQUIRE(value.status() == fjord::Status::ok());
  return *value;
}

}  // namespace

TEST_CASE("import: the schema decides what the text of a cell is", "[import]") {
  CHECK(value_of(TypeTag::String, " 12 ") == FieldValue(" 12 "));
  CHECK(value_of(TypeTag::Int, " -12 ") == FieldValue(std::int32_t{-12}));
  CHECK(value_of(TypeTag::Int, "+7") == FieldValue(std::int32_t{7}));
  CHECK(value_of(TypeTag::Long, "9223372036854775807") == FieldValue(std::int64_t{9223372036854775807}));
  CHECK(value_of(TypeTag::Byte, "-128") == FieldValue(std::int8_t{-128}));
  CHECK(value_of(TypeTag::Double, "1e-3") == FieldValue(1e-3));
  CHECK(value_of(TypeTag::Float, "0.1") == FieldValue(0.1F));
  CHECK(value_of(TypeTag::Bool, "TRUE") == FieldValue(true));
  CHECK(value_of(TypeTag::Bool, "0") == FieldValue(false));
  CHECK(value_of(TypeTag::Raw, "AQI=") == FieldValue(fjord::RawValue{"\x01\x02"}));
}

TEST_CASE("import: what does not fit is refused as a whole", "[import]") {
  CHECK_THAT(error_of(TypeTag::Int, "2147483648"),
             Catch::Contains("out of the range") && Catch::Contains("2147483648"));
  CHECK_THAT(error_of(TypeTag::Int, "12 kg"), Catch::Contains("not a value of type int: \"12 kg\""));
  CHECK_THAT(error_of(TypeTag::Int, "1.0"), Catch::Contains("type int"));
  CHECK_THAT(error_of(TypeTag::Int, " "), Catch::Contains("type int"));
  CHECK_THAT(error_of(TypeTag::Double, "1,5"), Catch::Contains("type double"));
  CHECK_THAT(error_of(TypeTag::Bool, "yes"), Catch::Contains("neither true nor false"));
  CHECK_THAT(error_of(TypeTag::Raw, "%%"), Catch::Contains("base64"));
}

namespace fjord {
namespace {

/// A file of the test, which ends with it.
class TextFile {
 public:
  explicit TextFile(const std::string& text) {
    FILE* file = std::tmpfile();
    REQUIRE(file != nullptr);
    file_.reset(file);
    REQUIRE(std::fwrite(text.data(), 1, text.size(), file) == text.size());
    REQUIRE(std::fflush(file) == 0);
  }
  std::unique_ptr<InputFile> open() const {
    auto file = InputFile::open("/proc/self/fd/" + std::to_string(::fileno(file_.get())));
    REQUIRE(file);
    return std::move(*file);
  }

 private:
  struct Close {
    void operator()(FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<FILE, Close> file_;
};

std::shared_ptr<const DocumentTypeRepo> thing_types() {
  const std::vector<std::string> schemas = {
      "document thing { field s type string { header } field l type long { header } field Name type string { header } "
      "field "
      "name type string { header } }"};
  const auto types = DocumentTypeRepo::build(schemas);
  REQUIRE(types);
  return *types;
}

struct Imported {
  Status status;
  std::vector<std::string> ids;  ///< Or the errors of rows.
  std::vector<std::string> warnings;
};

Imported import_of(RecordSource& source) {
  Imported imported;
  while (true) {
    const auto record = source.next();
    REQUIRE(record);
    if (!*record) return imported;
    const auto operation = source.parse(**record);
    imported.ids.push_back(operation ? operation->id : operation.error().message());
  }
}

Imported import_csv(const std::string& text, RowOptions options) {
  options.type = "thing";
  std::vector<std::string> warnings;
  auto source = CsvImport::open(TextFile(text).open(), thing_types(), options, warnings);
  Imported imported;
  if (source) imported = import_of(**source);
  imported.status = source.status();
  imported.warnings = std::move(warnings);
  return imported;
}

std::vector<std::string> import_jsonl(const std::string& text) {
  auto source = JsonImport::open(TextFile(text).open(), thing_types(), {.type = "thing", .id_field = "key"});
  REQUIRE(source);
  return import_of(**source).ids;
}

}  // namespace

TEST_CASE("import: the id of a row is the text of its cell, exactly", "[import]") {
  const RowOptions by_key{.type = "thing", .id_field = "key"};
  CHECK(import_csv("key,s\n007,a\n7,b\n7 ,c\n\" 7\",d\n1.10,e\n", by_key).ids ==
        std::vector<std::string>{"id:thing:thing::007", "id:thing:thing::7", "id:thing:thing::7 ", "id:thing:thing:: 7",
                                 "id:thing:thing::1.10"});
  const RowOptions whole{.type = "thing", .id_field = "_id"};
  CHECK(import_csv("_id,s\nid:a:thing::x,1\nid:a:thing::x ,2\ngroupdoc:ns:grp:one,3\nuserdoc:ns:7:u,4\ndoc:ns:d,5\n",
                   whole)
            .ids == std::vector<std::string>{"id:a:thing::x", "id:a:thing::x ", "groupdoc:ns:grp:one", "userdoc:ns:7:u",
                                             "doc:ns:d"});
}

TEST_CASE("import: a number in JSONL gives the id its digits, exactly", "[import]") {
  CHECK(import_jsonl(
            "{\"key\":18446744073709551616,\"s\":\"a\"}\n{\"key\":18446744073709551617,\"s\":\"b\"}\n"
            "{\"s\":\"c\",\"key\":1.10}\n{\"s\":\"d\" , \"key\" : 1e2 , \"l\":3}\n{\"key\":-0}\n{\"key\":\"t\"}\n") ==
        std::vector<std::string>{"id:thing:thing::18446744073709551616", "id:thing:thing::18446744073709551617",
                                 "id:thing:thing::1.10", "id:thing:thing::1e2", "id:thing:thing::-0",
                                 "id:thing:thing::t"});
}

TEST_CASE("import: errors of a line name the place in the line", "[import]") {
  const auto found = import_jsonl(
      "{\"key\": \"k\", \"s\": \"abcdef\", \"l\": true}\n{\"s\":\"x\",\"key\":{\"a\":1}}\n"
      "{\"s\":\"x\"}\n{\"key\":1,\"key\":2}\n{\"l\":{\"key\":5},\"key\":[1]}\n");
  REQUIRE(found.size() == 5);
  CHECK_THAT(found[0], Catch::Contains("byte 33"));
  CHECK_THAT(found[1], Catch::Contains("neither a number nor a text"));
  CHECK_THAT(found[2], Catch::Contains("missing"));
  CHECK_THAT(found[3], Catch::Contains("twice"));
  CHECK_THAT(found[4], Catch::Contains("neither a number nor a text"));
}

TEST_CASE("import: the member with the id may stand anywhere in the object", "[import]") {
  for (const char* line : {R"({"key":"k","s":"x","l":1})", R"({"s":"x","key":"k","l":1})",
                           R"({"s":"x","l":1,"key":"k"})", R"( { "key" : "k" , "s" : "x","l":1} )"}) {
    INFO(line);
    CHECK(import_jsonl(std::string(line) + "\n") == std::vector<std::string>{"id:thing:thing::k"});
  }
  CHECK(import_jsonl("{\"key\":\"k\"}\n{ \"key\" : \"k\" }\n").size() == 2);
}

TEST_CASE("import: tables of another shape are refused, not stored as empty documents", "[import]") {
  const RowOptions by_row{.type = "thing"};
  const RowOptions by_key{.type = "thing", .id_field = "key"};
  CHECK_THAT(import_csv("key,s\r1,a\r2,b\r", by_key).status.message(), Catch::Contains("carriage return"));
  CHECK_THAT(import_csv("key;s\n1;a\n2;b\n", by_row).status.message(),
             Catch::Contains("no column is a field of thing"));
  CHECK_THAT(import_csv("\x01\x02\x7f\n", by_row).status.message(), Catch::Contains("\\x01\\x02\\x7f"));
  CHECK_THAT(import_csv(std::string("\xff\xfek\0,\0s\0\n", 9), by_row).status.message(), Catch::Contains("UTF-16"));
  CHECK_THAT(import_csv("key,s,Sx\n1,a,b\n", by_key).status.message(), Catch::Contains("\"Sx\""));
  const Imported some = import_csv("key,s,Sx\n1,a,b\n", {.type = "thing", .id_field = "key", .ignore_unknown = true});
  CHECK(some.status == Status::ok());
  CHECK(some.ids.size() == 1);
  CHECK(some.warnings.size() == 1);
  CHECK_FALSE(import_csv("Sx,Sy\n1,a\n", {.type = "thing", .id_field = "Sx", .ignore_unknown = true}).status.is_ok());
}

TEST_CASE("import: fields that differ in case only have a column each", "[import]") {
  const RowOptions by_key{.type = "thing", .id_field = "key"};
  CHECK(import_csv("key,Name,name\n1,a,b\n", by_key).status == Status::ok());
  CHECK(import_csv("key,KEY,s\n1,2,b\n", {.type = "thing", .id_field = "key", .ignore_unknown = true}).ids ==
        std::vector<std::string>{"id:thing:thing::1"});
  CHECK(import_csv("KEY,S\n1,b\n", by_key).ids == std::vector<std::string>{"id:thing:thing::1"});
  CHECK_THAT(import_csv("key,s,S\n1,a,b\n", by_key).status.message(), Catch::Contains("\"S\""));
  CHECK_THAT(import_csv("key,L,l,s,s\n1,2,3,4,5\n", by_key).status.message(), Catch::Contains("twice"));
}

}  // namespace fjord

TEST_CASE("import progress: what is written is read, also in the former form", "[import]") {
  CHECK(*fjord::parse_import_progress(fjord::import_progress_text(kInput, 131072), kInput) == 131072);
  CHECK(*fjord::parse_import_progress(fmt::format("fjord-import-1 {} 200\n", kInput), kInput) == 200);
  // The same text as a script of Python writes.
  CHECK(fjord::import_progress_text("a.parquet", 200) == "fjord-import-2 a.parquet 200 f44dfc9c\n");
}

TEST_CASE("import progress: any changed character, any cut and another input are refused", "[import]") {
  const std::string text = fjord::import_progress_text(kInput, 131072);
  for (std::size_t i = 0; i < text.size(); ++i) {
    INFO(i);
    CHECK_FALSE(fjord::parse_import_progress(text.substr(0, i), kInput).has_value());
    for (const char other : {'0', '1', '7', ' ', '\n', 'f'}) {
      std::string changed = text;
      if (std::exchange(changed[i], other) == other) continue;
      CHECK_FALSE(fjord::parse_import_progress(changed, kInput).has_value());
    }
  }
  CHECK_FALSE(fjord::parse_import_progress(text, kInput + "x").has_value());
  CHECK_FALSE(fjord::parse_import_progress("fjord-import-1 a.jsonl 200", "a.jsonl").has_value());
}
