#pragma once

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <string>

#include "fjord/common/coding.h"
#include "fjord/document/value_expression.h"

/// Single values as aggregates and group keys see them.
namespace fjord::mapreduce {

using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

/// Equal values in one form: a floating-point number that is an integer of 64 bits becomes one.
ScalarView canonical(ScalarView value);
/// An order of all canonical values: absent, numbers by value, texts by their bytes.
int compare(const ScalarView& a, const ScalarView& b);
double as_double(const ScalarView& number);

/// One encoding for one canonical value.
void put_scalar(std::string& out, const ScalarView& value);
/// False if the bytes are malformed. The text is a view of them.
bool read_scalar(ByteReader& in, ScalarView& value);

/// A number that JSON does not have is the text "Infinity" or "-Infinity".
void write_number(JsonWriter& json, double number);
/// `is_bool`: integers are true and false.
void write_scalar(JsonWriter& json, const ScalarView& value, bool is_bool);

void put_signed(std::string& out, std::int64_t value);
std::int64_t read_signed(ByteReader& in);
void put_int128(std::string& out, __int128 value);
__int128 read_int128(ByteReader& in);

}  // namespace fjord::mapreduce
