#include "json_tree.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <limits>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>
#include <string>
#include <utility>

#include "fjord/document/json.h"
#include "text.h"

namespace fjord {
namespace {

// The recursive parser is the faster one, and TreeBuilder limits the depth to kJsonDepthMax, which bounds the stack.
// Numbers arrive as text, because RapidJSON misreads zeros with a large negative exponent ("0.0e-300").
constexpr unsigned kParseFlags = rapidjson::kParseInsituFlag | rapidjson::kParseNumbersAsStringsFlag;

Status invalid(std::size_t offset, std::string_view what) {
  return {StatusCode::InvalidArgument, fmt::format("JSON, byte {}: {}", offset, what)};
}

/// The handler that RapidJSON calls for each value. Returning false ends the parse, with the reason in `failure_`.
class TreeBuilder {
 public:
  TreeBuilder(std::vector<JsonNode>& nodes, rapidjson::InsituStringStream& stream) : nodes_(nodes), stream_(stream) {}

  // When the handler is called, RapidJSON has consumed words and brackets from the stream, but not strings and numbers.
  bool Null() {
    add(JsonNode::Kind::Null)->offset -= 4;
    return true;
  }
  bool Bool(bool value) {
    JsonNode* node = add(JsonNode::Kind::Bool);
    node->boolean = value;
    node->offset -= value ? 4 : 5;
    return true;
  }
  bool Int(int value) { return Int64(value); }
  bool Uint(unsigned value) { return Int64(value); }
  bool Int64(std::int64_t value) {
    add(JsonNode::Kind::Int)->integer = value;
    return true;
  }
  bool Uint64(std::uint64_t value) {
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return Int64(static_cast<std::int64_t>(value));
    }
    add(JsonNode::Kind::Uint)->unsigned_integer = value;
    return true;
  }
  bool Double(double value) {
    add(JsonNode::Kind::Double)->number = value;
    return true;
  }
  /// Called with the text of a valid JSON number.
  bool RawNumber(const char* text, rapidjson::SizeType length, bool) {
    const char* end = text + length;
    if (std::string_view(text, length).find_first_of(".eE") == std::string_view::npos) {
      std::int64_t integer = 0;
      if (std::from_chars(text, end, integer).ec == std::errc()) return Int64(integer);
      std::uint64_t unsigned_integer = 0;
      if (*text != '-' && std::from_chars(text, end, unsigned_integer).ec == std::errc()) {
        return Uint64(unsigned_integer);
      }
    }
    double number = 0;
    if (std::from_chars(text, end, number).ec == std::errc()) return Double(number);
    number = std::strtod(std::string(text, length).c_str(), nullptr);  // too large or close to zero
    return std::isinf(number) ? fail("a number that is too large") : Double(number);
  }
  bool String(const char* text, rapidjson::SizeType length, bool) {
    const std::string_view value(text, length);
    if (!is_utf8(value)) return fail("a string that is not UTF-8");
    add(JsonNode::Kind::String)->text = value;
    return true;
  }
  bool Key(const char* text, rapidjson::SizeType length, bool) {
    key_ = std::string_view(text, length);
    return is_utf8(key_) || fail("a string that is not UTF-8");
  }
  bool StartObject() { return start(JsonNode::Kind::Object); }
  bool StartArray() { return start(JsonNode::Kind::Array); }
  bool EndObject(rapidjson::SizeType) { return end(); }
  bool EndArray(rapidjson::SizeType) { return end(); }

  const std::string& failure() const { return failure_; }
  std::size_t offset() { return stream_.Tell(); }

 private:
  JsonNode* add(JsonNode::Kind kind) {
    JsonNode& node = nodes_.emplace_back();
    node.kind = kind;
    node.key = std::exchange(key_, {});
    node.offset = offset();
    node.next = static_cast<std::uint32_t>(nodes_.size());
    return &node;
  }
  bool start(JsonNode::Kind kind) {
    if (depth_ == open_.size()) {
      return fail(fmt::format("more than {} objects and arrays within one another", kJsonDepthMax));
    }
    add(kind)->offset -= 1;
    open_[depth_++] = static_cast<std::uint32_t>(nodes_.size() - 1);
    return true;
  }
  bool end() {
    nodes_[open_[--depth_]].next = static_cast<std::uint32_t>(nodes_.size());
    return true;
  }
  bool fail(std::string_view what) {
    failure_ = what;
    return false;
  }

  std::vector<JsonNode>& nodes_;
  rapidjson::InsituStringStream& stream_;
  std::array<std::uint32_t, kJsonDepthMax> open_{};
  std::size_t depth_ = 0;  // number of entries in use in open_
  std::string_view key_;
  std::string failure_;
};

}  // namespace

std::string_view to_string(JsonNode::Kind kind) {
  switch (kind) {
    case JsonNode::Kind::Null:
      return "null";
    case JsonNode::Kind::Bool:
      return "true or false";
    case JsonNode::Kind::Int:
    case JsonNode::Kind::Uint:
      return "an integer";
    case JsonNode::Kind::Double:
      return "a number with a fraction or exponent";
    case JsonNode::Kind::String:
      return "a string";
    case JsonNode::Kind::Object:
      return "an object";
    case JsonNode::Kind::Array:
      return "an array";
  }
  return "nothing";
}

Result<JsonTree> JsonTree::parse(std::string_view json) {
  if (json.size() >= std::numeric_limits<std::uint32_t>::max()) return invalid(0, "more than 4 GiB");
  JsonTree tree;
  tree.text_.reserve(json.size() + 1);
  tree.text_.assign(json.begin(), json.end());
  tree.text_.push_back('\0');
  tree.nodes_.reserve(16 + std::min<std::size_t>(json.size() / 16, 4096));

  rapidjson::InsituStringStream stream(tree.text_.data());
  TreeBuilder builder(tree.nodes_, stream);
  char stack_bytes[1024];  // memory of the parser, so that it allocates nothing
  rapidjson::MemoryPoolAllocator<> allocator(stack_bytes, sizeof(stack_bytes));
  rapidjson::GenericReader<rapidjson::UTF8<>, rapidjson::UTF8<>, rapidjson::MemoryPoolAllocator<>> reader(&allocator,
                                                                                                          256);
  const rapidjson::ParseResult result = reader.Parse<kParseFlags>(stream, builder);
  if (result.IsError()) {
    if (result.Code() == rapidjson::kParseErrorTermination) return invalid(builder.offset(), builder.failure());
    return invalid(result.Offset(), rapidjson::GetParseError_En(result.Code()));
  }
  // The reader treats a zero byte as the end of the text.
  if (stream.Tell() != json.size()) return invalid(stream.Tell(), "a zero byte");
  return tree;
}

const JsonNode* JsonTree::member(const JsonNode& object, std::string_view key) const {
  if (object.kind != JsonNode::Kind::Object) return nullptr;
  for (std::uint32_t i = first(object); i != object.next; i = nodes_[i].next) {
    if (nodes_[i].key == key) return &nodes_[i];
  }
  return nullptr;
}

}  // namespace fjord
