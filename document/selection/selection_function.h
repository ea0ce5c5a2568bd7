#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "selection_scratch.h"
#include "selection_value.h"

namespace fjord::selection {

enum class ArithmeticOp : std::uint8_t { Add, Subtract, Multiply, Divide, Remainder };
enum class Function : std::uint8_t { Lowercase, Hash, Abs };

/// "+", "-", ...
std::string_view to_string(ArithmeticOp op);
/// "lowercase", ...
std::string_view to_string(Function function);

/// Integers yield an integer, except in a division and if the result is out of range. Adding strings concatenates them.
/// Invalid for other values, and for a remainder of a number that is not an integer or by 0.
Value calculate(const Value& left, ArithmeticOp op, const Value& right, Scratch& scratch);

/// Invalid for a value that the function does not accept.
Value call(Function function, const Value& value, Scratch& scratch);

}  // namespace fjord::selection
