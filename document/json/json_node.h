#pragma once

#include <cstdint>
#include <string_view>

namespace fjord {

/// One JSON value. Nodes are in document order: the first child of an object or array directly follows it, and `next`
/// is the index after its last descendant.
struct JsonNode {
  enum class Kind : std::uint8_t { Null, Bool, Int, Uint, Double, String, Object, Array };

  Kind kind = Kind::Null;
  bool boolean = false;  ///< The value of a Bool.
  std::uint32_t next = 0;
  std::uint64_t offset = 0;  ///< Offset of the value in the JSON text, in bytes.
  std::string_view key;      ///< Key, if the value is a member of an object.
  std::string_view text;     ///< The value of a String; the digits of an Int, Uint or Double as they stand in the text.
  union {
    std::int64_t integer = 0;        ///< The value of an Int, which fits in 64 signed bits.
    std::uint64_t unsigned_integer;  ///< The value of a Uint: larger, but fits in 64 bits.
    double number;                   ///< The value of a Double: the nearest one to its digits.
  };
};

std::string_view to_string(JsonNode::Kind kind);

/// The texts that stand for the values of float and double that JSON has no numbers for.
inline constexpr std::string_view kNan = "NaN";
inline constexpr std::string_view kInfinity = "Infinity";
inline constexpr std::string_view kMinusInfinity = "-Infinity";

}  // namespace fjord
