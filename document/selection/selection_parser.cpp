#include "selection_parser.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "selection_lexer.h"
#include "selection_path.h"

namespace fjord::selection {
namespace {

std::optional<CompareOp> compare_op_of(const Token& token) {
  for (const CompareOp op : {CompareOp::Equal, CompareOp::NotEqual, CompareOp::Less, CompareOp::LessOrEqual,
                             CompareOp::Greater, CompareOp::GreaterOrEqual, CompareOp::Glob, CompareOp::Regex}) {
    if (token.is_symbol(to_string(op))) return op;
  }
  return std::nullopt;
}

std::optional<ArithmeticOp> arithmetic_op_of(const Token& token, std::span<const ArithmeticOp> ops) {
  for (const ArithmeticOp op : ops) {
    if (token.is_symbol(to_string(op))) return op;
  }
  return std::nullopt;
}

std::optional<Function> function_of(const Token& token) {
  for (const Function function : {Function::Lowercase, Function::Hash, Function::Abs}) {
    if (token.is_keyword(to_string(function))) return function;
  }
  return std::nullopt;
}

/// An operand where either a value or a condition may stand. A field alone, or true and false, can become either.
struct Operand {
  enum class Kind { Condition, Value, Field, Bool };

  std::size_t column = 1;
  Kind kind = Kind::Condition;
  std::unique_ptr<Condition> condition;
  std::unique_ptr<Expression> value;
  bool bool_value = false;
  int bool_parentheses = 0;
};

class Parser {
 public:
  /// `type`: the type of fields that are named without a type; may be null.
  Parser(std::string_view text, const DocumentTypeRepo& repo, const DocumentType* type)
      : lexer_(text), repo_(repo), type_(type) {}

  Result<std::unique_ptr<Condition>> parse() {
    FJORD_TRY(lexer_.advance());
    if (current().kind == TokenKind::End) return make_constant(true);
    FJORD_TRY_ASSIGN(Operand operand, parse_or());
    if (current().kind != TokenKind::End) return unexpected(expected_after(operand));
    for (Regex* const regex : regexes_) regex->share_memory(regexes_.size());
    return to_condition(std::move(operand));
  }

  Result<std::unique_ptr<Expression>> parse_value() {
    FJORD_TRY(lexer_.advance());
    FJORD_TRY_ASSIGN(Operand operand, parse_sum());
    if (current().kind != TokenKind::End) {
      return unexpected(operand.kind == Operand::Kind::Condition ? "the end" : "'+', '-', '*', '/', '%' or the end");
    }
    return to_value(std::move(operand));
  }

 private:
  /// Counts the nesting depth of parentheses and negations.
  struct Nesting {
    explicit Nesting(int& depth) : depth_(++depth) {}
    ~Nesting() { --depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    int& depth_;
  };

  const Token& current() const { return lexer_.current(); }
  Status unexpected(std::string_view expected) const { return unexpected_token(current(), expected); }
  static std::string_view expected_after(const Operand& operand) {
    const bool is_value = operand.kind != Operand::Kind::Condition;
    return is_value ? "a comparison, '+', '-', '*', '/', '%', 'and', 'or' or the end" : "'and', 'or' or the end";
  }
  Status check_depth() const {
    if (depth_ <= Selection::kDepthMax) return Status::ok();
    return error_at(current().column, fmt::format("nested deeper than {} levels", Selection::kDepthMax));
  }

  Result<std::unique_ptr<Condition>> to_condition(Operand operand) const {
    switch (operand.kind) {
      case Operand::Kind::Condition:
        return std::move(operand.condition);
      case Operand::Kind::Field:
        return make_existence(std::move(operand.value));
      case Operand::Kind::Bool: {
        std::unique_ptr<Condition> constant = make_constant(operand.bool_value);
        for (int i = 0; i < operand.bool_parentheses; ++i) constant = make_parentheses(std::move(constant));
        return constant;
      }
      case Operand::Kind::Value:
        break;
    }
    return error_at(operand.column,
                    "a value is not a condition: expected a document type, a field, true, false or a comparison");
  }

  Result<std::unique_ptr<Expression>> to_value(Operand operand) const {
    if (operand.kind == Operand::Kind::Condition) {
      return error_at(operand.column,
                      "a condition or document type is not a value: expected a literal, a field or a part of the id");
    }
    if (operand.kind != Operand::Kind::Bool) return std::move(operand.value);
    std::unique_ptr<Expression> literal = make_bool_literal(operand.bool_value);
    for (int i = 0; i < operand.bool_parentheses; ++i) literal = make_parentheses(std::move(literal));
    return literal;
  }

