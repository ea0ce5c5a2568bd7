#pragma once

#include <optional>
#include <string_view>

#include "selection_scratch.h"

namespace fjord::selection {

/// Replaces each character by its simple lower-case mapping of Unicode, independent of neighbouring characters and
/// language. Bytes that are not UTF-8 are kept. Empty if `scratch` has no room.
std::optional<std::string_view> lowercase(std::string_view text, Scratch& scratch);

}  // namespace fjord::selection
