#pragma once

#include <string>
#include <utility>

#include "fjord/common/random.h"
#include "message_fields.h"

namespace fjord::rpc::test {

/// Fills every member of a message with random values: zeros, limits, binary strings, empty and short lists.
class RandomFill {
 public:
  explicit RandomFill(Random& random) : random_(random) {}

  template <typename T>
  void operator()(int, T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = random_.chance(0.5);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = text();
    } else if constexpr (std::is_same_v<T, Status>) {
      value = Status(static_cast<StatusCode>(random_.below(64)), text(), {text(), text(), text()});
    } else if constexpr (std::is_same_v<T, BucketId>) {
      value = BucketId(static_cast<unsigned>(random_.below(BucketId::kUsedBitsMax + 1)), random_.next());
    } else if constexpr (std::is_same_v<T, GlobalId>) {
      for (auto& byte : value.bytes) byte = static_cast<std::uint8_t>(random_.next());
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(random_.below(9));
    } else if constexpr (std::is_arithmetic_v<T>) {
      value = static_cast<T>(random_.next() >> random_.below(64));
      if (random_.chance(0.2)) value = 0;
    } else if constexpr (kIsVector<T>) {
      value.resize(random_.chance(0.05) ? 20 : random_.below(4));
      for (auto& element : value) (*this)(0, element);
    } else if constexpr (kIsOptional<T>) {
      value.reset();
      if (random_.chance(0.7)) (*this)(0, value.emplace());
    } else {
      fields(*this, value);
    }
  }
  template <typename T>
  void always(int number, T& value) {
    (*this)(number, value);
  }

 private:
  std::string text() {
    std::string result(random_.chance(0.1) ? random_.below(3000) : random_.below(20), '\0');
    for (char& c : result) c = static_cast<char>(random_.next());
    return result;
  }

  Random& random_;
};

/// Writes all members of a message as text, for comparison.
class Dump {
 public:
  template <typename T>
  void operator()(int number, const T& value) {
    text_ += std::to_string(number) + ":";
    if constexpr (std::is_same_v<T, std::string>) {
      text_ += std::to_string(value.size()) + "'" + value + "'";
    } else if constexpr (std::is_same_v<T, Status>) {
      text_ += value.to_string() + "'" + value.node() + "'" + value.limit() + "'" + value.setting() + "'";
    } else if constexpr (std::is_same_v<T, BucketId>) {
      text_ += value.to_string();
    } else if constexpr (std::is_same_v<T, GlobalId>) {
      text_ += value.view();
    } else if constexpr (std::is_enum_v<T>) {
      text_ += std::to_string(static_cast<long long>(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
      text_ += std::to_string(value);
    } else if constexpr (kIsVector<T>) {
      text_ += "[";
      for (const auto& element : value) (*this)(0, element);
      text_ += "]";
    } else if constexpr (kIsOptional<T>) {
      if (value) (*this)(0, *value);
    } else {
      text_ += "{";
      fields(*this, value);
      text_ += "}";
    }
    text_ += ";";
  }
  template <typename T>
  void always(int number, const T& value) {
    (*this)(number, value);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

template <typename T>
std::string dump(const T& message) {
  Dump result;
  result(0, message);
  return result.text();
}
inline std::string dump(const Request& request) {
  return std::visit([](const auto& message) { return dump(message); }, request);
}
inline std::string dump(const Reply& reply) {
  return std::visit([](const auto& message) { return dump(message); }, reply);
}

/// Returns alternative I of V with random content.
template <typename V, std::size_t I>
V random_alternative(Random& random) {
  std::variant_alternative_t<I, V> message;
  RandomFill fill(random);
  fill(0, message);
  return V(std::move(message));
}

/// Calls f.template operator()<I>() for every call of the protocol.
template <typename F, std::size_t... I>
void for_each_call(F f, std::index_sequence<I...>) {
  (f.template operator()<I>(), ...);
}
template <typename F>
void for_each_call(F f) {
  for_each_call(std::move(f), std::make_index_sequence<std::variant_size_v<Request>>());
}

}  // namespace fjord::rpc::test
