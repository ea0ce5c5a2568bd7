#pragma once

#include <optional>
#include <string_view>

#include "selection_scratch.h"

namespace fjord::selection {

/// Each character of the UTF-8 text by its simple lower-case mapping of Unicode 14, which does not depend on its
/// neighbours or a language. Bytes that are no UTF-8 stay as they are. Empty if `scratch` has no room.
std::optional<std::string_view> lowercase(std::string_view text, Scratch& scratch);

}  // namespace fjord::selection
