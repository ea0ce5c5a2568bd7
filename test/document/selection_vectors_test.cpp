#include <catch2/catch.hpp>
#include <fstream>
#include <limits>
#include <rapidjson/document.h>
#include <set>

#include "fjord/document/selection.h"
#include "selection_lexer.h"
#include "selection_value.h"
#include "support/shared_dir.h"
#include "support/tsv.h"

namespace fjord {
namespace {

using test::TsvRow;
using TypePtr = std::shared_ptr<const DataType>;
using Counts = std::map<std::string, int>;

TypePtr tag(TypeTag t) { return DataType::primitive(t); }
Field field(const std::string& name, TypePtr type) { return {name, stable_id(name), std::move(type), true}; }

std::vector<Field> common_fields() {
  const TypePtr pair =
      DataType::struct_of("mystruct", {field("key", tag(TypeTag::Int)), field("value", tag(TypeTag::String))});
  const TypePtr pairs = DataType::array_of(pair);
  return {field("mystruct", pair),
          field("structarray", pairs),
          field("mymap", DataType::map_of(tag(TypeTag::Int), tag(TypeTag::String))),
          field("structarrmap", DataType::map_of(tag(TypeTag::String), pairs)),
          field("stringweightedset", DataType::weighted_set_of(tag(TypeTag::String))),
          field("intarray", DataType::array_of(tag(TypeTag::Int))),
          field("content", tag(TypeTag::String))};
}

std::vector<Field> operator+(std::vector<Field> a, const std::vector<Field>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The schema records of documents.jsonl.
std::shared_ptr<const DocumentTypeRepo> repo_of(const std::string& suite) {
  std::vector<std::unique_ptr<const DocumentType>> types;
  const auto add = [&](const std::string& name, std::vector<Field> fields, std::vector<std::string> ancestors = {}) {
    types.push_back(std::make_unique<DocumentType>(name, std::move(fields), std::move(ancestors)));
  };
  const TypePtr i = tag(TypeTag::Int);
  const TypePtr s = tag(TypeTag::String);
  if (suite.starts_with("cpp2")) {
    const std::vector<Field> fields =
        common_fields() + std::vector<Field>{field("headerval", i),
                                             field("headerlongval", tag(TypeTag::Long)),
                                             field("hfloatval", tag(TypeTag::Float)),
                                             field("hstringval", s),
                                             field("tags", DataType::array_of(s)),
                                             field("boolfield", tag(TypeTag::Bool)),
                                             field("stringweightedset2", DataType::weighted_set_of(s)),
                                             field("byteweightedset", DataType::weighted_set_of(tag(TypeTag::Byte))),
                                             field("title", s),
                                             field("byteval", tag(TypeTag::Byte)),
                                             field("rawarray", DataType::array_of(tag(TypeTag::Raw)))};
    add("testdoctype1", fields);
    add("testdoctype2", fields + std::vector<Field>{field("onlyinchild", i)}, {"testdoctype1"});
    add("_test_doctype3_", fields + std::vector<Field>{field("_only_in_child_", i)}, {"testdoctype1"});
    add("user", {field("id", i)});
    add("group", {field("iD", i)});
  } else if (suite.starts_with("java")) {
    const Field parent = field("parentField", s);
    add("parent", {parent});
    add("test",
        common_fields() + std::vector<Field>{parent, field("hint", i), field("hfloat", tag(TypeTag::Float)),
                                             field("hstring", s), field("truth", tag(TypeTag::Bool))},
        {"parent"});
  } else {
    add("test", {field("ia", s), field("ib", s), field("aa", i), field("ab", i), field("aaa", DataType::array_of(i)),
                 field("aaw", DataType::weighted_set_of(i))});
  }
  for (const char* empty : {"notandor", "ornotand", "andornot", "idid", "usergroup"}) add(empty, {});
  auto repo = DocumentTypeRepo::of(std::move(types));
  INFO(repo.status());
  REQUIRE(repo);
  return *repo;
}

FieldValue value_from(const DataType& type, const rapidjson::Value& json) {
  switch (type.tag()) {
    case TypeTag::Int:
      return json.GetInt();
    case TypeTag::Long:
      return static_cast<std::int64_t>(json.GetInt64());
    case TypeTag::Byte:
      return static_cast<std::int8_t>(json.GetInt());
    case TypeTag::Float:
      return static_cast<float>(json.GetDouble());
    case TypeTag::Bool:
      return json.GetBool();
    case TypeTag::String:
      if (json.IsObject()) {
        const auto& repeat = json["$repeat"].GetArray();
        std::string text;
        for (int n = repeat[1].GetInt(); n > 0; --n) text += repeat[0].GetString();
        return text;
      }
      return std::string(json.GetString(), json.GetStringLength());
    case TypeTag::Array: {
      ArrayValue value;
      for (const auto& element : json.GetArray()) value.elements.push_back(value_from(*type.element(), element));
      return value;
    }
    case TypeTag::WeightedSet: {
      WeightedSetValue value;
      for (const auto& e : json["$wset"].GetArray())
        value.elements.emplace_back(value_from(*type.element(), e[0]), e[1].GetInt());
      return value;
    }
    case TypeTag::Map: {
      MapValue value;
      for (const auto& e : json["$map"].GetArray()) {
        value.entries.emplace_back(value_from(*type.key(), e[0]), value_from(*type.element(), e[1]));
      }
      return value;
    }
    case TypeTag::Struct: {
      StructValue value;
      for (const auto& m : json.GetObject()) {
        const Field* member = type.field(m.name.GetString());
        REQUIRE(member != nullptr);
        value.set(member->id, value_from(*member->type, m.value));
      }
      return value;
    }
    default:
      FAIL("no such value here");
      return {};
  }
}

struct Subject {
  std::string id;
  std::string type;
  std::optional<EncodedDocument> encoded;  ///< Only of a put whose id is valid.
};

struct Suite {
  std::shared_ptr<const DocumentTypeRepo> repo;
  std::map<std::string, Subject> subjects;
};

void read_documents(const std::filesystem::path& path, std::map<std::string, Suite>& suites) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    rapidjson::Document json;
    REQUIRE_FALSE(json.Parse(line.c_str()).HasParseError());
    const std::string suite = json["suite"].IsString() ? json["suite"].GetString() : "";
    if (std::string(json["record"].GetString()) != "document" || suite == "cppref2026") continue;
    Suite& in = suites[suite];
    if (!in.repo) in.repo = repo_of(suite);
    Subject subject{json["id"].GetString(), json["doctype"].GetString(), std::nullopt};
    const DocumentType* type = in.repo->find(subject.type);
    auto id = DocumentId::parse(subject.id);
    if (std::string(json["kind"].GetString()) == "put" && type != nullptr && id) {
      Document document(*type, *id);
      for (const auto& member : json["fields"].GetObject()) {
        const Field* f = type->field(member.name.GetString());
        if (f == nullptr) continue;  // a tensor
        const Status set = document.set(*f, value_from(*f->type, member.value));
        INFO(set);
        REQUIRE(set.is_ok());
      }
      subject.encoded = encode(document);
    }
    in.subjects[json["key"].GetString()] = std::move(subject);
  }
}

bool has(const TsvRow& row, const std::string& construct) {
  const auto parts = test::split(row.at("constructs"), ',');
  return std::find(parts.begin(), parts.end(), construct) != parts.end();
}

/// Why a row is not run: what the language does not have. Empty if it is run.
std::string reason_to_skip(const TsvRow& row, const Suite& suite, const Subject& subject) {
  if (!row.at("vespa_internal").empty()) return "internal: " + row.at("vespa_internal");
  for (const char* construct : {"regex", "arithmetic", "hash()", "lowercase()", "now()", "id.gid", "id.bucket"}) {
    if (has(row, construct)) return construct;
  }
  if (row.at("suite").starts_with("java") && !row.at("differs_in").empty()) return "Java differs from C++";
  if (row.at("expected") == "Error") return "Java throws";
  if (subject.id.starts_with("orderdoc")) return "orderdoc ids";
  if (row.at("suite") == "cpp2016" && row.at("expression") == "testdoctype1.mystruct < 5")
    return "cpp2016 differs from cpp2026";
  if (row.at("target") == "put" && !subject.encoded) return "id scheme or type that does not exist here";
  if (row.at("target") != "put" && suite.repo->find(subject.type) == nullptr && !subject.type.empty())
    return "type unknown";
  return {};
}

}  // namespace

