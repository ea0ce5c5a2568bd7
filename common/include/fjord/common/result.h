#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "fjord/common/check.h"
#include "fjord/common/status.h"

namespace fjord {

/// A value, or the Status of the error. The members are those of std::expected<T, Status>.
template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit like std::expected
  Result(Status error) : state_(std::in_place_index<1>, std::move(error)) {  // NOLINT
    FJORD_CHECK(!std::get<1>(state_).is_ok());
  }

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(checked()); }
  T& operator*() & { return checked(); }
  const T& operator*() const& { return const_cast<Result*>(this)->checked(); }
  T&& operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &const_cast<Result*>(this)->checked(); }

  const Status& error() const { return std::get<1>(state_); }
  /// Returns OK if there is a value, else the error.
  Status status() const { return has_value() ? Status::ok() : error(); }

 private:
  T& checked() {
    if (!has_value()) check_failed(__FILE__, __LINE__, "Result has a value", error().to_string());
    return std::get<0>(state_);
  }

  std::variant<T, Status> state_;
};

}  // namespace fjord

/// Returns the error of a Status expression to our caller.
#define FJORD_TRY(expression)                                         \
  do {                                                                \
    if (::fjord::Status fjord_status = (expression); !fjord_status) { \
      return fjord_status;                                            \
    }                                                                 \
  } while (false)

#define FJORD_CONCAT_INNER(a, b) a##b
#define FJORD_CONCAT(a, b) FJORD_CONCAT_INNER(a, b)

/// Declares `declaration` with the value of a Result expression, or returns its error to our caller.
#define FJORD_TRY_ASSIGN(declaration, expression) \
  FJORD_TRY_ASSIGN_IMPL(FJORD_CONCAT(fjord_result_, __LINE__), declaration, expression)
#define FJORD_TRY_ASSIGN_IMPL(name, declaration, expression) \
  auto name = (expression);                                  \
  if (!name) return name.error();                            \
  declaration = std::move(*name)
