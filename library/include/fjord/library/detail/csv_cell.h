#pragma once

#include <string>
#include <string_view>

namespace fjord {

/// Returns `text` as a cell of a CSV file (RFC 4180), quoted if necessary.
std::string csv_cell(std::string_view text);

}  // namespace fjord
