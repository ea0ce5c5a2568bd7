#include "json_node.h"

namespace fjord {

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

}  // namespace fjord
