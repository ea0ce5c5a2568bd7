#pragma once

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <string>

#include "fjord/common/coding.h"
#include "fjord/document/value_expression.h"

/// Single values in the form in which aggregates and group keys use them.
namespace fjord::mapreduce {

using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

/// Returns the canonical form of a value, which is the same for equal values: a floating-point number that equals a
/// 64-bit integer becomes that integer.
ScalarView canonical(ScalarView value);
/// Compares canonical values: absent before numbers (by value) before texts (by their bytes). Returns -1, 0 or 1.
int compare(const ScalarView& a, const ScalarView& b);
double as_double(const ScalarView& number);

/// Appends the encoding of a canonical value; each value has one encoding.
void put_scalar(std::string& out, const ScalarView& value);
/// Returns false if the bytes are malformed. A text is a view of them.
bool read_scalar(ByteReader& in, ScalarView& value);

/// Writes infinities as the texts "Infinity" and "-Infinity", and NaN as null.
void write_number(JsonWriter& json, double number);
/// Writes a value as JSON. `is_bool`: integers are written as true or false.
void write_scalar(JsonWriter& json, const ScalarView& value, bool is_bool);

void put_signed(std::string& out, std::int64_t value);
std::int64_t read_signed(ByteReader& in);
void put_int128(std::string& out, __int128 value);
__int128 read_int128(ByteReader& in);

}  // namespace fjord::mapreduce
