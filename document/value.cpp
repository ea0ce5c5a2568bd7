#include "fjord/document/value.h"

#include <algorithm>

namespace fjord {

std::string_view to_string(TypeTag tag) {
  switch (tag) {
    case TypeTag::None:
      return "none";
    case TypeTag::String:
      return "string";
    case TypeTag::Int:
      return "int";
    case TypeTag::Long:
      return "long";
    case TypeTag::Float:
      return "float";
    case TypeTag::Double:
      return "double";
    case TypeTag::Bool:
      return "bool";
    case TypeTag::Byte:
      return "byte";
    case TypeTag::Raw:
      return "raw";
    case TypeTag::Array:
      return "array";
    case TypeTag::WeightedSet:
      return "weightedset";
    case TypeTag::Map:
      return "map";
    case TypeTag::Struct:
      return "struct";
  }
  return "none";
}

// Defined here and not in the classes because FieldValue is incomplete there.
bool operator==(const ArrayValue& a, const ArrayValue& b) { return a.elements == b.elements; }
bool operator==(const WeightedSetValue& a, const WeightedSetValue& b) { return a.elements == b.elements; }
bool operator==(const MapValue& a, const MapValue& b) { return a.entries == b.entries; }
bool operator==(const StructValue& a, const StructValue& b) { return a.members == b.members; }

const FieldValue* StructValue::find(std::uint32_t field_id) const {
  const auto at = std::lower_bound(members.begin(), members.end(), field_id,
                                   [](const auto& member, std::uint32_t id) { return member.first < id; });
  return at != members.end() && at->first == field_id ? &at->second : nullptr;
}

void StructValue::set(std::uint32_t field_id, FieldValue value) {
  const auto at = std::lower_bound(members.begin(), members.end(), field_id,
                                   [](const auto& member, std::uint32_t id) { return member.first < id; });
  if (at != members.end() && at->first == field_id) {
    at->second = std::move(value);
  } else {
    members.emplace(at, field_id, std::move(value));
  }
}

}  // namespace fjord
