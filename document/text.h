#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fjord {

/// Length of the longest prefix of `text` that is well-formed UTF-8, in bytes.
std::size_t utf8_prefix(std::string_view text);
inline bool is_utf8(std::string_view text) { return utf8_prefix(text) == text.size(); }

/// `text` in quotes for an error message: shortened, and with everything but printable ASCII as \xHH.
std::string quoted(std::string_view text, std::size_t bytes_max = 80);

}  // namespace fjord
