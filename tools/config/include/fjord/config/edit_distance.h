#pragma once

#include <cstddef>
#include <string_view>

namespace fjord::config {

/// Returns the Levenshtein distance: the fewest changed, added or removed letters that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace fjord::config
