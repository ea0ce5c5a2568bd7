#include "selection_function.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "fjord/common/hash.h"
#include "selection_lowercase.h"

namespace fjord::selection {
namespace {

constexpr std::int64_t kIntegerMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kIntegerMax = std::numeric_limits<std::int64_t>::max();

bool is_number(const Value& value) { return value.kind == Value::Kind::Integer || value.kind == Value::Kind::Double; }
double to_double(const Value& value) {
  return value.kind == Value::Kind::Double ? value.number : static_cast<double>(value.integer);
}

Value join(std::string_view left, std::string_view right, Scratch& scratch) {
  char* const begin = scratch.take(left.size() + right.size());
  if (begin == nullptr) return Value::invalid();
  std::copy(right.begin(), right.end(), std::copy(left.begin(), left.end(), begin));
  return Value::of_string({begin, left.size() + right.size()});
}

Value remainder(std::int64_t left, std::int64_t right) {
  if (right == 0) return Value::invalid();
  return Value::of(right == -1 ? 0 : left % right);  // dividing the smallest integer by -1 overflows
}

/// Empty if the result is out of range or the operator yields no integer.
std::optional<std::int64_t> calculate_integer(std::int64_t left, ArithmeticOp op, std::int64_t right) {
  std::int64_t result = 0;
  bool is_beyond = true;
  if (op == ArithmeticOp::Add) is_beyond = __builtin_add_overflow(left, right, &result);
  if (op == ArithmeticOp::Subtract) is_beyond = __builtin_sub_overflow(left, right, &result);
  if (op == ArithmeticOp::Multiply) is_beyond = __builtin_mul_overflow(left, right, &result);
  return is_beyond ? std::nullopt : std::optional(result);
}

double calculate_double(double left, ArithmeticOp op, double right) {
  switch (op) {
    case ArithmeticOp::Add:
      return left + right;
    case ArithmeticOp::Subtract:
      return left - right;
    case ArithmeticOp::Multiply:
      return left * right;
    default:
      return left / right;
  }
}

/// Equal numbers have the same hash, also if their types differ.
std::optional<std::uint64_t> hash_of(const Value& value) {
  if (value.kind == Value::Kind::String) return hash64(value.string);
  if (!is_number(value)) return std::nullopt;
  std::uint64_t bits = static_cast<std::uint64_t>(value.integer);
  if (value.kind == Value::Kind::Double) {
    const bool is_integer =
        value.number >= -0x1p63 && value.number < 0x1p63 && std::trunc(value.number) == value.number;
    if (is_integer) {
      bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value.number));
    } else {
      std::memcpy(&bits, &value.number, sizeof bits);
    }
  }
  char bytes[sizeof bits];
  for (std::size_t i = 0; i < sizeof bits; ++i) bytes[i] = static_cast<char>(bits >> (8 * i));
  return hash64({bytes, sizeof bytes});
}

Value absolute(const Value& value) {
  if (value.kind == Value::Kind::Double) return Value::of_double(std::fabs(value.number));
  if (value.kind != Value::Kind::Integer) return Value::invalid();
  if (value.integer == kIntegerMin) return Value::of_double(-static_cast<double>(kIntegerMin));
  return Value::of(std::abs(value.integer));
}

}  // namespace

std::string_view to_string(ArithmeticOp op) {
  constexpr std::string_view kNames[] = {"+", "-", "*", "/", "%"};
  return kNames[static_cast<std::size_t>(op)];
}

std::string_view to_string(Function function) {
  constexpr std::string_view kNames[] = {"lowercase", "hash", "abs"};
  return kNames[static_cast<std::size_t>(function)];
}

Value calculate(const Value& left, ArithmeticOp op, const Value& right, Scratch& scratch) {
  if (left.kind == Value::Kind::String && right.kind == Value::Kind::String && op == ArithmeticOp::Add) {
    return join(left.string, right.string, scratch);
  }
  if (!is_number(left) || !is_number(right)) return Value::invalid();
  const bool are_integers = left.kind == Value::Kind::Integer && right.kind == Value::Kind::Integer;
  if (op == ArithmeticOp::Remainder) {
    return are_integers ? remainder(left.integer, right.integer) : Value::invalid();
  }
  if (are_integers) {
    if (const auto integer = calculate_integer(left.integer, op, right.integer)) return Value::of(*integer);
  }
  const double number = calculate_double(to_double(left), op, to_double(right));
  return std::isnan(number) ? Value::invalid() : Value::of_double(number);
}

Value call(Function function, const Value& value, Scratch& scratch) {
  switch (function) {
    case Function::Lowercase: {
      if (value.kind != Value::Kind::String) return Value::invalid();
      const auto text = lowercase(value.string, scratch);
      return text ? Value::of_string(*text) : Value::invalid();
    }
    case Function::Hash: {
      if (!scratch.budget().spend(steps_of_bytes(value.string.size()))) return Value::invalid();
      const auto hash = hash_of(value);
      return hash ? Value::of(static_cast<std::int64_t>(*hash & static_cast<std::uint64_t>(kIntegerMax)))
                  : Value::invalid();
    }
    case Function::Abs:
      return absolute(value);
  }
  return Value::invalid();
}

}  // namespace fjord::selection
