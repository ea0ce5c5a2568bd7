#include "import_source.h"

using fjord::DataType;
using fjord::FieldValue;
using fjord::TypeTag;
using fjord::value_from_text;

namespace {

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
