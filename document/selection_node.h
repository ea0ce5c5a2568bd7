#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/document/document.h"
#include "fjord/document/selection.h"
#include "selection_value.h"

namespace fjord::selection {

/// The document that a selection is evaluated on; without a view only its id and type are known.
struct Context {
  std::string_view id;
  std::uint32_t type_id = 0;  ///< 0: not known.
  const DocumentView* view = nullptr;
};

/// The ids of types; or all.
class TypeSet {
 public:
  static TypeSet all() { return {}; }
  static TypeSet of(std::vector<std::uint32_t> ids);

  bool is_all() const { return is_all_; }
  const std::vector<std::uint32_t>& ids() const { return ids_; }  ///< Rising.
  TypeSet intersect(const TypeSet& other) const;
  TypeSet unite(const TypeSet& other) const;

 private:
  bool is_all_ = true;
  std::vector<std::uint32_t> ids_;
};

/// The types whose documents can make a condition true, and those that can make it false.
struct TypeLimits {
  TypeSet when_true;
  TypeSet when_false;
};

/// A node of the tree that yields a value.
class Expression {
 public:
  virtual ~Expression() = default;
  virtual Value evaluate(const Context& context) const = 0;
  virtual void print(std::string& out) const = 0;
  /// The types for whose documents the value is not Invalid.
  virtual TypeSet types() const { return TypeSet::all(); }
  virtual bool needs_body() const { return false; }
};

/// A node of the tree that is true or false.
class Condition {
 public:
  virtual ~Condition() = default;
  virtual Match evaluate(const Context& context) const = 0;
  virtual void print(std::string& out) const = 0;
  virtual TypeLimits types() const { return {}; }
  virtual bool needs_body() const { return false; }
  /// What it is for every document, if that is known.
  virtual std::optional<Match> constant() const { return std::nullopt; }
};

/// The type of what a step leads to, for one element of a collection; null if the step does not fit the type.
const DataType* type_after(const DataType& type, const PathStep& step);

/// The parts of a document id, as views into it; the hash of the id is not computed.
struct IdParts {
  std::string_view scheme;
  std::string_view namespace_name;
  std::optional<std::string_view> type;
  std::optional<std::uint64_t> user;
  std::optional<std::string_view> group;
  std::string_view specific;

  /// Nothing if it is no document id.
  static std::optional<IdParts> split(std::string_view id);
};

enum class IdPart : std::uint8_t { Whole, Scheme, Namespace, Type, User, Group, Specific };

std::unique_ptr<Expression> make_literal(Value value, std::string string);
std::unique_ptr<Expression> make_bool_literal(bool value);
std::unique_ptr<Expression> make_id(IdPart part);
/// `type_ids`: of the type and of those that inherit it.
std::unique_ptr<Expression> make_field(std::string type_name, std::vector<std::uint32_t> type_ids, Field field,
                                       std::vector<PathStep> steps);
std::unique_ptr<Expression> make_parentheses(std::unique_ptr<Expression> inner);

std::unique_ptr<Condition> make_constant(bool value);
std::unique_ptr<Condition> make_type_test(std::string name, std::uint32_t type_id);
/// True if the field is set.
std::unique_ptr<Condition> make_existence(std::unique_ptr<Expression> field);
std::unique_ptr<Condition> make_comparison(std::unique_ptr<Expression> left, CompareOp op,
                                           std::unique_ptr<Expression> right);
std::unique_ptr<Condition> make_not(std::unique_ptr<Condition> inner);
/// Two or more; evaluated from left to right as far as needed.
std::unique_ptr<Condition> make_and(std::vector<std::unique_ptr<Condition>> parts);
std::unique_ptr<Condition> make_or(std::vector<std::unique_ptr<Condition>> parts);
std::unique_ptr<Condition> make_parentheses(std::unique_ptr<Condition> inner);

}  // namespace fjord::selection
