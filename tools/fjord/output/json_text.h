#pragma once

#include <cmath>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <string>
#include <string_view>

namespace fjord::cli {

/// Writes one JSON value. A wrapper of RapidJSON's writer for the types of this program.
class JsonText {
 public:
  JsonText& begin_object() { return writer_.StartObject(), *this; }
  JsonText& end_object() { return writer_.EndObject(), *this; }
  JsonText& begin_array() { return writer_.StartArray(), *this; }
  JsonText& end_array() { return writer_.EndArray(), *this; }
  JsonText& key(std::string_view name) {
    return writer_.Key(name.data(), static_cast<rapidjson::SizeType>(name.size())), *this;
  }
  JsonText& text(std::string_view value) {
    return writer_.String(value.data(), static_cast<rapidjson::SizeType>(value.size())), *this;
  }
  JsonText& number(std::uint64_t value) { return writer_.Uint64(value), *this; }
  JsonText& integer(std::int64_t value) { return writer_.Int64(value), *this; }
  JsonText& boolean(bool value) { return writer_.Bool(value), *this; }
  /// Writes `value` rounded to `digits` decimal places.
  JsonText& real(double value, int digits) {
    const double scale = std::pow(10.0, digits);
    return writer_.Double(std::round(value * scale) / scale), *this;
  }
  /// Writes `json`, a complete JSON value, unchanged.
  JsonText& raw(std::string_view json) {
    return writer_.RawValue(json.data(), json.size(), rapidjson::kObjectType), *this;
  }

  std::string str() const { return std::string(buffer_.GetString(), buffer_.GetSize()); }

 private:
  rapidjson::StringBuffer buffer_;
  rapidjson::Writer<rapidjson::StringBuffer> writer_{buffer_};
};

}  // namespace fjord::cli
