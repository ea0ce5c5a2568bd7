#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "fjord/common/coding.h"
#include "fjord/common/result.h"

/// Writes and reads structs as numbered fields (FORMAT.md). A struct `T` has a function `fields(visit, value)` that
/// calls `visit(number, member)` for each member; the same function serves both directions. Members are integers, bool,
/// enumerations, strings, structs with such a function, Status, and vectors of all these.
///
/// Threading: any; there is no shared state.
namespace fjord::mapreduce {

namespace field_codec {

template <typename T>
inline constexpr bool kIsNumber = std::is_integral_v<T> || std::is_enum_v<T>;
template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;

/// Zigzag: numbers near zero are short, whatever their sign.
inline std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
inline std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

template <typename T>
std::uint64_t to_number(T value) {
  if constexpr (std::is_enum_v<T>) {
    return static_cast<std::uint64_t>(value);
  } else if constexpr (std::is_signed_v<T>) {
    return zigzag(value);
  } else {
    return value;
  }
}

/// Returns false if `T` cannot hold the number.
template <typename T>
bool from_number(std::uint64_t number, T& value) {
  if constexpr (std::is_signed_v<T>) {
    value = static_cast<T>(unzigzag(number));
    return value == unzigzag(number);
  } else {
    value = static_cast<T>(number);
    return static_cast<std::uint64_t>(value) == number;
  }
}

}  // namespace field_codec

/// Writes the members that differ from their zero values (of a Status: OK).
class FieldWriter {
 public:
  explicit FieldWriter(std::string& out) : out_(out) {}

  template <typename T>
  void operator()(unsigned number, const T& value) {
    if constexpr (field_codec::kIsVector<T>) {
      for (const auto& element : value) put(number, element);
    } else if constexpr (field_codec::kIsNumber<T>) {
      if (value != T{}) put(number, value);
    } else {
      if constexpr (std::is_same_v<T, Status>) {
        if (value.is_ok()) return;
      }
      const std::string bytes = bytes_of(value);
      if (!bytes.empty()) put_bytes(number, bytes);
    }
  }

 private:
  template <typename T>
  static std::string bytes_of(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      return value;
    } else {
      std::string bytes;
      FieldWriter nested(bytes);
      if constexpr (std::is_same_v<T, Status>) {
        nested(1, value.code());
        nested(2, value.message());
        nested(3, value.node());
        nested(4, value.limit());
        nested(5, value.setting());
      } else {
        fields(nested, value);
      }
      return bytes;
    }
  }
  template <typename T>
  void put(unsigned number, const T& value) {
    if constexpr (field_codec::kIsNumber<T>) {
      put_varint(out_, std::uint64_t{number} << 1);
      put_varint(out_, field_codec::to_number(value));
    } else {
      put_bytes(number, bytes_of(value));
    }
  }
  void put_bytes(unsigned number, std::string_view bytes) {
    put_varint(out_, std::uint64_t{number} << 1 | 1);
    put_string(out_, bytes);
  }

  std::string& out_;
};

/// Reads what a FieldWriter wrote, also one of a later release: unknown fields are skipped.
class FieldReader {
 public:
  /// Adds the fields in `bytes` to `value`, which must have its default values. Errors: Corruption.
  template <typename T>
  static Status read(std::string_view bytes, T& value) {
    ByteReader in(bytes);
    FieldReader reader;
    while (in.ok() && in.remaining() > 0 && reader.ok_) {
      const std::uint64_t tag = in.varint();
      reader.number_ = tag >> 1;
      reader.is_bytes_ = (tag & 1) != 0;
      if (reader.is_bytes_) {
        reader.bytes_ = in.string();
      } else {
        reader.value_ = in.varint();
      }
      if (!in.ok()) break;
      if constexpr (std::is_same_v<T, Status>) {
        reader.read_status(value);
      } else {
        fields(reader, value);
      }
    }
    if (in.ok() && reader.ok_) return Status::ok();
    return Status(StatusCode::Corruption, "malformed field " + std::to_string(reader.number_));
  }

  /// Called by fields() for each member; takes the value of the current field.
  template <typename T>
  void operator()(unsigned number, T& value) {
    if (number != number_ || !ok_) return;
    if constexpr (field_codec::kIsVector<T>) {
      take(value.emplace_back());
    } else {
      take(value);
    }
  }

 private:
  template <typename T>
  void take(T& value) {
    if constexpr (field_codec::kIsNumber<T>) {
      ok_ = !is_bytes_ && field_codec::from_number(value_, value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      ok_ = is_bytes_;
      if (ok_) value = bytes_;
    } else {
      ok_ = is_bytes_ && read(bytes_, value).is_ok();
    }
  }
  void read_status(Status& status) {
    StatusCode code = status.code();
    std::string message = status.message();
    ErrorDetails details = status.details();
    (*this)(1, code);
    (*this)(2, message);
    (*this)(3, details.node);
    (*this)(4, details.limit);
    (*this)(5, details.setting);
    status = Status(code, std::move(message), std::move(details));
  }

  std::uint64_t number_ = 0;
  bool is_bytes_ = false;
  std::uint64_t value_ = 0;
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace fjord::mapreduce
