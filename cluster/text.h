#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fjord/common/result.h"

namespace fjord::cluster_text {

/// Removes the next token from a state string and returns it; nothing at the end. Any white space separates tokens.
std::optional<std::string_view> next_token(std::string_view& text);

/// `text` with spaces, control characters, backslashes and bytes above 0x7e written as \t \n \r \f \\ or \xHH.
std::string escape(std::string_view text);
/// Reverses escape(). Errors: InvalidArgument.
Result<std::string> unescape(std::string_view text);

/// Returns the whole text as an unsigned decimal number; nothing if it is none.
template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Returns the whole text as an unsigned hexadecimal number; nothing if it is none.
inline std::optional<std::uint64_t> parse_hex(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Returns the whole text as a finite number that is not negative; nothing if it is none.
std::optional<double> parse_amount(std::string_view text);

}  // namespace fjord::cluster_text
