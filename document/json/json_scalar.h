#pragma once

#include <string>

#include "fjord/common/status.h"
#include "fjord/document/document.h"
#include "json_node.h"

/// Single JSON values in the wire form. Errors of all: InvalidField with the offset in the JSON.
namespace fjord {

Status json_error(std::uint64_t offset, std::string_view what);
Status unexpected_json(const JsonNode& node, std::string_view expected);

/// Returns a text as the number or bool that a value of `type` needs, and a number or bool as a text; other values as
/// they are.
JsonNode converted(const DataType& type, const JsonNode& node);

/// Appends a value of a type that is no collection and no struct, without a length.
Status encode_scalar(const DataType& type, const JsonNode& node, std::string& out);
/// Appends a key of a map or weighted set that JSON writes as the name of an object's member. `offset` is that of the
/// member's value.
Status encode_key_text(const DataType& type, std::string_view key, std::uint64_t offset, std::string& out);

}  // namespace fjord
