#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fjord/common/random.h"
#include "fjord/document/document.h"

namespace fjord::test {

/// Returns a small number, and sometimes a limit of T.
template <typename T>
T random_integer(Random& random) {
  const std::uint64_t kind = random.below(10);
  if (kind == 0) return std::numeric_limits<T>::max();
  if (kind == 1) return std::numeric_limits<T>::min();
  return static_cast<T>(static_cast<int>(random.below(41)) - 20);
}

/// Returns a value of `type`. Keys come from a small set, so that they collide; floating-point numbers are neither NaN
/// nor minus zero.
inline FieldValue random_value(const DataType& type, Random& random);

inline FieldValue random_key(const DataType& type, Random& random) {
  if (type.tag() != TypeTag::String) return random_value(type, random);
  static const char* const kKeys[] = {"a", "b", "no", "", "a } \"b\" \\", "x.y[1]{", "\xc3\xb8"};
  return kKeys[random.below(std::size(kKeys))];
}

template <typename Entries, typename Make>
void add_distinct(Entries& entries, FieldValue key, Make make) {
  for (const auto& entry : entries) {
    if (entry.first == key) return;
  }
  entries.emplace_back(std::move(key), make());
}

inline FieldValue random_collection(const DataType& type, Random& random) {
  const std::uint64_t count = random.below(4);
  ArrayValue array;
  WeightedSetValue set;
  MapValue map;
  StructValue members;
  for (const Field& field : type.fields()) {
    if (random.chance(0.6)) members.set(field.id, random_value(*field.type, random));
  }
  for (std::uint64_t i = 0; i < count && type.tag() != TypeTag::Struct; ++i) {
    if (type.tag() == TypeTag::Array) {
      array.elements.push_back(random_value(*type.element(), random));
    } else if (type.tag() == TypeTag::Map) {
      add_distinct(map.entries, random_key(*type.key(), random), [&] { return random_value(*type.element(), random); });
    } else {
      add_distinct(set.elements, random_key(*type.element(), random),
                   [&] { return random_integer<std::int32_t>(random); });
    }
  }
  if (type.tag() == TypeTag::Array) return array;
  if (type.tag() == TypeTag::WeightedSet) return set;
  if (type.tag() == TypeTag::Map) return map;
  return members;
}

inline FieldValue random_value(const DataType& type, Random& random) {
  switch (type.tag()) {
    case TypeTag::String:
      return std::string(random.below(4), static_cast<char>('a' + random.below(3)));
    case TypeTag::Int:
      return random_integer<std::int32_t>(random);
    case TypeTag::Long:
      return random_integer<std::int64_t>(random);
    case TypeTag::Byte:
      return random_integer<std::int8_t>(random);
    case TypeTag::Float:
      return static_cast<float>(random.below(200)) / 8.0f - 7.0f;
    case TypeTag::Double:
      return random.uniform() * 100 - 50;
    case TypeTag::Bool:
      return random.chance(0.5);
    case TypeTag::Raw:
      return RawValue{std::string(random.below(4), static_cast<char>(random.below(256)))};
    default:
      return random_collection(type, random);
  }
}

inline Document random_document(const DocumentType& type, const DocumentId& id, Random& random) {
  Document document(type, id);
  const double part = random.uniform();
  for (const Field& field : type.fields()) {
    if (random.chance(part)) FJORD_CHECK(document.set(field, random_value(*field.type, random)));
  }
  return document;
}

}  // namespace fjord::test