  static Operand condition_at(std::size_t column, std::unique_ptr<Condition> condition) {
    Operand operand;
    operand.column = column;
    operand.condition = std::move(condition);
    return operand;
  }
  static Operand value_at(std::size_t column, std::unique_ptr<Expression> value,
                          Operand::Kind kind = Operand::Kind::Value) {
    Operand operand;
    operand.column = column;
    operand.kind = kind;
    operand.value = std::move(value);
    return operand;
  }

  Result<Operand> parse_or() { return parse_junction("or", &Parser::parse_and, make_or); }
  Result<Operand> parse_and() { return parse_junction("and", &Parser::parse_not, make_and); }

  template <typename Part, typename Make>
  Result<Operand> parse_junction(std::string_view keyword, Part parse_part, Make make) {
    FJORD_TRY_ASSIGN(Operand first, (this->*parse_part)());
    if (!current().is_keyword(keyword)) return first;
    const std::size_t column = first.column;
    std::vector<std::unique_ptr<Condition>> parts;
    FJORD_TRY_ASSIGN(std::unique_ptr<Condition> first_condition, to_condition(std::move(first)));
    parts.push_back(std::move(first_condition));
    while (current().is_keyword(keyword)) {
      FJORD_TRY(lexer_.advance());
      FJORD_TRY_ASSIGN(Operand next, (this->*parse_part)());
      FJORD_TRY_ASSIGN(std::unique_ptr<Condition> condition, to_condition(std::move(next)));
      parts.push_back(std::move(condition));
    }
    return condition_at(column, make(std::move(parts)));
  }

  Result<Operand> parse_not() {
    if (!current().is_keyword("not")) return parse_comparison();
    const Nesting nesting(depth_);
    FJORD_TRY(check_depth());
    const std::size_t column = current().column;
    FJORD_TRY(lexer_.advance());
    FJORD_TRY_ASSIGN(Operand inner, parse_not());
    FJORD_TRY_ASSIGN(std::unique_ptr<Condition> condition, to_condition(std::move(inner)));
    return condition_at(column, make_not(std::move(condition)));
  }

  Result<Operand> parse_comparison() {
    FJORD_TRY_ASSIGN(Operand left, parse_sum());
    const std::optional<CompareOp> op = compare_op_of(current());
    if (!op) return left;
    if (left.kind == Operand::Kind::Condition) return unexpected(expected_after(left));
    const std::size_t column = left.column;
    FJORD_TRY(lexer_.advance());
    is_compared_with_ = true;
    FJORD_TRY_ASSIGN(Operand right, parse_sum());
    is_compared_with_ = false;
    const std::size_t right_column = right.column;
    FJORD_TRY_ASSIGN(std::unique_ptr<Expression> left_value, to_value(std::move(left)));
    FJORD_TRY_ASSIGN(std::unique_ptr<Expression> right_value, to_value(std::move(right)));
    FJORD_TRY_ASSIGN(std::unique_ptr<const Pattern> pattern, compile_pattern(*op, *right_value, right_column));
    return condition_at(column,
                        make_comparison(std::move(left_value), *op, std::move(right_value), std::move(pattern)));
  }

  /// Null if the operator takes no pattern, or if the pattern depends on the document.
  Result<std::unique_ptr<const Pattern>> compile_pattern(CompareOp op, const Expression& right, std::size_t column) {
    const bool is_pattern = op == CompareOp::Glob || op == CompareOp::Regex;
    std::optional<ConstantValue> constant;
    if (is_pattern && right.is_constant()) constant.emplace(right);
    const bool is_text = constant && constant->value().kind == Value::Kind::String;
    if (op == CompareOp::Glob && is_text) {
      auto glob = Pattern::glob(constant->value().string);
      if (!glob) return error_at(column, glob.error().message());
      return glob;
    }
    if (op != CompareOp::Regex) return std::unique_ptr<const Pattern>();
    if (!is_text) return error_at(column, "expected a regular expression in quotes after '=~'");
    if (regexes_.size() == Selection::kRegexesMax) {
      return error_at(column, fmt::format("more than {} regular expressions", Selection::kRegexesMax));
    }
    auto regex = Regex::compile(constant->value().string);
    if (!regex) return error_at(column, regex.error().message());
    regexes_.push_back(regex->get());
    instructions_max_ = std::max(instructions_max_, (*regex)->instructions());
    if (instructions_max_ * regexes_.size() > kInstructionsMax) {
      return error_at(column, fmt::format("{} regular expressions of up to {} instructions are too large together",
                                          regexes_.size(), instructions_max_));
    }
    return std::unique_ptr<const Pattern>(std::move(*regex));
  }

