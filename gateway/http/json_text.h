#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <map>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/clock.h"
#include "http/json_body.h"

namespace fjord::gateway {

/// Writes one JSON value for an answer, by RapidJSON's writer. Text that is not UTF-8 gets replacement characters, and
/// a number that is not finite becomes null.
class JsonText {
 public:
  JsonText& begin_object() { return writer_.StartObject(), *this; }
  JsonText& end_object() { return writer_.EndObject(), *this; }
  JsonText& begin_array() { return writer_.StartArray(), *this; }
  JsonText& end_array() { return writer_.EndArray(), *this; }
  JsonText& key(std::string_view name) { return value(name); }
  JsonText& null() { return writer_.Null(), *this; }

  JsonText& value(std::string_view text) {
    quoted_.clear();
    append_json_string(quoted_, text);
    return writer_.RawValue(quoted_.data(), quoted_.size(), rapidjson::kStringType), *this;
  }
  JsonText& value(const std::string& text) { return value(std::string_view(text)); }
  JsonText& value(const char* text) { return value(std::string_view(text)); }
  JsonText& value(bool truth) { return writer_.Bool(truth), *this; }
  template <std::integral T>
  JsonText& value(T number) {
    if constexpr (std::signed_integral<T>) {
      writer_.Int64(number);
    } else {
      writer_.Uint64(number);
    }
    return *this;
  }
  JsonText& value(double number) {
    if (!std::isfinite(number)) return null();
    return writer_.Double(number), *this;
  }
  JsonText& value(const std::vector<std::string>& texts) {
    begin_array();
    for (const std::string& text : texts) value(text);
    return end_array();
  }
  JsonText& value(const std::map<std::string, std::string>& texts) {
    begin_object();
    for (const auto& [name, text] : texts) key(name).value(text);
    return end_object();
  }
  /// Writes `json`, a complete JSON value, unchanged.
  JsonText& raw(std::string_view json) {
    return writer_.RawValue(json.data(), json.size(), rapidjson::kObjectType), *this;
  }

  template <typename T>
  JsonText& member(std::string_view name, const T& what) {
    return key(name).value(what);
  }
  JsonText& seconds(std::string_view name, Duration time) {
    return member(name, std::chrono::duration<double>(time).count());
  }
  /// Writes null if the time is negative.
  JsonText& known_seconds(std::string_view name, Duration time) {
    return time < Duration(0) ? key(name).null() : seconds(name, time);
  }

  std::size_t size() const { return buffer_.GetSize(); }
  std::string str() const { return std::string(buffer_.GetString(), buffer_.GetSize()); }

 private:
  rapidjson::StringBuffer buffer_;
  rapidjson::Writer<rapidjson::StringBuffer> writer_{buffer_};
  std::string quoted_;
};

}  // namespace fjord::gateway
