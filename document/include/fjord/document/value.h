#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace fjord {

/// Kinds of values. The numbers are written to disk and sent to other nodes: never reuse one. Zero stands for no kind.
enum class TypeTag : std::uint8_t {
  None = 0,
  String = 1,  ///< UTF-8
  Int = 2,     ///< 32 bits, signed
  Long = 3,    ///< 64 bits, signed
  Float = 4,
  Double = 5,
  Bool = 6,
  Byte = 7,  ///< 8 bits, signed
  Raw = 8,   ///< any bytes
  Array = 9,
  WeightedSet = 10,  ///< distinct elements, each with a weight of 32 bits, signed
  Map = 11,          ///< distinct keys
  Struct = 12,
};

/// Name of the kind: "int", "weightedset". "none" for other numbers.
std::string_view to_string(TypeTag tag);
inline bool is_known(TypeTag tag) { return tag >= TypeTag::String && tag <= TypeTag::Struct; }
inline bool is_collection(TypeTag tag) { return tag >= TypeTag::Array && tag <= TypeTag::Map; }

class FieldValue;

struct RawValue {
  std::string bytes;
  friend bool operator==(const RawValue&, const RawValue&) = default;
};

struct ArrayValue {
  std::vector<FieldValue> elements;
  friend bool operator==(const ArrayValue&, const ArrayValue&);
};

/// Elements in the order they were written, without duplicates.
struct WeightedSetValue {
  std::vector<std::pair<FieldValue, std::int32_t>> elements;
  friend bool operator==(const WeightedSetValue&, const WeightedSetValue&);
};

/// Entries in the order they were written; keys are distinct.
struct MapValue {
  std::vector<std::pair<FieldValue, FieldValue>> entries;
  friend bool operator==(const MapValue&, const MapValue&);
};

/// Members in ascending order of their field ids.
struct StructValue {
  std::vector<std::pair<std::uint32_t, FieldValue>> members;

  const FieldValue* find(std::uint32_t field_id) const;
  /// Sets a member and replaces its former value.
  void set(std::uint32_t field_id, FieldValue value);
  friend bool operator==(const StructValue&, const StructValue&);
};

/// One value of any kind that owns its bytes. Used to build documents and off the hot path. To read stored documents
/// without copies use DocumentView.
class FieldValue {
 public:
  /// In the order of TypeTag, after monostate for None.
  using Variant = std::variant<std::monostate, std::string, std::int32_t, std::int64_t, float, double, bool,
                               std::int8_t, RawValue, ArrayValue, WeightedSetValue, MapValue, StructValue>;

  FieldValue() = default;
  FieldValue(std::string value) : value_(std::move(value)) {}         // NOLINT: a value is what it holds
  FieldValue(std::string_view value) : value_(std::string(value)) {}  // NOLINT
  FieldValue(const char* value) : value_(std::string(value)) {}       // NOLINT
  FieldValue(std::int32_t value) : value_(value) {}                   // NOLINT
  FieldValue(std::int64_t value) : value_(value) {}                   // NOLINT
  FieldValue(float value) : value_(value) {}                          // NOLINT
  FieldValue(double value) : value_(value) {}                         // NOLINT
  FieldValue(bool value) : value_(value) {}                           // NOLINT
  FieldValue(std::int8_t value) : value_(value) {}                    // NOLINT
  FieldValue(RawValue value) : value_(std::move(value)) {}            // NOLINT
  FieldValue(ArrayValue value) : value_(std::move(value)) {}          // NOLINT
  FieldValue(WeightedSetValue value) : value_(std::move(value)) {}    // NOLINT
  FieldValue(MapValue value) : value_(std::move(value)) {}            // NOLINT
  FieldValue(StructValue value) : value_(std::move(value)) {}         // NOLINT

  TypeTag tag() const { return static_cast<TypeTag>(value_.index()); }
  bool is_none() const { return value_.index() == 0; }

  template <typename T>
  const T* get_if() const {
    return std::get_if<T>(&value_);
  }
  template <typename T>
  T* get_if() {
    return std::get_if<T>(&value_);
  }
  const Variant& variant() const { return value_; }

  /// True if kind and value are equal; numbers of different kinds are never equal.
  friend bool operator==(const FieldValue&, const FieldValue&) = default;

 private:
  Variant value_;
};

}  // namespace fjord