  Result<Operand> parse_sum() {
    constexpr ArithmeticOp kOps[] = {ArithmeticOp::Add, ArithmeticOp::Subtract};
    return parse_arithmetic(kOps, &Parser::parse_product);
  }
  Result<Operand> parse_product() {
    constexpr ArithmeticOp kOps[] = {ArithmeticOp::Multiply, ArithmeticOp::Divide, ArithmeticOp::Remainder};
    return parse_arithmetic(kOps, &Parser::parse_operand);
  }

  template <typename Part>
  Result<Operand> parse_arithmetic(std::span<const ArithmeticOp> ops, Part parse_part) {
    FJORD_TRY_ASSIGN(Operand first, (this->*parse_part)());
    std::optional<ArithmeticOp> op = arithmetic_op_of(current(), ops);
    if (!op) return first;
    if (first.kind == Operand::Kind::Condition) return unexpected(expected_after(first));
    const std::size_t column = first.column;
    FJORD_TRY_ASSIGN(std::unique_ptr<Expression> first_value, to_value(std::move(first)));
    std::vector<std::pair<ArithmeticOp, std::unique_ptr<Expression>>> rest;
    for (; op; op = arithmetic_op_of(current(), ops)) {
      FJORD_TRY(lexer_.advance());
      FJORD_TRY_ASSIGN(Operand next, (this->*parse_part)());
      FJORD_TRY_ASSIGN(std::unique_ptr<Expression> value, to_value(std::move(next)));
      rest.emplace_back(*op, std::move(value));
    }
    return value_at(column, make_arithmetic(std::move(first_value), std::move(rest)));
  }

  Result<Operand> parse_operand() {
    FJORD_TRY_ASSIGN(Operand operand, parse_primary());
    if (!current().is_symbol(".")) return operand;
    FJORD_TRY(lexer_.advance());
    if (current().kind != TokenKind::Identifier) return unexpected("a name after '.'");
    const Token name = current();
    FJORD_TRY(lexer_.advance());
    return parse_calls(std::move(operand), name);
  }

  /// Parses the calls from the name of the first function on.
  Result<Operand> parse_calls(Operand operand, Token name) {
    const std::size_t column = operand.column;
    FJORD_TRY_ASSIGN(std::unique_ptr<Expression> value, to_value(std::move(operand)));
    std::vector<Function> functions;
    for (;;) {
      const std::optional<Function> function = function_of(name);
      if (!function) return unknown_function(name);
      FJORD_TRY(parse_empty_arguments());
      functions.push_back(*function);
      if (functions.size() > static_cast<std::size_t>(Selection::kDepthMax)) {
        return error_at(name.column, fmt::format("more than {} functions in a row", Selection::kDepthMax));
      }
      if (!current().is_symbol(".")) break;
      FJORD_TRY(lexer_.advance());
      if (current().kind != TokenKind::Identifier) return unexpected("a name after '.'");
      name = current();
      FJORD_TRY(lexer_.advance());
    }
    return value_at(column, make_calls(std::move(value), std::move(functions)));
  }

  Status parse_empty_arguments() {
    if (!current().is_symbol("(")) return unexpected("'('");
    FJORD_TRY(lexer_.advance());
    if (!current().is_symbol(")")) return unexpected("')'");
    return lexer_.advance();
  }

  static Status unknown_function(const Token& token) {
    return error_at(token.column,
                    fmt::format("unknown function {}: expected lowercase, hash or abs", token.describe()));
  }

