#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <limits>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/document/json.h"
#include "json_node.h"
#include "text.h"

namespace fjord {

/// Reads JSON and tells a handler about each value in its turn. A handler has
///
///     bool key(std::string_view name);      // of the member whose value comes next
///     bool scalar(const JsonNode& value);
///     bool start(const JsonNode& value);    // of an object or array
///     bool end();
///
/// and ends the reading by returning false. Strings point into `text`, in which they are unescaped in place.
template <typename Handler>
class JsonEvents {
 public:
  JsonEvents(Handler& handler, std::vector<char>& text) : handler_(handler), text_(text), stream_(text.data()) {}

  /// Reads the whole text, which ends with a zero byte. Returns OK also if the handler ended the reading, because the
  /// handler knows why. Errors: InvalidArgument with the offset: not JSON, text after the value, strings that are not
  /// UTF-8, nesting deeper than kJsonDepthMax.
  Status read() {
    char stack_bytes[1024];  // memory of the parser, so that it allocates nothing
    rapidjson::MemoryPoolAllocator<> allocator(stack_bytes, sizeof(stack_bytes));
    rapidjson::GenericReader<rapidjson::UTF8<>, rapidjson::UTF8<>, rapidjson::MemoryPoolAllocator<>> reader(&allocator,
                                                                                                            256);
    const rapidjson::ParseResult result = reader.template Parse<kParseFlags>(stream_, *this);
    if (result.IsError() && result.Code() != rapidjson::kParseErrorTermination) {
      return invalid(result.Offset(), rapidjson::GetParseError_En(result.Code()));
    }
    if (result.IsError()) return failure_.empty() ? Status::ok() : invalid(offset(), failure_);
    // The reader treats a zero byte as the end of the text.
    return stream_.Tell() + 1 == text_.size() ? Status::ok() : invalid(stream_.Tell(), "a zero byte");
  }

  // Called by RapidJSON, which has consumed words and brackets from the stream by then, but not strings and numbers.
  bool Null() { return scalar(node(JsonNode::Kind::Null, 4)); }
  bool Bool(bool value) {
    JsonNode one = node(JsonNode::Kind::Bool, value ? 4 : 5);
    one.boolean = value;
    return scalar(one);
  }
  bool Int(int) { return false; }  // RawNumber() gets all numbers.
  bool Uint(unsigned) { return false; }
  bool Int64(std::int64_t) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }
  /// Called with the text of a valid JSON number.
  bool RawNumber(const char* text, rapidjson::SizeType length, bool) {
    const char* end = text + length;
    JsonNode one = node(JsonNode::Kind::Int, 0);
    one.text = std::string_view(text, length);
    if (one.text.find_first_of(".eE") == std::string_view::npos) {
      if (std::from_chars(text, end, one.integer).ec == std::errc()) return scalar(one);
      one.kind = JsonNode::Kind::Uint;
      if (*text != '-' && std::from_chars(text, end, one.unsigned_integer).ec == std::errc()) return scalar(one);
    }
    one.kind = JsonNode::Kind::Double;
    one.number = 0;
    if (std::from_chars(text, end, one.number).ec == std::errc()) return scalar(one);
    one.number = std::strtod(std::string(one.text).c_str(), nullptr);  // too large or close to zero
    return std::isinf(one.number) ? fail("a number that is too large") : scalar(one);
  }
  bool String(const char* text, rapidjson::SizeType length, bool) {
    JsonNode one = node(JsonNode::Kind::String, 0);
    one.text = std::string_view(text, length);
    return is_utf8(one.text) ? scalar(one) : fail("a string that is not UTF-8");
  }
  bool Key(const char* text, rapidjson::SizeType length, bool) {
    const std::string_view name(text, length);
    return is_utf8(name) ? handler_.key(name) : fail("a string that is not UTF-8");
  }
  bool StartObject() { return start(JsonNode::Kind::Object); }
  bool StartArray() { return start(JsonNode::Kind::Array); }
  bool EndObject(rapidjson::SizeType) { return end(); }
  bool EndArray(rapidjson::SizeType) { return end(); }

 private:
  // The recursive parser is the faster one, and start() limits the depth to kJsonDepthMax, which bounds the stack.
  // Numbers arrive as text, because RapidJSON misreads zeros with a large negative exponent ("0.0e-300").
  static constexpr unsigned kParseFlags = rapidjson::kParseInsituFlag | rapidjson::kParseNumbersAsStringsFlag;

  static Status invalid(std::size_t offset, std::string_view what) {
    return {StatusCode::InvalidArgument, fmt::format("JSON, byte {}: {}", offset, what)};
  }
  std::size_t offset() { return stream_.Tell(); }
  JsonNode node(JsonNode::Kind kind, std::size_t consumed) {
    JsonNode one;
    one.kind = kind;
    one.offset = offset() - consumed;
    return one;
  }
  bool scalar(const JsonNode& value) { return handler_.scalar(value); }
  bool start(JsonNode::Kind kind) {
    if (depth_ == kJsonDepthMax) {
      return fail(fmt::format("more than {} objects and arrays within one another", kJsonDepthMax));
    }
    ++depth_;
    return handler_.start(node(kind, 1));
  }
  bool end() {
    --depth_;
    return handler_.end();
  }
  bool fail(std::string_view what) {
    failure_ = what;
    return false;
  }

  Handler& handler_;
  std::vector<char>& text_;
  rapidjson::InsituStringStream stream_;
  int depth_ = 0;
  std::string failure_;
};

/// Copies a text into memory that JsonEvents may overwrite. Errors: InvalidArgument.
inline Result<std::vector<char>> json_in_situ(std::string_view json) {
  if (json.size() >= std::numeric_limits<std::uint32_t>::max()) {
    return Status(StatusCode::InvalidArgument, "JSON, byte 0: more than 4 GiB");
  }
  std::vector<char> text;
  text.reserve(json.size() + 1);
  text.assign(json.begin(), json.end());
  text.push_back('\0');
  return text;
}

}  // namespace fjord
