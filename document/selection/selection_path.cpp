#include "selection_path.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "selection_node.h"
#include "text.h"

namespace fjord::selection {
namespace {

/// The type of the keys in braces after a value of `type`; null if it takes no key.
const DataType* key_type_of(const DataType& type) {
  if (type.tag() == TypeTag::Map) return type.key();
  return type.tag() == TypeTag::WeightedSet ? type.element() : nullptr;
}

/// The smallest and the largest key of an integer type.
std::pair<std::int64_t, std::int64_t> key_range(TypeTag tag) {
  const auto range = [](auto type) {
    using Limits = std::numeric_limits<decltype(type)>;
    return std::pair<std::int64_t, std::int64_t>(Limits::min(), Limits::max());
  };
  if (tag == TypeTag::Bool) return {0, 1};
  if (tag == TypeTag::Byte) return range(std::int8_t{});
  return tag == TypeTag::Int ? range(std::int32_t{}) : range(std::int64_t{});
}

/// The number that a key of type `tag` has in documents, from the key as written. Empty if it is not valid.
std::optional<std::int64_t> key_number(TypeTag tag, std::string_view written) {
  if (tag == TypeTag::Bool && (written == "true" || written == "false")) return written == "true" ? 1 : 0;
  const std::optional<std::int64_t> number = parse_integer(written);
  const auto [smallest, largest] = key_range(tag);
  return number && *number >= smallest && *number <= largest ? number : std::nullopt;
}

}  // namespace

Result<std::optional<Token>> PathParser::parse() {
  while (current().is_symbol(".") || current().is_symbol("[") || current().is_symbol("{")) {
    FJORD_TRY_ASSIGN(std::optional<Token> function, parse_step());
    if (function) return function;
  }
  return std::optional<Token>();
}

Status PathParser::unexpected(std::string_view expected) const { return unexpected_token(current(), expected); }

Status PathParser::misfit(std::size_t column, std::string_view what, std::string_view expected) const {
  return error_at(column, fmt::format("{} is of type {}, which has no {}: expected {}", quoted(written_), type_->name(),
                                      what, expected));
}

/// Reads a step of the path, or returns the name of a function.
Result<std::optional<Token>> PathParser::parse_step() {
  if (!current().is_symbol(".")) {
    FJORD_TRY_ASSIGN(PathStep step, current().is_symbol("[") ? parse_index() : parse_key());
    add(std::move(step));
    return std::optional<Token>();
  }
  FJORD_TRY(lexer_.advance());
  const Token name = current();
  if (name.kind != TokenKind::Identifier) return unexpected("a name after '.'");
  FJORD_TRY(lexer_.advance());
  if (current().is_symbol("(")) return std::optional<Token>(name);
  FJORD_TRY_ASSIGN(PathStep step, parse_member(name));
  add(std::move(step));
  return std::optional<Token>();
}

/// Looks for a member in the structs inside arrays and maps. After a map, `key` and `value` select its keys or values.
Result<PathStep> PathParser::parse_member(const Token& name) const {
  const auto is_side = [&](const DataType& type) {
    return type.tag() == TypeTag::Map && (name.text == "key" || name.text == "value");
  };
  PathStep step;
  step.name = name.text;
  const DataType* type = type_;
  while (!is_side(*type) && (type->tag() == TypeTag::Array || type->tag() == TypeTag::Map)) type = type->element();
  if (is_side(*type)) return step;
  if (type->tag() != TypeTag::Struct) {
    return misfit(name.column, fmt::format("member {}", name.describe()), "a struct, or an array or map of structs");
  }
  const Field* member = type->field(name.text);
  if (member == nullptr) {
    return error_at(name.column, fmt::format("struct '{}' has no field {}", type->name(), name.describe()));
  }
  step.member_id = member->id;
  return step;
}

Result<PathStep> PathParser::parse_index() {
  const std::size_t column = current().column;
  FJORD_TRY(lexer_.advance());
  if (current().is_symbol("$")) return error_at(current().column, "unknown variable in an index: expected a number");
  if (current().kind != TokenKind::Integer || current().integer < 0) return unexpected("an index, a number from 0");
  PathStep step;
  step.kind = PathStep::Kind::Index;
  step.number = current().integer;
  FJORD_TRY(lexer_.advance());
  if (!current().is_symbol("]")) return unexpected("']'");
  FJORD_TRY(lexer_.advance());
  if (type_->tag() != TypeTag::Array) return misfit(column, fmt::format("element [{}]", step.number), "an array");
  return step;
}

Result<PathStep> PathParser::parse_key() {
  PathStep step;
  step.kind = PathStep::Kind::Key;
  const std::size_t column = current().column;
  std::size_t key_column = column + 1;
  const char first = lexer_.peek();
  if (first == '"' || first == '\'') {
    FJORD_TRY(lexer_.advance());
    key_column = current().column;
    step.name = current().string;
    FJORD_TRY(lexer_.advance());
  } else {
    const std::optional<std::string_view> bare = lexer_.bare_key();
    if (!bare) return error_at(column, "'{' without '}'");
    const std::size_t begin = std::min(bare->find_first_not_of(" \t\r\n"), bare->size());
    const std::size_t end = bare->find_last_not_of(" \t\r\n") + 1;
    key_column = column + 1 + begin;
    if (begin >= end) return error_at(key_column, "expected a key");
    step.name = bare->substr(begin, end - begin);
    if (step.name[0] == '$') {
      return error_at(key_column, fmt::format("unknown variable '{}': expected a key", step.name));
    }
    const std::optional<std::int64_t> number = parse_integer(step.name);
    step.is_number = number.has_value();
    step.number = number.value_or(0);
    FJORD_TRY(lexer_.skip(bare->size()));
  }
  if (!current().is_symbol("}")) return unexpected("'}'");
  FJORD_TRY(lexer_.advance());
  if (key_type_of(*type_) == nullptr) return misfit(column, "keys", "a map or a weighted set");
  FJORD_TRY(fit_key(step, key_column));
  return step;
}

Status PathParser::fit_key(PathStep& step, std::size_t column) const {
  const DataType& type = *key_type_of(*type_);
  if (type.tag() == TypeTag::String) return Status::ok();
  const std::optional<std::int64_t> number = key_number(type.tag(), step.name);
  if (!number) {
    return error_at(column, fmt::format("{} cannot be a key of {}: expected a key of type {}", quoted(step.name),
                                        quoted(written_), type.name()));
  }
  step.is_number = true;
  step.number = *number;
  return Status::ok();
}

void PathParser::add(PathStep step) {
  type_ = type_after(*type_, step);
  FJORD_CHECK(type_ != nullptr);
  print_step(step, written_);
  steps_.push_back(std::move(step));
}

}  // namespace fjord::selection
