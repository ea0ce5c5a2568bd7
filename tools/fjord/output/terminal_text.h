#pragma once

#include <string>
#include <string_view>

namespace fjord::cli {

/// Returns the text with the control characters that a terminal would obey, except tabs and ends of lines, as \u001b or
/// \u009b: texts of documents may have been written to hide lines or to change the terminal. A JSON text stays the same
/// value.
std::string terminal_text(std::string_view text);

}  // namespace fjord::cli
