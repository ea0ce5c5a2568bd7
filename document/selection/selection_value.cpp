#include "selection_value.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <optional>
#include <vector>

namespace fjord::selection {
namespace {

/// Limit of the recursion, above the depth of values that the format allows; reached only by malformed values.
constexpr int kDepthMax = 40;
/// Steps of one element of a collection, or of one comparison.
constexpr std::uint64_t kElementSteps = 8;

bool is_several(const Value& value) { return value.kind == Value::Kind::Collection || value.kind == Value::Kind::Each; }
bool is_number(const Value& value) { return value.kind == Value::Kind::Integer || value.kind == Value::Kind::Double; }

/// Compares exactly, also if a double cannot represent the integer.
std::partial_ordering order_of(std::int64_t integer, double number) {
  if (std::isnan(number)) return std::partial_ordering::unordered;
  if (number >= 0x1p63) return std::partial_ordering::less;
  if (number < -0x1p63) return std::partial_ordering::greater;
  const double whole = std::trunc(number);
  const auto as_integer = static_cast<std::int64_t>(whole);
  if (integer != as_integer) return integer <=> as_integer;
  return whole <=> number;
}

std::partial_ordering order_of(const Value& left, const Value& right) {
  const bool is_left_integer = left.kind == Value::Kind::Integer;
  const bool is_right_integer = right.kind == Value::Kind::Integer;
  if (is_left_integer && is_right_integer) return left.integer <=> right.integer;
  if (is_left_integer) return order_of(left.integer, right.number);
  if (is_right_integer) return 0 <=> order_of(right.integer, left.number);
  return left.number <=> right.number;
}

Match holds(CompareOp op, std::partial_ordering order) {
  switch (op) {
    case CompareOp::Equal:
    case CompareOp::Glob:
      return to_match(order == 0);
    case CompareOp::NotEqual:
      return to_match(order != 0);
    case CompareOp::Less:
      return to_match(order < 0);
    case CompareOp::LessOrEqual:
      return to_match(order <= 0);
    case CompareOp::Greater:
      return to_match(order > 0);
    case CompareOp::GreaterOrEqual:
      return to_match(order >= 0);
    case CompareOp::Regex:
      break;
  }
  return Match::Invalid;
}

/// The operator after exchanging its sides.
CompareOp mirror(CompareOp op) {
  switch (op) {
    case CompareOp::Less:
      return CompareOp::Greater;
    case CompareOp::LessOrEqual:
      return CompareOp::GreaterOrEqual;
    case CompareOp::Greater:
      return CompareOp::Less;
    case CompareOp::GreaterOrEqual:
      return CompareOp::LessOrEqual;
    default:
      return op;
  }
}

/// Combines results: True if one is, else Invalid if one is, else False.
class AnyOf {
 public:
  /// Returns false once the result is decided.
  bool add(Match match) {
    if (match == Match::True || (match == Match::Invalid && result_ == Match::False)) result_ = match;
    return result_ != Match::True;
  }
  Match result() const { return result_; }

 private:
  Match result_ = Match::False;
};

/// The slice that represents an element when whole collections are compared: its key, or an array's element.
const FieldSlice& main_slice(const ElementCursor& at, TypeTag tag) {
  return tag == TypeTag::Array ? at.value() : at.key();
}

/// The value of `several` for the current element of `at`; may again be several values.
Value element_of(const Value& several, const ElementCursor& at, Budget& budget) {
  std::span<const PathStep> steps = several.steps;
  if (several.kind != Value::Kind::Each || several.slice.tag != TypeTag::Map) {
    return resolve(main_slice(at, several.slice.tag), steps, budget);
  }
  // `.key` and `.value` select the keys or values of a map; other members are members of its values.
  const bool is_key = steps[0].name == "key";
  const bool is_side = is_key || steps[0].name == "value";
  if (is_side) steps = steps.subspan(1);
  return resolve(is_key ? at.key() : at.value(), steps, budget);
}

/// Calls `visit(value)` for each set value until it returns false, or the budget is exceeded.
template <typename Visit>
bool for_each(const Value& value, Budget& budget, const Visit& visit, int depth = 0) {
  if (depth > kDepthMax) return true;
  if (!is_several(value)) return value.kind == Value::Kind::Null || visit(value);
  for (ElementCursor at(value.slice); at.next();) {
    if (!budget.spend(kElementSteps) || !for_each(element_of(value, at, budget), budget, visit, depth + 1))
      return false;
  }
  return true;
}

/// Walks the same values as for_each() one by one, to compare two lists in parallel.
class ValueCursor {
 public:
  ValueCursor(const Value& several, Budget& budget) : budget_(budget) { enter(several); }

