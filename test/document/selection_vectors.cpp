#include "selection_vectors.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <rapidjson/document.h>

#include "support/project_files.h"
#include "support/tsv.h"

namespace fjord::test {
namespace {

using TypePtr = std::shared_ptr<const DataType>;
using Fields = std::vector<Field>;

TypePtr tag(TypeTag t) { return DataType::primitive(t); }
Field field(const std::string& name, TypePtr type) { return {name, stable_id(name), std::move(type), true}; }
Field number(const std::string& name) { return field(name, tag(TypeTag::Int)); }
Field text(const std::string& name) { return field(name, tag(TypeTag::String)); }

Fields operator+(Fields a, const Fields& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Fields common_fields() {
  const TypePtr pair = DataType::struct_of("mystruct", {number("key"), text("value")});
  const TypePtr pairs = DataType::array_of(pair);
  return {field("mystruct", pair),
          field("structarray", pairs),
          field("mymap", DataType::map_of(tag(TypeTag::Int), tag(TypeTag::String))),
          field("structarrmap", DataType::map_of(tag(TypeTag::String), pairs)),
          field("stringweightedset", DataType::weighted_set_of(tag(TypeTag::String))),
          field("intarray", DataType::array_of(tag(TypeTag::Int))),
          text("content")};
}

/// The declaration of a type: its fields, and the types it inherits.
struct Declared {
  std::string name;
  Fields fields = {};
  std::vector<std::string> ancestors = {};
};

std::vector<Declared> server_types() {
  const Fields fields =
      common_fields() + Fields{number("headerval"),
                               field("headerlongval", tag(TypeTag::Long)),
                               field("hfloatval", tag(TypeTag::Float)),
                               text("hstringval"),
                               field("tags", DataType::array_of(tag(TypeTag::String))),
                               field("boolfield", tag(TypeTag::Bool)),
                               field("stringweightedset2", DataType::weighted_set_of(tag(TypeTag::String))),
                               field("byteweightedset", DataType::weighted_set_of(tag(TypeTag::Byte))),
                               text("title"),
                               field("byteval", tag(TypeTag::Byte)),
                               field("rawarray", DataType::array_of(tag(TypeTag::Raw)))};
  return {{"testdoctype1", fields + Fields{number("hintval"), number("foo"), number("myfield")}},
          {"testdoctype2", fields + Fields{number("onlyinchild")}, {"testdoctype1"}},
          {"_test_doctype3_", fields + Fields{number("_only_in_child_")}, {"testdoctype1"}},
          {"user", {number("id"), number("user")}},
          {"group", {number("iD"), text("group")}}};
}

std::vector<Declared> client_types() {
  const Field parent = text("parentField");
  std::vector<Declared> types = {{"parent", {parent}},
                                 {"test",
                                  common_fields() + Fields{parent, number("hint"), field("hfloat", tag(TypeTag::Float)),
                                                           text("hstring"), field("truth", tag(TypeTag::Bool))},
                                  {"parent"}},
                                 {"music",
                                  {number("expire"), text("artist"), text("name"), number("field1"), number("field2"),
                                   number("test"), text("hmm"), text("h")}},
                                 {"video", {number("expire"), number("date")}},
                                 {"music_foo", {text("artist")}},
                                 {"music_foo_", {text("artist")}},
                                 {"nonexisting", {text("reallynonexisting")}},
                                 {"user", {number("id")}},
                                 {"group", {number("iD"), text("fieldName")}},
                                 {"documentName", {text("user")}}};
  for (const char* name :
       {"book", "mytype", "now", "now_search", "id_t", "idtype", "scheme_t", "schemetype", "group_t", "grouptype",
        "null_t", "nulltype", "true_t", "truetype", "false_t", "falsetype", "or_t", "ortype"}) {
    types.push_back({name});
  }
  return types;
}

std::vector<Declared> declared_types(const std::string& suite) {
  if (suite.starts_with("cpp2")) return server_types();
  if (suite.starts_with("java")) return client_types();
  // Fjord has a string instead of a reference to another document.
  if (suite == "cppref2026") return {{"parent"}, {"child", {text("ref")}}};
  return {{"test",
           {text("ia"), text("ib"), number("aa"), number("ab"), field("aaa", DataType::array_of(tag(TypeTag::Int))),
            field("aaw", DataType::weighted_set_of(tag(TypeTag::Int)))}}};
}

std::string string_from(const rapidjson::Value& json) {
  if (!json.IsObject()) return std::string(json.GetString(), json.GetStringLength());
  if (json.HasMember("$reference")) return json["$reference"].GetString();
  const auto& repeat = json["$repeat"].GetArray();
  std::string text;
  for (int n = repeat[1].GetInt(); n > 0; --n) text += repeat[0].GetString();
  return text;
}

FieldValue value_from(const DataType& type, const rapidjson::Value& json);

FieldValue collection_from(const DataType& type, const rapidjson::Value& json) {
  if (type.tag() == TypeTag::Array) {
    ArrayValue value;
    for (const auto& element : json.GetArray()) value.elements.push_back(value_from(*type.element(), element));
    return value;
  }
  if (type.tag() == TypeTag::WeightedSet) {
    WeightedSetValue value;
    for (const auto& e : json["$wset"].GetArray()) {
      value.elements.emplace_back(value_from(*type.element(), e[0]), e[1].GetInt());
    }
    return value;
  }
  MapValue value;
  for (const auto& e : json["$map"].GetArray()) {
    value.entries.emplace_back(value_from(*type.key(), e[0]), value_from(*type.element(), e[1]));
  }
  return value;
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
      return string_from(json);
    case TypeTag::Array:
    case TypeTag::WeightedSet:
    case TypeTag::Map:
      return collection_from(type, json);
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

Subject subject_from(const DocumentTypeRepo& types, const rapidjson::Value& json) {
  Subject subject{json["id"].GetString(), json["doctype"].GetString(), std::nullopt};
  const DocumentType* type = types.find(subject.type);
  auto id = DocumentId::parse(subject.id);
  if (std::string(json["kind"].GetString()) != "put" || type == nullptr || !id) return subject;
  Document document(*type, *id);
  for (const auto& member : json["fields"].GetObject()) {
    const Field* f = type->field(member.name.GetString());
    if (f == nullptr) continue;  // The field is a tensor, which Fjord does not have.
    const Status set = document.set(*f, value_from(*f->type, member.value));
    INFO(set);
    REQUIRE(set.is_ok());
  }
  subject.encoded = encode(document);
  return subject;
}

constexpr std::string_view kTableHead = "| file | rows | left out |";

/// Reads the table of SELECTION.md: numbers of rows by file and by feature left out.
std::map<std::string, std::map<std::string, int>> read_table() {
  std::ifstream page(test::project_file("document/SELECTION.md"));
  std::map<std::string, std::map<std::string, int>> table;
  bool is_inside = false;
  for (std::string line; std::getline(page, line);) {
    if (is_inside && !line.starts_with('|')) break;
    if (is_inside && !line.starts_with("|--")) {
      const std::vector<std::string> cells = split(line, '|');
      REQUIRE(cells.size() >= 5);
      const auto trim = [](const std::string& cell) { return cell.substr(1, cell.size() - 2); };
      table[trim(cells[1])][trim(cells[3])] = std::stoi(cells[2]);
    }
    is_inside = is_inside || line.starts_with(kTableHead);
  }
  REQUIRE_FALSE(table.empty());
  return table;
}

}  // namespace

std::shared_ptr<const DocumentTypeRepo> selection_types(const std::string& suite) {
  std::vector<std::unique_ptr<const DocumentType>> types;
  for (Declared& type : declared_types(suite)) {
    types.push_back(std::make_unique<DocumentType>(type.name, std::move(type.fields), std::move(type.ancestors)));
  }
  for (const char* empty : {"notandor", "ornotand", "andornot", "idid", "usergroup"}) {
    types.push_back(std::make_unique<DocumentType>(empty, Fields{}));
  }
  auto repo = DocumentTypeRepo::of(std::move(types));
  INFO(repo.status());
  REQUIRE(repo);
  return *repo;
}

std::map<std::string, Suite> read_suites(const std::filesystem::path& documents) {
  std::map<std::string, Suite> suites;
  std::ifstream file(documents);
  for (std::string line; std::getline(file, line);) {
    rapidjson::Document json;
    REQUIRE_FALSE(json.Parse(line.c_str()).HasParseError());
    if (std::string(json["record"].GetString()) != "document") continue;
    const std::string name = json["suite"].GetString();
    Suite& suite = suites[name];
    if (!suite.types) suite.types = selection_types(name);
    suite.subjects[json["key"].GetString()] = subject_from(*suite.types, json);
  }
  REQUIRE_FALSE(suites.empty());
  return suites;
}

void LeftOut::check() const {
  const auto table = read_table();
  const auto expected = table.contains(file_) ? table.at(file_) : std::map<std::string, int>();
  for (const auto& [what, rows] : rows_) {
    INFO(file_ << " leaves out: " << what);
    CHECK(rows == (expected.contains(what) ? expected.at(what) : 0));
  }
  for (const auto& [what, rows] : expected) {
    INFO("the table says that " << file_ << " leaves out: " << what);
    CHECK(rows_.contains(what));
  }
}

}  // namespace fjord::test
