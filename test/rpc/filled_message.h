#pragma once

#include <string>

#include "message_fields.h"

namespace fjord::rpc::test {

/// Gives every member of a message a value of its own that is not its default, always the same ones. Lists get two
/// elements.
class Fill {
 public:
  template <typename T>
  void operator()(int, T& value) {
    ++count_;
    if constexpr (std::is_same_v<T, bool>) {
      value = !value;
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = "text " + std::to_string(count_);
    } else if constexpr (std::is_same_v<T, Status>) {
      value = Status(StatusCode::NotFound, "text " + std::to_string(count_));
    } else if constexpr (std::is_same_v<T, BucketId>) {
      value = BucketId(10, static_cast<std::uint64_t>(count_));
    } else if constexpr (std::is_same_v<T, GlobalId>) {
      for (auto& byte : value.bytes) byte = static_cast<std::uint8_t>('a' + count_ % 26);
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(1);
    } else if constexpr (std::is_arithmetic_v<T>) {
      value = static_cast<T>(count_);
    } else if constexpr (kIsVector<T>) {
      value.resize(2);
      for (auto& element : value) (*this)(0, element);
    } else if constexpr (kIsOptional<T>) {
      (*this)(0, value.emplace());
    } else {
      fields(*this, value);
    }
  }
  template <typename T>
  void always(int number, T& value) {
    (*this)(number, value);
  }

 private:
  int count_ = 0;
};

}  // namespace fjord::rpc::test
