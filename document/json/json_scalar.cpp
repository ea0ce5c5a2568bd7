#include "json_scalar.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <limits>
#include <optional>

#include "fjord/document/json.h"
#include "text.h"
#include "wire.h"

namespace fjord {
namespace {

using Kind = JsonNode::Kind;

constexpr std::size_t kDigitsShown = 40;

Status encode_raw(const JsonNode& node, std::string& out) {
  if (node.kind != Kind::String) return unexpected_json(node, "a string in base64");
  const auto bytes = base64_decode(node.text);
  if (!bytes) return json_error(node.offset, fmt::format("expected base64, found {}", quoted(node.text, 40)));
  out += *bytes;
  return Status::ok();
}

template <typename T>
Status encode_integer(const DataType& type, const JsonNode& node, std::string& out) {
  using Limits = std::numeric_limits<T>;
  if (node.kind != Kind::Int && node.kind != Kind::Uint) {
    return unexpected_json(node, fmt::format("an integer for type {}", type.name()));
  }
  if (node.kind == Kind::Uint || node.integer < Limits::min() || node.integer > Limits::max()) {
    const std::string digits =
        node.kind == Kind::Uint ? std::to_string(node.unsigned_integer) : std::to_string(node.integer);
    return json_error(node.offset, fmt::format("{} is out of the range of {}", digits, type.name()));
  }
  put_fixed(out, static_cast<T>(node.integer));
  return Status::ok();
}

/// The number that a text of json_node.h stands for.
std::optional<double> special_number(const JsonNode& node) {
  if (node.kind != Kind::String) return std::nullopt;
  if (node.text == kNan) return std::numeric_limits<double>::quiet_NaN();
  if (node.text == kInfinity) return std::numeric_limits<double>::infinity();
  if (node.text == kMinusInfinity) return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

/// Encodes the value of T that is nearest to the digits; a double in between would round twice.
template <typename T>
Status encode_floating(const DataType& type, const JsonNode& node, std::string& out) {
  if (const auto special = special_number(node)) {
    put_fixed(out, static_cast<T>(*special));
    return Status::ok();
  }
  if (node.kind != Kind::Int && node.kind != Kind::Uint && node.kind != Kind::Double) {
    return unexpected_json(node, fmt::format("a number for type {}", type.name()));
  }
  T number = 0;
  if (std::from_chars(node.text.data(), node.text.data() + node.text.size(), number).ec != std::errc()) {
    const bool is_tiny = std::abs(node.kind == Kind::Double ? node.number : 1.0) < 1;
    return json_error(node.offset, fmt::format("{} is {} {}", node.text.substr(0, kDigitsShown),
                                               is_tiny ? "too close to 0 for" : "out of the range of", type.name()));
  }
  put_fixed(out, number);
  return Status::ok();
}

/// Returns a text as the number whose digits it has; another text as it is.
JsonNode number_of(const JsonNode& text) {
  const char* const begin = text.text.data();
  const char* const end = begin + text.text.size();
  JsonNode number = text;
  number.kind = Kind::Int;
  if (const auto read = std::from_chars(begin, end, number.integer); read.ec == std::errc() && read.ptr == end) {
    return number;
  }
  number.kind = Kind::Double;
  const bool has_digit = text.text.find_first_of("0123456789") != std::string_view::npos;  // Not "NaN" and the like.
  const auto read = std::from_chars(begin, end, number.number);
  // Infinite or 0, as in JSON, so that whoever reads the number can say what is wrong with it.
  if (read.ec == std::errc::result_out_of_range) number.number = std::strtod(std::string(text.text).c_str(), nullptr);
  return has_digit && read.ptr == end && text.text.size() > 0 ? number : text;
}

template <typename T>
Status encode_key_number(const DataType& type, std::string_view key, std::uint64_t offset, std::string& out) {
  T value = 0;
  const char* end = key.data() + key.size();
  const auto [stop, failure] = std::from_chars(key.data(), end, value);
  if (failure != std::errc() || stop != end) {
    return json_error(offset, fmt::format("expected a key of type {}, found {}", type.name(), quoted(key)));
  }
  put_fixed(out, value);
  return Status::ok();
}

}  // namespace

Status json_error(std::uint64_t offset, std::string_view what) {
  return {StatusCode::InvalidField, fmt::format("JSON, byte {}: {}", offset, what)};
}

Status unexpected_json(const JsonNode& node, std::string_view expected) {
  return json_error(node.offset, fmt::format("expected {}, found {}", expected, to_string(node.kind)));
}

JsonNode converted(const DataType& type, const JsonNode& node) {
  JsonNode other = node;
  switch (type.tag()) {
    case TypeTag::String:
      if (node.kind == Kind::Bool) other.text = node.boolean ? "true" : "false";
      if (node.kind == Kind::Bool || node.kind == Kind::Int || node.kind == Kind::Uint || node.kind == Kind::Double) {
        other.kind = Kind::String;
      }
      return other;
    case TypeTag::Bool:
      if (node.kind != Kind::String || (node.text != "true" && node.text != "false")) return node;
      other.kind = Kind::Bool;
      other.boolean = node.text == "true";
      return other;
    case TypeTag::Byte:
    case TypeTag::Int:
    case TypeTag::Long:
    case TypeTag::Float:
    case TypeTag::Double:
      return node.kind == Kind::String ? number_of(node) : node;
    default:
      return node;
  }
}

Status encode_scalar(const DataType& type, const JsonNode& node, std::string& out) {
  switch (type.tag()) {
    case TypeTag::String:
      if (node.kind != Kind::String) return unexpected_json(node, "a string");
      out += node.text;
      return Status::ok();
    case TypeTag::Raw:
      return encode_raw(node, out);
    case TypeTag::Bool:
      if (node.kind != Kind::Bool) return unexpected_json(node, "true or false");
      out.push_back(node.boolean ? '\1' : '\0');
      return Status::ok();
    case TypeTag::Byte:
      return encode_integer<std::int8_t>(type, node, out);
    case TypeTag::Int:
      return encode_integer<std::int32_t>(type, node, out);
    case TypeTag::Long:
      return encode_integer<std::int64_t>(type, node, out);
    case TypeTag::Float:
      return encode_floating<float>(type, node, out);
    case TypeTag::Double:
      return encode_floating<double>(type, node, out);
    case TypeTag::Array:
      return unexpected_json(node, fmt::format("an array for type {}", type.name()));
    case TypeTag::WeightedSet:
      return unexpected_json(node, fmt::format("an object for type {}", type.name()));
    case TypeTag::Map:
      return unexpected_json(node, fmt::format("an object, or an array of {{key, value}}, for type {}", type.name()));
    case TypeTag::Struct:
      return unexpected_json(node, "an object");
    case TypeTag::None:
      break;
  }
  return json_error(node.offset, fmt::format("values of type {} are not stored", type.name()));
}

Status encode_key_text(const DataType& type, std::string_view key, std::uint64_t offset, std::string& out) {
  switch (type.tag()) {
    case TypeTag::String:
      put_string(out, key);
      return Status::ok();
    case TypeTag::Byte:
      return encode_key_number<std::int8_t>(type, key, offset, out);
    case TypeTag::Int:
      return encode_key_number<std::int32_t>(type, key, offset, out);
    case TypeTag::Long:
      return encode_key_number<std::int64_t>(type, key, offset, out);
    case TypeTag::Bool:
      if (key != "true" && key != "false") {
        return json_error(offset, fmt::format("expected the key true or false, found {}", quoted(key)));
      }
      out.push_back(key == "true" ? '\1' : '\0');
      return Status::ok();
    default:
      return json_error(offset, fmt::format("values of type {} cannot be keys in an object", type.name()));
  }
}

}  // namespace fjord