TEST_CASE("selection vectors: conditions on documents", "[selection][vectors]") {
  const auto path = test::shared_path("vectors/selection/cases.tsv");
  if (!path) return;
  std::map<std::string, Suite> suites;
  read_documents(path->parent_path() / "documents.jsonl", suites);
  // Rows where Java says otherwise than we do, which no C++ suite covers.
  const std::set<std::string> java_only = {"test.mymap == \"a\""};
  Counts skipped;
  int passed = 0;
  for (const TsvRow& row : test::read_tsv(*path)) {
    const std::string& text = row.at("expression");
    if (!suites.contains(row.at("suite"))) {
      ++skipped["internal: " + row.at("vespa_internal")];
      continue;
    }
    const Suite& suite = suites.at(row.at("suite"));
    const Subject& subject = suite.subjects.at(row.at("doc"));
    std::string reason = reason_to_skip(row, suite, subject);
    const bool is_java = row.at("suite").starts_with("java");
    const auto selection = Selection::parse(text, *suite.repo);
    if (reason.empty() && is_java && !selection &&
        selection.error().message().find("unknown document type") != std::string::npos) {
      reason = "Java accepts unknown types";
    }
    if (reason.empty() && is_java && java_only.contains(text)) reason = "only Java";
    if (!reason.empty()) {
      ++skipped[reason];
      continue;
    }
    INFO(row.at("suite") << " " << row.at("doc") << " " << row.at("target") << ": " << text);
    INFO(selection.status());
    REQUIRE(selection);
    Match match = Match::Invalid;
    if (row.at("target") == "put") {
      const auto view = DocumentView::open(*suite.repo, subject.encoded->header, subject.encoded->body);
      REQUIRE(view);
      match = selection->evaluate(*view);
      const auto* types = selection->possible_types();
      if (match == Match::True && types != nullptr)
        CHECK(std::binary_search(types->begin(), types->end(), view->type_id()));
      const auto again = Selection::parse(selection->to_string(), *suite.repo);
      REQUIRE(again);
      CHECK(again->evaluate(*view) == match);
    } else {
      match = selection->evaluate_id(subject.id, subject.type.empty() ? 0 : stable_id(subject.type));
    }
    CHECK(std::string(to_string(match)) == row.at("expected"));
    ++passed;
  }
  for (const auto& [reason, count] : skipped) UNSCOPED_INFO(count << " rows skipped: " << reason);
  CHECK(passed == 573);
  CHECK(skipped == Counts{{"Java accepts unknown types", 8},
                          {"Java differs from C++", 5},
                          {"only Java", 2},
                          {"cpp2016 differs from cpp2026", 1},
                          {"orderdoc ids", 7},
                          {"arithmetic", 30},
                          {"hash()", 18},
                          {"lowercase()", 28},
                          {"now()", 5},
                          {"regex", 62},
                          {"internal: bucket-number", 16},
                          {"internal: gid", 4},
                          {"internal: hash-value", 14},
                          {"internal: imported-field", 8},
                          {"internal: imported-field,java-throws", 1},
                          {"internal: java-throws", 3},
                          {"internal: known-limitation", 3},
                          {"internal: order-scheme", 13},
                          {"internal: reference-field", 12},
                          {"internal: searchcolumn", 1},
                          {"internal: tensor", 10},
                          {"internal: variable", 16}});
}

