#include "fjord/document/value.h"

#include <catch2/catch.hpp>

namespace fjord {

TEST_CASE("field value: the tag follows the kind of what is held") {
  CHECK(FieldValue().tag() == TypeTag::None);
  CHECK(FieldValue("text").tag() == TypeTag::String);
  CHECK(FieldValue(std::int32_t{1}).tag() == TypeTag::Int);
  CHECK(FieldValue(std::int64_t{1}).tag() == TypeTag::Long);
  CHECK(FieldValue(1.0f).tag() == TypeTag::Float);
  CHECK(FieldValue(1.0).tag() == TypeTag::Double);
  CHECK(FieldValue(true).tag() == TypeTag::Bool);
  CHECK(FieldValue(std::int8_t{1}).tag() == TypeTag::Byte);
  CHECK(FieldValue(RawValue{"x"}).tag() == TypeTag::Raw);
  CHECK(FieldValue(ArrayValue{}).tag() == TypeTag::Array);
  CHECK(FieldValue(WeightedSetValue{}).tag() == TypeTag::WeightedSet);
  CHECK(FieldValue(MapValue{}).tag() == TypeTag::Map);
  CHECK(FieldValue(StructValue{}).tag() == TypeTag::Struct);
}

TEST_CASE("field value: equality looks at kind and content") {
  CHECK(FieldValue("a") == FieldValue(std::string("a")));
  CHECK_FALSE(FieldValue(std::int32_t{1}) == FieldValue(std::int64_t{1}));
  CHECK_FALSE(FieldValue("a") == FieldValue(RawValue{"a"}));
  const FieldValue nested(ArrayValue{{FieldValue(ArrayValue{{FieldValue("a")}})}});
  CHECK(nested == FieldValue(nested));
  CHECK_FALSE(nested == FieldValue(ArrayValue{{FieldValue(ArrayValue{{FieldValue("b")}})}}));
}

TEST_CASE("struct value: members are kept by rising field id and replaced in place") {
  StructValue value;
  value.set(7, "seven");
  value.set(3, "three");
  value.set(7, "SEVEN");
  REQUIRE(value.members.size() == 2);
  CHECK(value.members[0].first == 3);
  CHECK(*value.find(7) == FieldValue("SEVEN"));
  CHECK(value.find(5) == nullptr);
}

}  // namespace fjord
