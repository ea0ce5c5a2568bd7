#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/document/document.h"
#include "fjord/document/selection.h"
#include "selection_function.h"
#include "selection_id.h"
#include "selection_limits.h"
#include "selection_pattern.h"
#include "selection_scratch.h"
#include "selection_value.h"

namespace fjord::selection {

/// The document that a selection is evaluated on. Without a view only its id and type are known.
struct Context {
  std::string_view id;
  std::uint32_t type_id = 0;  ///< 0: unknown.
  const DocumentView* view = nullptr;
  std::optional<std::int64_t> now;  ///< Seconds since 1970.
  Scratch& scratch;
};

/// Inputs that a node needs for its evaluation besides the header of the document.
struct Needs {
  bool body = false;
  bool now = false;

  friend Needs operator|(Needs a, Needs b) { return {a.body || b.body, a.now || b.now}; }
};

/// Static kind of an expression's values.
enum class ValueKind : std::uint8_t {
  Any,
  Integer,  ///< An integer, or no value.
  Number,
  String,
  Bool,
  Several,  ///< No single value: elements of a collection, a struct, a bucket, raw bytes.
};

/// Output of the nodes' print().
struct Printer {
  std::string text;
  /// Prints parentheses around each operation and nowhere else, to show how a text was parsed.
  bool is_explicit = false;
};

using TypeLimits = Limits<TypeSet>;
using BucketLimits = Limits<BucketSet>;

/// A node of the tree that yields a value.
class Expression {
 public:
  virtual ~Expression() = default;
  virtual Value evaluate(const Context& context) const = 0;
  /// The value if it is an integer that is available without making a Value. If empty, evaluate() returns the value.
  virtual std::optional<std::int64_t> integer(const Context&) const { return std::nullopt; }
  virtual void print(Printer& out) const = 0;
  /// The types for whose documents the value can be other than Invalid.
  virtual TypeSet types() const { return TypeSet::all(); }
  virtual Needs needs() const { return {}; }
  /// True if the value is the same for all documents at all times.
  virtual bool is_constant() const { return false; }
  /// The part of the id that this expression stands for, if any.
  virtual std::optional<IdPart> id_part() const { return std::nullopt; }
  virtual ValueKind kind() const { return ValueKind::Any; }
};

/// A node of the tree that is true or false.
class Condition {
 public:
  virtual ~Condition() = default;
  virtual Match evaluate(const Context& context) const = 0;
  virtual void print(Printer& out) const = 0;
  /// The types of the documents that can make it true, and of those that can make it false.
  virtual TypeLimits types() const { return {}; }
  /// The buckets of the documents that can make it true, and of those that can make it false.
  virtual BucketLimits buckets() const { return {}; }
  virtual Needs needs() const { return {}; }
  /// The result for every document, if it is always the same.
  virtual std::optional<Match> constant() const { return std::nullopt; }
};

/// The value of a constant expression; owns the bytes that the value refers to.
class ConstantValue {
 public:
  explicit ConstantValue(const Expression& expression);
  ConstantValue(const ConstantValue&) = delete;
  ConstantValue& operator=(const ConstantValue&) = delete;

  const Value& value() const { return value_; }
  Value& value() { return value_; }

 private:
  Value value_;
  std::string string_;
};

/// The type that a step leads to, for one element of a collection. Null if the step does not fit the type.
const DataType* type_after(const DataType& type, const PathStep& step);
/// Adds the canonical text of a step.
void print_step(const PathStep& step, std::string& out);

std::unique_ptr<Expression> make_literal(Value value, std::string string);
std::unique_ptr<Expression> make_bool_literal(bool value);
std::unique_ptr<Expression> make_id(IdPart part);
std::unique_ptr<Expression> make_now();
/// `type_ids`: ids of the type and of the types that inherit it. `steps` fit the field's type.
std::unique_ptr<Expression> make_field(std::string type_name, std::vector<std::uint32_t> type_ids, Field field,
                                       std::vector<PathStep> steps);
std::unique_ptr<Expression> make_parentheses(std::unique_ptr<Expression> inner);
/// The functions are applied in this order.
std::unique_ptr<Expression> make_calls(std::unique_ptr<Expression> inner, std::vector<Function> functions);
/// The operators are applied from left to right.
std::unique_ptr<Expression> make_arithmetic(std::unique_ptr<Expression> first,
                                            std::vector<std::pair<ArithmeticOp, std::unique_ptr<Expression>>> rest);

std::unique_ptr<Condition> make_constant(bool value);
std::unique_ptr<Condition> make_type_test(std::string name, std::uint32_t type_id);
/// Returns a condition that is true if the field is set.
std::unique_ptr<Condition> make_existence(std::unique_ptr<Expression> field);
/// `pattern`: set for Regex, and for Glob if the right side is a constant string.
std::unique_ptr<Condition> make_comparison(std::unique_ptr<Expression> left, CompareOp op,
                                           std::unique_ptr<Expression> right,
                                           std::unique_ptr<const Pattern> pattern = nullptr);
std::unique_ptr<Condition> make_not(std::unique_ptr<Condition> inner);
/// Two or more parts, evaluated from left to right until the result is decided.
std::unique_ptr<Condition> make_and(std::vector<std::unique_ptr<Condition>> parts);
std::unique_ptr<Condition> make_or(std::vector<std::unique_ptr<Condition>> parts);
std::unique_ptr<Condition> make_parentheses(std::unique_ptr<Condition> inner);

}  // namespace fjord::selection