TEST_CASE("selection vectors: what parses and how it is printed", "[selection][vectors]") {
  const auto path = test::shared_path("vectors/selection/parse.tsv");
  if (!path) return;
  const std::vector<std::string> outside = {
      "unknown function", "unknown operator '=~'", "unexpected '+'", "unexpected '-'",         "unexpected '*'",
      "unexpected '/'",   "unexpected '%'",        "unexpected '$'", "unknown part of the id", "has no field"};
  Counts skipped;
  int passed = 0;
  for (const TsvRow& row : test::read_tsv(*path)) {
    const std::string& suite = row.at("suite");
    const auto repo = repo_of(suite);
    const auto selection = Selection::parse(row.at("expression"), *repo);
    INFO(suite << ": " << row.at("expression") << " -> " << selection.status());
    if (row.at("outcome") == "ok" && !selection) {
      const std::string& message = selection.error().message();
      std::string reason;
      for (const std::string& part : outside) {
        if (message.find(part) != std::string::npos) reason = part;
      }
      if (suite.starts_with("java") && message.find("unknown document type") != std::string::npos)
        reason = "Java accepts any type";
      CHECK(reason != "");
      ++skipped[reason];
      continue;
    }
    REQUIRE(selection.has_value() == (row.at("outcome") == "ok"));
    ++passed;
    if (!selection || row.at("canonical").empty()) continue;
    if (suite == "cpp2016") {  // prints keywords as they were written
      CHECK_THAT(selection->to_string(), Catch::Equals(row.at("canonical"), Catch::CaseSensitive::No));
    } else {
      CHECK(selection->to_string() == row.at("canonical"));
    }
  }
  for (const auto& [reason, count] : skipped) UNSCOPED_INFO(count << " rows skipped: " << reason);
  CHECK(passed == 113);
  CHECK(skipped == Counts{{"Java accepts any type", 63},
                          {"has no field", 8},
                          {"unexpected '$'", 2},
                          {"unexpected '%'", 2},
                          {"unexpected '*'", 3},
                          {"unexpected '+'", 16},
                          {"unexpected '-'", 4},
                          {"unknown function", 18},
                          {"unknown operator '=~'", 2},
                          {"unknown part of the id", 8}});
}

