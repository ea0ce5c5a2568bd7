#include "schema/sd_parser.h"

#include "fjord/document/document_type.h"
#include "sample_schema.h"

namespace fjord {
namespace {

/// Returns names and types of the fields of a type as "name:type", with '*' for header fields.
std::vector<std::string> fields_of(const DocumentTypeRepo& repo, std::string_view type) {
  std::vector<std::string> out;
  REQUIRE(repo.find(type) != nullptr);
  for (const Field& field : repo.find(type)->fields()) {
    out.push_back(field.name + ":" + field.type->name() + (field.in_header ? "*" : ""));
  }
  return out;
}

using Strings = std::vector<std::string>;

std::string error_of(const Strings& texts) {
  const auto repo = DocumentTypeRepo::build(texts);
  REQUIRE_FALSE(repo);
  CHECK(repo.error().code() == StatusCode::InvalidArgument);
  return repo.error().message();
}
std::string error_of(const std::string& text) { return error_of(Strings{text}); }

bool contains(const std::string& text, std::string_view part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("schema: a plain document with two fields") {
  const auto repo = test::repo_of(
      "document visitor {  \n  field nickname type string {  \n  }  \n  \n"
      "  field height type int {  \n  }  \n}\n");
  CHECK(fields_of(*repo, "visitor") == Strings{"nickname:string", "height:int"});
}

TEST_CASE("schema: all types, header and body") {
  const auto repo = test::repo_of(R"(
    document d {
      field a type string { header }
      field b type weightedset<long> { body }
      field c type map<string, array<map<int, double>>> { header
      }
      field e type uri {}
      field f type position {}
      field g type int[] {}
      field h type array<byte> {}
      field i type bool {} field j type raw {}
    })");
  CHECK(fields_of(*repo, "d") == Strings{"a:string*", "b:weightedset<long>", "c:map<string, array<map<int, double>>>*",
                                         "e:string", "f:position", "g:array<int>", "h:array<byte>", "i:bool", "j:raw"});
  const DataType& position = *repo->find("d")->field("f")->type;
  CHECK(position.field("x")->type->tag() == TypeTag::Int);
  CHECK(position.field("y") != nullptr);
}

TEST_CASE("schema: a search application's schema keeps its fields and warns once for each kind of the rest") {
  const std::string text = R"(# a shop's catalogue
schema item {
  document item {
    struct price {
      field amount type long { match: text }
      field currency type string {}
    }
    field sku type string {
      header
      indexing: summary | attribute
      attribute: fast-search
      match {
        exact
      }
    }
    field label type string {
      indexing: summary | index
      index: enable-bm25
      bolding: on
    }
    field offers type array<price> {
      indexing: summary
      struct-field amount { indexing: attribute }
    }
    field vector type tensor<float>(x[384]) {
      indexing: attribute | index
      index { hnsw { max-links-per-node: 16 } }
    }
    field sold_by type reference<shop> { indexing: attribute }
    field target type predicate { indexing: attribute  index { arity: 2 } }
  }
  field label_upper type string {
    indexing {
      input label | lowercase . "}" | index;
    }
  }
  import field sold_by.city as city {}
  fieldset default { fields: sku, label }
  constant weights { file: constants/weights.json  type: tensor(x{}) }
  onnx-model ranker { file: models/ranker.onnx }
  rank-profile default inherits native {
    inputs {
      query(q) tensor<float>(x[384])
    }
    function freshness_boost() {
      expression: if (attribute(age) > 3, 1, "{" == "}")   # a brace in a string
    }
    first-phase {
      expression {
        nativeRank + closeness(field, vector)
      }
    }
  }
  rank-profile second
  {
    first-phase { expression: 1 }
  }
  document-summary brief {
    summary sku {}
    from-disk
  }
}
)";
  std::vector<SchemaWarning> warnings;
  const auto repo = DocumentTypeRepo::build(std::span(&text, 1), &warnings);
  INFO(repo.status());
  REQUIRE(repo);
  CHECK(fields_of(**repo, "item") == Strings{"sku:string*", "label:string", "offers:array<price>"});
  std::string all;
  for (const SchemaWarning& warning : warnings) all += warning.message + "\n";
  CHECK(contains(all, "schema, line 10, column 7: \"indexing\" has no meaning here and is passed over ("));
  CHECK(contains(all,
                 "schema, line 25, column 5: field vector is left out: values of type tensor<float> are not stored"));
  CHECK(contains(all, "field sold_by is left out: values of type reference<shop>"));
  CHECK(contains(all, "field target is left out: values of type predicate"));
  CHECK(contains(all, "\"rank-profile\" has no meaning here and is passed over (2 times)"));
  CHECK(contains(all, "\"field outside of the document\""));
  CHECK(contains(all, "\"onnx-model\""));
  for (std::string_view kind : {"\"indexing\"", "\"rank-profile\"", "\"attribute\"", "\"import\"", "\"constant\""}) {
    INFO(kind);
    CHECK(all.find(kind) == all.rfind(kind));
    CHECK(all.find(kind) != std::string::npos);
  }
}

TEST_CASE("schema: a type inherits fields and structs, also from a text that comes later") {
  const Strings texts = {
      "document child inherits base, named {\n struct pair inherits single { field second type long {} }\n"
      " field p type pair {}\n field s type single { header }\n field base_field type int { header }\n}",
      "search base { document { struct single { field first type int {} } field base_field type int {} } }",
      "document named inherits base { field name type string { header } }"};
  const auto repo = DocumentTypeRepo::build(texts);
  INFO(repo.status());
  REQUIRE(repo);
  CHECK(fields_of(**repo, "child") == Strings{"base_field:int*", "name:string*", "p:pair", "s:single*"});
  CHECK((*repo)->find("child")->field("p")->type->fields().size() == 2);
  CHECK((*repo)->find("child")->is_a("base"));
  CHECK((*repo)->find("child")->is_a("named"));
  CHECK((*repo)->find("child")->is_a("child"));
  CHECK_FALSE((*repo)->find("base")->is_a("child"));
}

TEST_CASE("schema: an error names the place, what was expected and what was found") {
  CHECK(error_of("document a {\n  field x int {}\n}") ==
        "schema, line 2, column 11: expected \"type\" after the name of the field, found \"int\"");
  CHECK(contains(error_of("table x {}"), "line 1, column 1: expected schema, search or document, found \"table\""));
  CHECK(contains(error_of("document a {"),
                 "line 1, column 13: expected a statement or '}' in a document, found the end"));
  CHECK(contains(error_of("document a { field x type array<int { } }"), "expected '>'"));
  CHECK(contains(error_of("document a { field x type weird {} }"), "column 27: unknown type weird"));
  CHECK(contains(error_of("document a { field x type map<int> {} }"), "map takes 2 types in <>, found 1"));
  CHECK(contains(error_of("document a { field x type int<int> {} }"), "int takes 0 types"));
  CHECK(
      contains(error_of("document a { field x type map<float, int> {} }"), "expected string, int, long, byte or bool"));
  CHECK(contains(error_of("document a { field x type weightedset<array<int>> {} }"), "expected string, int"));
  CHECK(contains(error_of("document a { field x type int {} field x type int {} }"), "field x is declared twice"));
  CHECK(contains(error_of("document a { field x type int { header\n body } }"), "either header or body"));
  CHECK(contains(error_of("document a inherits b { }"), "inherits unknown type b"));
  CHECK(contains(error_of(Strings{"document a {}", "document a {}"}),
                 "the schema of a, line 1, column 1: document type a is already"));
  CHECK(contains(error_of("document a inherits b {}\ndocument b inherits a {}"), "inherits itself"));
  CHECK(contains(error_of("document a { struct s { field x type array<s> {} } }"), "contains or inherits itself"));
  CHECK(contains(error_of("document a { struct s { } struct s { } }"), "struct s is declared twice"));
  CHECK(contains(error_of("document a { field x type int {\n indexing: \"abc\n} }"), "without closing quote"));
  CHECK(contains(error_of("document a { field x type int { index { } }"), "found the end of the text"));
  CHECK(contains(error_of("document a { rank { { } "), "for the '{' of line 1, column 19"));
  CHECK(contains(error_of("schema a { }"), "expected a document in the schema"));
  CHECK(contains(error_of("document a {} }"), "expected schema, search or document, found \"}\""));
  CHECK(contains(error_of("document a { field x type int {} }\ndocument b inherits a { field x type long {} }"),
                 "field x has type long here and int"));
}

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
      {"search song { document { } }", "song"},
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

TEST_CASE("schema: an option of weighted sets is what updates do, or refused by its name") {
  std::vector<SchemaWarning> warnings;
  for (const char* option : {"weightedset: create-if-nonexistent", "weightedset { create-if-nonexistent }"}) {
    const Strings texts{std::string("document a { field x type weightedset<string> { ") + option + " } }"};
    CHECK(DocumentTypeRepo::build(texts, &warnings));
  }
  CHECK(warnings.empty());
  for (const char* option : {"weightedset: remove-if-zero", "weightedset { create-if-nonexistent\n remove-if-zero }"}) {
    const std::string error =
        error_of(std::string("document a { field x type weightedset<string> { ") + option + " } }");
    CHECK(contains(error, "field x: remove-if-zero is not known here"));
  }
  CHECK(contains(error_of("document a { field x type weightedset<string> { weightedset { other } } }"),
                 "expected create-if-nonexistent"));
}

TEST_CASE("schema: types nested deeper than values may be are refused") {
  std::string type = "int";
  for (int i = 0; i < 40; ++i) type = "array<" + type + ">";
  CHECK(contains(error_of("document a { field x type " + type + " {} }"), "types nested"));
  CHECK(contains(error_of("document a { field x type " + std::string(100000, '[') + " {} }"), "expected a type"));
  std::string structs = "struct s0 { field x type int {} }\n";
  for (int i = 1; i < 40; ++i) {
    const std::string inner = "s" + std::to_string(i - 1);
    structs += "struct s" + std::to_string(i) + " { field a type " + inner + " {} field b type " + inner + " {} }\n";
  }
  CHECK(contains(error_of("document a { " + structs + "}"), "types nested"));
}

TEST_CASE("schema: no truncation and no garbled byte of a schema does harm") {
  const auto is_read_or_refused = [](const std::string& text) {
    const auto built = DocumentTypeRepo::build(std::span(&text, 1));
    return built ? *built != nullptr
                 : built.error().code() == StatusCode::InvalidArgument && !built.error().message().empty();
  };
  for (std::size_t n = 0; n < test::kSampleSchema.size(); ++n) {
    CAPTURE(n);
    REQUIRE(is_read_or_refused(test::kSampleSchema.substr(0, n)));
    for (char c : {'{', '}', '<', '"', '\0'}) {
      std::string garbled = test::kSampleSchema;
      garbled[n] = c;
      REQUIRE(is_read_or_refused(garbled));
    }
  }
}

}  // namespace fjord
