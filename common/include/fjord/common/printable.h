#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fjord {

/// Returns true for a text that a terminal shows in one line as it is: UTF-8 without control characters, line
/// separators and characters that change the direction of writing.
bool is_printable(std::string_view text);

/// Returns the text with all other characters escaped: \n, \r, \t, \x1b for a byte, \u{2028} for a character. A text
/// that becomes longer than `bytes_max` is cut at a character, and the number of bytes that are missing stands at its
/// end.
std::string to_printable(std::string_view text, std::size_t bytes_max = std::string::npos);

}  // namespace fjord