TEST_CASE("selection vectors: number literals", "[selection][vectors]") {
  const auto path = test::shared_path("vectors/selection/number_literals.tsv");
  if (!path) return;
  const std::map<std::string, std::int64_t> integers = {
      {"0", 0}, {"INT64_MAX", std::numeric_limits<std::int64_t>::max()}, {"UINT32_MAX", 0xffffffff}};
  for (const TsvRow& row : test::read_tsv(*path)) {
    INFO(row.at("kind") << " " << row.at("text"));
    const bool ok = row.at("ok") == "true";
    if (row.at("kind") == "double") {
      const auto value = selection::parse_double(row.at("text"));
      REQUIRE(value.has_value() == ok);
      if (ok)
        CHECK(*value ==
              (row.at("value").starts_with("-std") ? -std::numeric_limits<double>::infinity() : 1.79769e+308));
      continue;
    }
    const auto value = row.at("kind") == "i64" ? selection::parse_integer(row.at("text"))
                                               : selection::parse_hex_integer(row.at("text"));
    REQUIRE(value.has_value() == ok);
    if (ok) CHECK(*value == integers.at(row.at("value")));
  }
}

TEST_CASE("selection vectors: globs match what their regular expressions match", "[selection][vectors]") {
  const auto path = test::shared_path("vectors/selection/glob.tsv");
  if (!path) return;
  const std::map<std::string, std::pair<std::vector<std::string>, std::vector<std::string>>> examples = {
      {"foo$", {{"foo", "xfoo"}, {"foox", "", "fo"}}},
      {"", {{"", "a", "ab"}, {}}},
      {"foo", {{"foo", "xfoo", "foox", "xfooy"}, {"", "fo", "xfo"}}},
      {"foo.*bar", {{"foobar", "xfooybarz"}, {"barfoo", "foo", "fobar"}}},
      {"..*..*.", {{"abc", "abcd"}, {"", "a", "ab"}}}};
  for (const TsvRow& row : test::read_tsv(*path)) {
    const auto& [matching, others] = examples.at(row.at("regex"));
    for (const std::string& text : matching) CHECK(selection::glob_matches(text, row.at("glob")));
    for (const std::string& text : others) CHECK_FALSE(selection::glob_matches(text, row.at("glob")));
  }
}

}  // namespace fjord
