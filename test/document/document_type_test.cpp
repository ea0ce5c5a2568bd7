#include "fjord/document/document_type.h"

#include <set>

#include "sample_schema.h"

namespace fjord {

TEST_CASE("stable ids: 31 bits of the name, never zero, the same in every build") {
  CHECK(stable_id("title") == stable_id("title"));
  std::set<std::uint32_t> ids;
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t id = stable_id("field_" + std::to_string(i));
    CHECK(id > 0);
    CHECK(id <= 0x7fffffff);
    ids.insert(id);
  }
  CHECK(ids.size() == 1000);
  // These numbers are stored in every document and must not change.
  CHECK(stable_id("title") == 0x7611a0d5);
  CHECK(stable_id("music") == 0x7d421f3a);
}

TEST_CASE("data type: a value is checked all the way down") {
  const auto strings = DataType::array_of(DataType::primitive(TypeTag::String));
  CHECK(strings->name() == "array<string>");
  CHECK(strings->check(ArrayValue{{"a", "b"}}));
  const Status wrong = strings->check(ArrayValue{{"a", std::int32_t{1}}});
  CHECK(wrong.code() == StatusCode::InvalidField);
  CHECK(wrong.message() == "[1]: expected string, found int");
  CHECK_FALSE(strings->check("a"));
  CHECK_FALSE(DataType::primitive(TypeTag::String)->check("\xff"));

  const auto map = DataType::map_of(DataType::primitive(TypeTag::String), strings);
  CHECK(map->name() == "map<string, array<string>>");
  CHECK(map->check(MapValue{{{"k", ArrayValue{}}, {"l", ArrayValue{{"x"}}}}}));
  CHECK_FALSE(map->check(MapValue{{{"k", ArrayValue{}}, {"k", ArrayValue{}}}}));
  CHECK_FALSE(map->check(MapValue{{{"k", "x"}}}));

  const auto set = DataType::weighted_set_of(DataType::primitive(TypeTag::Int));
  CHECK(set->check(WeightedSetValue{{{std::int32_t{1}, 5}, {std::int32_t{2}, -5}}}));
  CHECK_FALSE(set->check(WeightedSetValue{{{std::int32_t{1}, 5}, {std::int32_t{1}, 6}}}));

  const auto type = DataType::struct_of("s", {{"x", stable_id("x"), DataType::primitive(TypeTag::Int), false}});
  StructValue value;
  value.set(stable_id("x"), std::int32_t{1});
  CHECK(type->check(value));
  value.set(stable_id("nothing"), std::int32_t{1});
  CHECK_FALSE(type->check(value));
}

TEST_CASE("type repo: types and fields are found by name and by id") {
  const auto repo = test::sample_repo();
  const DocumentType* song = repo->find("song");
  REQUIRE(song != nullptr);
  CHECK(repo->find(song->id()) == song);
  CHECK(repo->find("nothing") == nullptr);
  CHECK(repo->find(std::uint32_t{1}) == nullptr);
  for (const Field& field : song->fields()) {
    CHECK(song->field(field.name) == &field);
    CHECK(song->field_by_id(field.id) == &field);
    CHECK(field.id == stable_id(field.name));
  }
  CHECK(song->field("nothing") == nullptr);
  CHECK(song->field_by_id(12345) == nullptr);
}

TEST_CASE("type repo: two types with one name are refused") {
  std::vector<std::unique_ptr<const DocumentType>> types;
  types.push_back(std::make_unique<DocumentType>("a", std::vector<Field>()));
  types.push_back(std::make_unique<DocumentType>("a", std::vector<Field>()));
  const auto repo = DocumentTypeRepo::of(std::move(types));
  REQUIRE_FALSE(repo);
  CHECK(repo.error().message() == "document type a is declared twice");
}

}  // namespace fjord