  Result<Operand> parse_primary() {
    const std::size_t column = current().column;
    if (!current().is_symbol("(") && ++leaves_ > Selection::kLeavesMax) {
      return error_at(column, fmt::format("more than {} literals, fields and names", Selection::kLeavesMax));
    }
    switch (current().kind) {
      case TokenKind::String: {
        std::string text = current().string;
        FJORD_TRY(lexer_.advance());
        return value_at(column, make_literal(Value::of_string({}), std::move(text)));
      }
      case TokenKind::Integer:
      case TokenKind::Float:
        return parse_number(false);
      case TokenKind::Identifier:
        return parse_name();
      case TokenKind::Symbol:
        if (current().is_symbol("(")) return parse_parentheses();
        if (current().is_symbol("-") || current().is_symbol("+")) {
          const bool is_negative = current().is_symbol("-");
          FJORD_TRY(lexer_.advance());
          return parse_number(is_negative);
        }
        break;
      case TokenKind::End:
        break;
    }
    return unexpected("a document type, a field, a literal, a part of the id, 'not' or '('");
  }

  Result<Operand> parse_number(bool is_negative) {
    const Token token = current();
    if (token.kind != TokenKind::Integer && token.kind != TokenKind::Float)
      return unexpected("a number after the sign");
    if (token.needs_minus && !is_negative)
      return error_at(token.column, fmt::format("{} is out of range", token.describe()));
    FJORD_TRY(lexer_.advance());
    if (token.kind == TokenKind::Float) {
      return value_at(token.column, make_literal(Value::of_double(is_negative ? -token.number : token.number), {}));
    }
    // Negates as unsigned, which is defined also for the smallest integer.
    const auto bits = static_cast<std::uint64_t>(token.integer);
    return value_at(token.column,
                    make_literal(Value::of(static_cast<std::int64_t>(is_negative ? 0 - bits : bits)), {}));
  }

  Result<Operand> parse_parentheses() {
    const Nesting nesting(depth_);
    FJORD_TRY(check_depth());
    const std::size_t column = current().column;
    FJORD_TRY(lexer_.advance());
    FJORD_TRY_ASSIGN(Operand inner, parse_or());
    if (!current().is_symbol(")")) return unexpected("')'");
    FJORD_TRY(lexer_.advance());
    inner.column = column;
    switch (inner.kind) {
      case Operand::Kind::Condition:
        inner.condition = make_parentheses(std::move(inner.condition));
        break;
      case Operand::Kind::Bool:
        ++inner.bool_parentheses;
        break;
      default:
        inner.value = make_parentheses(std::move(inner.value));
    }
    return inner;
  }

  Result<Operand> parse_name() {
    const Token name = current();
    if (name.is_keyword("and") || name.is_keyword("or") || name.is_keyword("not")) {
      return unexpected("a document type, a field, a literal or a part of the id");
    }
    FJORD_TRY(lexer_.advance());
    if (current().is_symbol("(")) return parse_function(name);
    if (name.is_keyword("true") || name.is_keyword("false")) {
      Operand operand;
      operand.column = name.column;
      operand.kind = Operand::Kind::Bool;
      operand.bool_value = name.is_keyword("true");
      return operand;
    }
    if (name.is_keyword("null")) return value_at(name.column, make_literal(Value::null(), {}));
    if (name.is_keyword("id")) return parse_id(name.column);

    const DocumentType* type = repo_.find(name.text);
    const bool may_be_type = type != nullptr && (type_ == nullptr || current().is_symbol("."));
    if (!may_be_type && type_ != nullptr && type_->field(name.text) != nullptr) {
      return parse_field(name.column, name, *type_);
    }
    if (type == nullptr && type_ != nullptr) {
      return error_at(name.column, fmt::format("{} is not a field of the document type '{}' and not a document type{}",
                                               name.describe(), type_->name(), hint_of(name)));
    }
    if (type == nullptr) {
      return error_at(name.column, fmt::format("unknown document type {}{}", name.describe(), hint_of(name)));
    }
    if (!current().is_symbol(".")) return condition_at(name.column, make_type_test(type->name(), type->id()));
    return parse_field_of(name, *type);
  }

  /// Is there a field of this name in a type that users made, and not by inheritance?
  bool has_own_field(const DocumentType& type, std::string_view name) const {
    if (type.name().starts_with("fjord_") || type.field(name) == nullptr) return false;
    return std::none_of(repo_.types().begin(), repo_.types().end(), [&](const auto& other) {
      return other.get() != &type && type.is_a(other->name()) && other->field(name) != nullptr;
    });
  }