  /// Returns the next value that is set; nothing at the end, or if the budget is exceeded.
  std::optional<Value> next() {
    while (!levels_.empty() && budget_.spend(kElementSteps)) {
      Level& level = levels_.back();
      if (!level.at.next()) {
        levels_.pop_back();
        continue;
      }
      const Value value = element_of(level.several, level.at, budget_);
      if (!is_several(value)) {
        if (value.kind != Value::Kind::Null) return value;
      } else if (levels_.size() <= static_cast<std::size_t>(kDepthMax)) {
        enter(value);
      }
    }
    return std::nullopt;
  }

 private:
  struct Level {
    Value several;
    ElementCursor at;
  };

  void enter(const Value& several) { levels_.push_back({several, ElementCursor(several.slice)}); }

  Budget& budget_;
  std::vector<Level> levels_;
};

bool has_any(const Value& value, Budget& budget) {
  return !for_each(value, budget, [](const Value&) { return false; });
}

Match compare_slices(const FieldSlice& left, CompareOp op, const FieldSlice& right, int depth, Budget& budget);

/// Equality: both have the same number of elements, and all are equal. Order: the same number, and each pair is in
/// order.
Match compare_whole(const FieldSlice& left, CompareOp op, const FieldSlice& right, int depth, Budget& budget) {
  if (left.tag != right.tag || budget.is_exceeded()) return Match::Invalid;
  if (op == CompareOp::NotEqual) return negate(compare_whole(left, CompareOp::Equal, right, depth, budget));
  if (left.tag == TypeTag::Struct) {
    FieldCursor a(left.bytes);
    FieldCursor b(right.bytes);
    for (;;) {
      const bool has_a = a.next();
      const bool has_b = b.next();
      if (!has_a || !has_b) return to_match(has_a == has_b);
      if (a.field_id() != b.field_id()) return Match::False;
      if (const Match match = compare_slices(a.slice(), op, b.slice(), depth + 1, budget); match != Match::True)
        return match;
    }
  }
  ElementCursor a(left);
  ElementCursor b(right);
  if (a.count() != b.count()) return Match::False;
  while (a.next() && b.next()) {
    if (left.tag != TypeTag::Array) {
      if (const Match match = compare_slices(a.key(), op, b.key(), depth + 1, budget); match != Match::True)
        return match;
    }
    if (const Match match = compare_slices(a.value(), op, b.value(), depth + 1, budget); match != Match::True)
      return match;
  }
  return Match::True;
}

/// Compares a bucket with a number, the raw form of another bucket. They are equal if the other contains it.
Match compare_bucket(const Value& bucket, CompareOp op, const Value& other) {
  if (op != CompareOp::Equal && op != CompareOp::NotEqual && op != CompareOp::Glob) return Match::Invalid;
  if (other.kind != Value::Kind::Integer && other.kind != Value::Kind::Bucket) return Match::Invalid;
  const BucketId container(static_cast<std::uint64_t>(other.integer));
  const BucketId inner(static_cast<std::uint64_t>(bucket.integer));
  return to_match((container.is_valid() && container.contains(inner)) == (op != CompareOp::NotEqual));
}

Match compare_texts(std::string_view left, CompareOp op, const Value& right, Budget& budget) {
  if (right.pattern != nullptr) return to_match(right.pattern->matches(left, budget));
  if (op == CompareOp::Glob) return to_match(glob_matches(left, right.string, budget));
  if (!budget.spend(steps_of_bytes(std::min(left.size(), right.string.size())))) return Match::Invalid;
  return holds(op, left.compare(right.string) <=> 0);
}

Match compare_single(const Value& left, CompareOp op, const Value& right, Budget& budget) {
  if (!budget.spend(kElementSteps)) return Match::Invalid;
  if (left.kind == Value::Kind::Absent && right.kind == Value::Kind::Null) {
    return compare_single(right, op, right, budget);
  }
  if (left.kind == Value::Kind::Null && right.kind == Value::Kind::Absent) {
    return compare_single(left, op, left, budget);
  }
  if (left.kind == Value::Kind::Absent || right.kind == Value::Kind::Absent) return Match::Invalid;
  if (left.kind == Value::Kind::Null || right.kind == Value::Kind::Null) {
    const bool both = left.kind == right.kind;
    if (op == CompareOp::Equal || op == CompareOp::Glob) return to_match(both);
    return op == CompareOp::NotEqual ? to_match(!both) : Match::Invalid;
  }
  if (is_number(left) && is_number(right)) return holds(op, order_of(left, right));
  if (left.kind == Value::Kind::String && right.kind == Value::Kind::String) {
    return compare_texts(left.string, op, right, budget);
  }
  if (left.kind == Value::Kind::Bucket) return compare_bucket(left, op, right);
  if (right.kind == Value::Kind::Bucket) return compare_bucket(right, op, left);
  return Match::Invalid;
}

Match compare_slices(const FieldSlice& left, CompareOp op, const FieldSlice& right, int depth, Budget& budget) {
  if (depth > kDepthMax || !budget.spend(kElementSteps)) return Match::Invalid;
  const bool left_whole = is_collection(left.tag) || left.tag == TypeTag::Struct;
  const bool right_whole = is_collection(right.tag) || right.tag == TypeTag::Struct;
  if (left_whole && right_whole) return compare_whole(left, op, right, depth, budget);
  return compare_single(resolve(left, {}, budget), op, resolve(right, {}, budget), budget);
}

/// Equality: both lists have the same number of values, and all are equal. Order: the same number, and each pair of
/// values is in order. A list without set values counts as null.
Match compare_lists(const Value& left, CompareOp op, const Value& right, Budget& budget) {
  if (op == CompareOp::NotEqual) return negate(compare_lists(left, CompareOp::Equal, right, budget));
  ValueCursor a(left, budget);
  ValueCursor b(right, budget);
  std::optional<Value> one = a.next();
  std::optional<Value> other = b.next();
  if (!one || !other) {
    return compare_single(one.value_or(Value::null()), op, other.value_or(Value::null()), budget);
  }
  for (; one && other; one = a.next(), other = b.next()) {
    if (const Match match = compare(*one, op, *other, budget); match != Match::True) return match;
  }
  return to_match(one.has_value() == other.has_value());
}

Value value_of(const FieldSlice& slice) {
  switch (slice.tag) {
    case TypeTag::None:
      return Value::null();
    case TypeTag::String:
    case TypeTag::Raw:
      return Value::of_string(slice.as_string_view());
    case TypeTag::Int:
    case TypeTag::Long:
    case TypeTag::Bool:
    case TypeTag::Byte:
      return Value::of(slice.as_int64());
    case TypeTag::Float:
    case TypeTag::Double:
      return Value::of_double(slice.as_double());
    case TypeTag::Array:
    case TypeTag::WeightedSet:
    case TypeTag::Map: {
      if (ElementCursor(slice).count() == 0) return Value::null();
      Value value;
      value.kind = Value::Kind::Collection;
      value.slice = slice;
      return value;
    }
    case TypeTag::Struct: {
      if (slice.bytes.empty()) return Value::null();
      Value value;
      value.kind = Value::Kind::Struct;
      value.slice = slice;
      return value;
    }
  }
  return Value::invalid();
}

bool is_key(const FieldSlice& slice, const PathStep& step) {
  if (slice.is_integer()) return step.is_number && slice.as_int64() == step.number;
  return slice.as_string_view() == step.name && (slice.tag == TypeTag::String || slice.tag == TypeTag::Raw);
}

Value resolve_element(const FieldSlice& slice, std::span<const PathStep> steps, Budget& budget) {
  const PathStep& step = steps[0];
  const bool by_index = step.kind == PathStep::Kind::Index;
  if (by_index ? slice.tag != TypeTag::Array : slice.tag != TypeTag::Map && slice.tag != TypeTag::WeightedSet) {
    return Value::invalid();
  }
  for (ElementCursor at(slice); at.next();) {
    if (!budget.spend(kElementSteps)) return Value::invalid();
    const bool is_it = by_index ? static_cast<std::int64_t>(at.index()) == step.number : is_key(at.key(), step);
    if (is_it) return resolve(at.value(), steps.subspan(1), budget);
  }
  return Value::null();
}

}  // namespace

std::string_view to_string(CompareOp op) {
  constexpr std::string_view kNames[] = {"==", "!=", "<", "<=", ">", ">=", "=", "=~"};
  return kNames[static_cast<std::size_t>(op)];
}

Value Value::null() {
  Value value;
  value.kind = Kind::Null;
  return value;
}

Value Value::absent() {
  Value value;
  value.kind = Kind::Absent;
  return value;
}

Value Value::of(std::int64_t integer) {
  Value value;
  value.kind = Kind::Integer;
  value.integer = integer;
  return value;
}

Value Value::of_double(double number) {
  Value value;
  value.kind = Kind::Double;
  value.number = number;
  return value;
}

Value Value::of_string(std::string_view string) {
  Value value;
  value.kind = Kind::String;
  value.string = string;
  return value;
}

Value Value::of_bucket(BucketId bucket) {
  Value value;
  value.kind = Kind::Bucket;
  value.integer = static_cast<std::int64_t>(bucket.raw());
  return value;
}

Value resolve(const FieldSlice& slice, std::span<const PathStep> steps, Budget& budget) {
  if (steps.empty()) return value_of(slice);
  if (steps[0].kind != PathStep::Kind::Member) return resolve_element(slice, steps, budget);
  if (slice.tag == TypeTag::Struct) {
    const auto member = slice.member(steps[0].member_id);
    return member ? resolve(*member, steps.subspan(1), budget) : Value::null();
  }
  if (slice.tag != TypeTag::Array && slice.tag != TypeTag::Map) return Value::invalid();
  if (ElementCursor(slice).count() == 0) return Value::null();
  Value value;
  value.kind = Value::Kind::Each;
  value.slice = slice;
  value.steps = steps;
  return value;
}

Match compare(const Value& left, CompareOp op, const Value& right, Budget& budget) {
  if (left.kind == Value::Kind::Invalid || right.kind == Value::Kind::Invalid) return Match::Invalid;
  const auto is_whole = [](const Value& v) {
    return v.kind == Value::Kind::Collection || v.kind == Value::Kind::Struct;
  };
  if (is_whole(left) && is_whole(right)) return compare_slices(left.slice, op, right.slice, 0, budget);
  if (is_several(left) && is_several(right)) return compare_lists(left, op, right, budget);
  if (is_several(left)) {
    if (right.kind == Value::Kind::Null || !has_any(left, budget)) {
      return compare_single(has_any(left, budget) ? Value::of(0) : Value::null(), op, right, budget);
    }
    AnyOf any;
    for_each(left, budget, [&](const Value& one) { return any.add(compare(one, op, right, budget)); });
    return any.result();
  }
  if (is_several(right) && op != CompareOp::Glob) return compare(right, mirror(op), left, budget);
  if (is_several(right)) {
    AnyOf any;
    for_each(right, budget, [&](const Value& one) { return any.add(compare(left, op, one, budget)); });
    return has_any(right, budget) ? any.result() : compare_single(left, op, Value::null(), budget);
  }
  return compare_single(left, op, right, budget);
}

Match compare(std::int64_t left, CompareOp op, std::int64_t right) { return holds(op, left <=> right); }

Match negate(Match match) {
  if (match == Match::Invalid) return match;
  return match == Match::True ? Match::False : Match::True;
}

Match to_match(bool value) { return value ? Match::True : Match::False; }

}  // namespace fjord::selection