  /// Says what a name that is no type may have been meant as: a field without its type, or a text without quotes.
  std::string hint_of(const Token& name) const {
    constexpr std::size_t kShown = 3;
    std::vector<std::string> fields;
    for (const auto& type : repo_.types()) {
      if (type_ != nullptr || fields.size() == kShown) break;
      if (has_own_field(*type, name.text)) fields.push_back(fmt::format("{}.{}", type->name(), name.text));
    }
    if (!fields.empty()) return fmt::format("; did you mean {}?", fmt::join(fields, " or "));
    const bool may_be_text = is_compared_with_ && !current().is_symbol(".");
    return may_be_text ? fmt::format("; a text stands in quotes: {}", quote(name.text)) : std::string();
  }

  /// Parses `now()`, or a function with its argument in parentheses: abs(x) is x.abs(). The lexer is at the
  /// parenthesis.
  Result<Operand> parse_function(const Token& name) {
    if (name.is_keyword("now")) {
      FJORD_TRY(parse_empty_arguments());
      return value_at(name.column, make_now());
    }
    const std::optional<Function> function = function_of(name);
    if (!function) {
      return error_at(name.column,
                      fmt::format("unknown function {}: expected now, lowercase, hash or abs", name.describe()));
    }
    FJORD_TRY_ASSIGN(Operand argument, parse_parentheses());
    FJORD_TRY_ASSIGN(std::unique_ptr<Expression> value, to_value(std::move(argument)));
    return value_at(name.column, make_calls(std::move(value), {*function}));
  }

  Result<Operand> parse_id(std::size_t column) {
    if (!current().is_symbol(".")) return value_at(column, make_id(IdPart::Whole));
    FJORD_TRY(lexer_.advance());
    const Token part = current();
    if (part.kind != TokenKind::Identifier) return unexpected("a part of the id");
    FJORD_TRY(lexer_.advance());
    if (current().is_symbol("(")) return parse_calls(value_at(column, make_id(IdPart::Whole)), part);
    const std::optional<IdPart> id_part = find_id_part(part.text);
    if (!id_part) {
      return error_at(part.column,
                      fmt::format("unknown part of the id {}: expected scheme, namespace, type, user, group, "
                                  "specific, gid or bucket",
                                  part.describe()));
    }
    return value_at(column, make_id(*id_part));
  }

  Result<Operand> parse_field_of(const Token& type_name, const DocumentType& type) {
    FJORD_TRY(lexer_.advance());
    const Token name = current();
    if (name.kind != TokenKind::Identifier) return unexpected("the name of a field");
    FJORD_TRY(lexer_.advance());
    if (current().is_symbol("(")) {
      return error_at(name.column, fmt::format("unknown function {} of a document type", name.describe()));
    }
    return parse_field(type_name.column, name, type);
  }

  /// Parses the path after the name of the field.
  Result<Operand> parse_field(std::size_t column, const Token& name, const DocumentType& type) {
    const Field* field = type.field(name.text);
    if (field == nullptr) {
      return error_at(name.column, fmt::format("document type '{}' has no field {}", type.name(), name.describe()));
    }
    PathParser path(lexer_, *field, fmt::format("{}.{}", type.name(), field->name));
    FJORD_TRY_ASSIGN(const std::optional<Token> function, path.parse());
    std::vector<std::uint32_t> ids;
    for (const auto& candidate : repo_.types()) {
      if (candidate->is_a(type.name())) ids.push_back(candidate->id());
    }
    Operand operand =
        value_at(column, make_field(type.name(), std::move(ids), *field, path.take_steps()), Operand::Kind::Field);
    if (function) return parse_calls(std::move(operand), *function);
    return operand;
  }

  Lexer lexer_;
  const DocumentTypeRepo& repo_;
  const DocumentType* type_;
  int depth_ = 0;
  int leaves_ = 0;
  std::vector<Regex*> regexes_;
  std::size_t instructions_max_ = 0;  ///< The largest number of one of them.
  bool is_compared_with_ = false;     ///< The right side of a comparison is parsed.
};

}  // namespace

Result<std::unique_ptr<Condition>> parse(std::string_view text, const DocumentTypeRepo& repo,
                                         const DocumentType* type) {
  return Parser(text, repo, type).parse();
}

Result<std::unique_ptr<Expression>> parse_value(std::string_view text, const DocumentTypeRepo& repo,
                                                const DocumentType& type) {
  return Parser(text, repo, &type).parse_value();
}

}  // namespace fjord::selection
