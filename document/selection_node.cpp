#include "selection_node.h"

#include <algorithm>
#include <charconv>

#include "selection_lexer.h"

namespace fjord::selection {
namespace {

class Literal final : public Expression {
 public:
  Literal(Value value, std::string string) : value_(value), string_(std::move(string)) {}
  Value evaluate(const Context&) const override {
    return value_.kind == Value::Kind::String ? Value::of_string(string_) : value_;
  }
  void print(std::string& out) const override {
    switch (value_.kind) {
      case Value::Kind::Null:
        out += "null";
        break;
      case Value::Kind::Integer:
        out += std::to_string(value_.integer);
        break;
      case Value::Kind::Double:
        out += print_double(value_.number);
        break;
      default:
        out += quote(string_);
    }
  }

 private:
  Value value_;
  std::string string_;
};

/// In a comparison true is 1 and false is 0.
class BoolLiteral final : public Expression {
 public:
  explicit BoolLiteral(bool value) : value_(value) {}
  Value evaluate(const Context&) const override { return Value::of(value_ ? 1 : 0); }
  void print(std::string& out) const override { out += value_ ? "true" : "false"; }

 private:
  bool value_;
};

constexpr std::string_view kIdPartNames[] = {"id",      "id.scheme", "id.namespace", "id.type",
                                             "id.user", "id.group",  "id.specific"};

class IdExpression final : public Expression {
 public:
  explicit IdExpression(IdPart part) : part_(part) {}
  void print(std::string& out) const override { out += kIdPartNames[static_cast<std::size_t>(part_)]; }
  Value evaluate(const Context& context) const override {
    if (part_ == IdPart::Whole) return Value::of_string(context.id);
    const std::optional<IdParts> parts = IdParts::split(context.id);
    if (!parts) return Value::invalid();
    switch (part_) {
      case IdPart::Scheme:
        return Value::of_string(parts->scheme);
      case IdPart::Namespace:
        return Value::of_string(parts->namespace_name);
      // An id of an old scheme says nothing about the type, which is not the same as having none.
      case IdPart::Type:
        return parts->type ? Value::of_string(*parts->type) : Value::invalid();
      case IdPart::User:
        return parts->user ? Value::of(static_cast<std::int64_t>(*parts->user)) : Value::null();
      case IdPart::Group:
        return parts->group ? Value::of_string(*parts->group) : Value::null();
      default:
        return Value::of_string(parts->specific);
    }
  }

 private:
  IdPart part_;
};

class FieldExpression final : public Expression {
 public:
  FieldExpression(std::string type_name, std::vector<std::uint32_t> type_ids, Field field, std::vector<PathStep> steps)
      : type_name_(std::move(type_name)), field_(std::move(field)), steps_(std::move(steps)) {
    types_ = TypeSet::of(std::move(type_ids));
  }
  Value evaluate(const Context& context) const override {
    if (context.view == nullptr || !has_field(*context.view)) return Value::invalid();
    const std::optional<FieldSlice> slice = context.view->field(field_);
    // Whether the steps fit is a matter of the type, not of whether the field is set.
    if (!slice) return fits_ ? Value::null() : Value::invalid();
    return resolve(*slice, steps_);
  }
  void print(std::string& out) const override {
    out += type_name_ + "." + field_.name;
    for (const PathStep& step : steps_) {
      switch (step.kind) {
        case PathStep::Kind::Member:
          out += "." + step.name;
          break;
        case PathStep::Kind::Index:
          out += "[" + std::to_string(step.number) + "]";
          break;
        case PathStep::Kind::Key:
          out += "{" + (step.is_number ? step.name : quote(step.name)) + "}";
          break;
      }
    }
  }
  TypeSet types() const override { return types_; }
  bool needs_body() const override { return !field_.in_header; }

 private:
  bool has_field(const DocumentView& view) const {
    if (std::binary_search(types_.ids().begin(), types_.ids().end(), view.type_id())) return true;
    return view.type() != nullptr && view.type()->is_a(type_name_);  // a type of a later schema
  }
  bool check_steps() const {
    const DataType* type = field_.type.get();
    for (const PathStep& step : steps_) type = type == nullptr ? nullptr : type_after(*type, step);
    return type != nullptr;
  }

  std::string type_name_;
  Field field_;
  std::vector<PathStep> steps_;
  TypeSet types_;
  bool fits_ = check_steps();
};

class ExpressionParentheses final : public Expression {
 public:
  explicit ExpressionParentheses(std::unique_ptr<Expression> inner) : inner_(std::move(inner)) {}
  Value evaluate(const Context& context) const override { return inner_->evaluate(context); }
  void print(std::string& out) const override {
    out += '(';
    inner_->print(out);
    out += ')';
  }
  TypeSet types() const override { return inner_->types(); }
  bool needs_body() const override { return inner_->needs_body(); }

 private:
  std::unique_ptr<Expression> inner_;
};

class ConditionParentheses final : public Condition {
 public:
  explicit ConditionParentheses(std::unique_ptr<Condition> inner) : inner_(std::move(inner)) {}
  Match evaluate(const Context& context) const override { return inner_->evaluate(context); }
  void print(std::string& out) const override {
    out += '(';
    inner_->print(out);
    out += ')';
  }
  TypeLimits types() const override { return inner_->types(); }
  bool needs_body() const override { return inner_->needs_body(); }
  std::optional<Match> constant() const override { return inner_->constant(); }

 private:
  std::unique_ptr<Condition> inner_;
};

class Constant final : public Condition {
 public:
  explicit Constant(bool value) : value_(value) {}
  Match evaluate(const Context&) const override { return to_match(value_); }
  void print(std::string& out) const override { out += value_ ? "true" : "false"; }
  TypeLimits types() const override {
    return value_ ? TypeLimits{TypeSet::all(), TypeSet::of({})} : TypeLimits{TypeSet::of({}), TypeSet::all()};
  }
  std::optional<Match> constant() const override { return to_match(value_); }

 private:
  bool value_;
};

class TypeTest final : public Condition {
 public:
  TypeTest(std::string name, std::uint32_t type_id) : name_(std::move(name)), type_id_(type_id) {}
  Match evaluate(const Context& context) const override {
    return context.type_id == 0 ? Match::Invalid : to_match(context.type_id == type_id_);
  }
  void print(std::string& out) const override { out += name_; }
  TypeLimits types() const override { return {TypeSet::of({type_id_}), TypeSet::all()}; }

 private:
  std::string name_;
  std::uint32_t type_id_;
};

class Existence final : public Condition {
 public:
  explicit Existence(std::unique_ptr<Expression> field) : field_(std::move(field)) {}
  Match evaluate(const Context& context) const override {
    return compare(field_->evaluate(context), CompareOp::NotEqual, Value::null());
  }
  void print(std::string& out) const override { field_->print(out); }
  TypeLimits types() const override { return {field_->types(), field_->types()}; }
  bool needs_body() const override { return field_->needs_body(); }

 private:
  std::unique_ptr<Expression> field_;
};

class Comparison final : public Condition {
 public:
  Comparison(std::unique_ptr<Expression> left, CompareOp op, std::unique_ptr<Expression> right)
      : left_(std::move(left)), right_(std::move(right)), op_(op) {}
  Match evaluate(const Context& context) const override {
    return compare(left_->evaluate(context), op_, right_->evaluate(context));
  }
  void print(std::string& out) const override {
    left_->print(out);
    out += ' ';
    out += to_string(op_);
    out += ' ';
    right_->print(out);
  }
  TypeLimits types() const override {
    const TypeSet both = left_->types().intersect(right_->types());
    return {both, both};
  }
  bool needs_body() const override { return left_->needs_body() || right_->needs_body(); }

 private:
  std::unique_ptr<Expression> left_;
  std::unique_ptr<Expression> right_;
  CompareOp op_;
};

class Not final : public Condition {
 public:
  explicit Not(std::unique_ptr<Condition> inner) : inner_(std::move(inner)) {}
  Match evaluate(const Context& context) const override { return negate(inner_->evaluate(context)); }
  void print(std::string& out) const override {
    out += "not ";
    inner_->print(out);
  }
  TypeLimits types() const override {
    const TypeLimits inner = inner_->types();
    return {inner.when_false, inner.when_true};
  }
  bool needs_body() const override { return inner_->needs_body(); }
  std::optional<Match> constant() const override {
    const auto inner = inner_->constant();
    return inner ? std::optional<Match>(negate(*inner)) : std::nullopt;
  }

 private:
  std::unique_ptr<Condition> inner_;
};

/// `and`, which a False decides; `or`, which a True decides. Otherwise Invalid if a part is.
class Junction final : public Condition {
 public:
  Junction(std::vector<std::unique_ptr<Condition>> parts, Match decider)
      : parts_(std::move(parts)), decider_(decider) {}
  Match evaluate(const Context& context) const override {
    Match result = negate(decider_);
    for (const auto& part : parts_) {
      const Match match = part->evaluate(context);
      if (match == decider_) return match;
      if (match == Match::Invalid) result = match;
    }
    return result;
  }
  void print(std::string& out) const override {
    for (const auto& part : parts_) {
      if (&part != &parts_.front()) out += decider_ == Match::False ? " and " : " or ";
      part->print(out);
    }
  }
  TypeLimits types() const override {
    TypeLimits limits = parts_.front()->types();
    const bool is_and = decider_ == Match::False;
    for (std::size_t i = 1; i < parts_.size(); ++i) {
      const TypeLimits part = parts_[i]->types();
      limits.when_true = is_and ? limits.when_true.intersect(part.when_true) : limits.when_true.unite(part.when_true);
      limits.when_false =
          is_and ? limits.when_false.unite(part.when_false) : limits.when_false.intersect(part.when_false);
    }
    return limits;
  }
  bool needs_body() const override {
    return std::any_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->needs_body(); });
  }
  std::optional<Match> constant() const override {
    std::optional<Match> result = negate(decider_);
    for (const auto& part : parts_) {
      const auto match = part->constant();
      if (match == decider_) return match;
      if (match != negate(decider_)) result = std::nullopt;
    }
    return result;
  }

 private:
  std::vector<std::unique_ptr<Condition>> parts_;
  Match decider_;
};

}  // namespace

const DataType* type_after(const DataType& type, const PathStep& step) {
  switch (step.kind) {
    case PathStep::Kind::Index:
      return type.tag() == TypeTag::Array ? type.element() : nullptr;
    case PathStep::Kind::Key:
      if (type.tag() == TypeTag::WeightedSet) return DataType::primitive(TypeTag::Int).get();
      return type.tag() == TypeTag::Map ? type.element() : nullptr;
    case PathStep::Kind::Member:
      break;
  }
  if (type.tag() == TypeTag::Struct) {
    const Field* member = type.field(step.name);
    return member == nullptr ? nullptr : member->type.get();
  }
  if (type.tag() == TypeTag::Map && step.name == "key") return type.key();
  if (type.tag() == TypeTag::Map && step.name == "value") return type.element();
  if (type.tag() == TypeTag::Map || type.tag() == TypeTag::Array) return type_after(*type.element(), step);
  return nullptr;
}

TypeSet TypeSet::of(std::vector<std::uint32_t> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  TypeSet set;
  set.is_all_ = false;
  set.ids_ = std::move(ids);
  return set;
}

TypeSet TypeSet::intersect(const TypeSet& other) const {
  if (is_all_) return other;
  if (other.is_all_) return *this;
  std::vector<std::uint32_t> ids;
  std::set_intersection(ids_.begin(), ids_.end(), other.ids_.begin(), other.ids_.end(), std::back_inserter(ids));
  return of(std::move(ids));
}

TypeSet TypeSet::unite(const TypeSet& other) const {
  if (is_all_ || other.is_all_) return all();
  std::vector<std::uint32_t> ids = ids_;
  ids.insert(ids.end(), other.ids_.begin(), other.ids_.end());
  return of(std::move(ids));
}

std::optional<IdParts> IdParts::split(std::string_view id) {
  const auto take = [&id]() -> std::optional<std::string_view> {
    const std::size_t colon = id.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const std::string_view part = id.substr(0, colon);
    id.remove_prefix(colon + 1);
    return part;
  };
  const auto number = [](std::string_view text) -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
  };
  IdParts parts;
  const auto scheme = take();
  const auto namespace_name = take();
  if (!scheme || !namespace_name) return std::nullopt;
  parts.scheme = *scheme;
  parts.namespace_name = *namespace_name;
  if (parts.scheme == "id") {
    const auto type = take();
    const auto modifier = take();
    if (!type || !modifier) return std::nullopt;
    parts.type = *type;
    if (modifier->starts_with("n=")) parts.user = number(modifier->substr(2));
    if (modifier->starts_with("g=")) parts.group = modifier->substr(2);
  } else if (parts.scheme == "userdoc") {
    const auto user = take();
    if (!user) return std::nullopt;
    parts.user = number(*user);
  } else if (parts.scheme == "groupdoc") {
    parts.group = take();
    if (!parts.group) return std::nullopt;
  } else if (parts.scheme != "doc") {
    return std::nullopt;
  }
  parts.specific = id;
  return parts;
}

std::unique_ptr<Expression> make_literal(Value value, std::string string) {
  return std::make_unique<Literal>(value, std::move(string));
}
std::unique_ptr<Expression> make_bool_literal(bool value) { return std::make_unique<BoolLiteral>(value); }
std::unique_ptr<Expression> make_id(IdPart part) { return std::make_unique<IdExpression>(part); }
std::unique_ptr<Expression> make_field(std::string type_name, std::vector<std::uint32_t> type_ids, Field field,
                                       std::vector<PathStep> steps) {
  return std::make_unique<FieldExpression>(std::move(type_name), std::move(type_ids), std::move(field),
                                           std::move(steps));
}
std::unique_ptr<Expression> make_parentheses(std::unique_ptr<Expression> inner) {
  return std::make_unique<ExpressionParentheses>(std::move(inner));
}
std::unique_ptr<Condition> make_constant(bool value) { return std::make_unique<Constant>(value); }
std::unique_ptr<Condition> make_type_test(std::string name, std::uint32_t type_id) {
  return std::make_unique<TypeTest>(std::move(name), type_id);
}
std::unique_ptr<Condition> make_existence(std::unique_ptr<Expression> field) {
  return std::make_unique<Existence>(std::move(field));
}
std::unique_ptr<Condition> make_comparison(std::unique_ptr<Expression> left, CompareOp op,
                                           std::unique_ptr<Expression> right) {
  return std::make_unique<Comparison>(std::move(left), op, std::move(right));
}
std::unique_ptr<Condition> make_not(std::unique_ptr<Condition> inner) {
  return std::make_unique<Not>(std::move(inner));
}
std::unique_ptr<Condition> make_and(std::vector<std::unique_ptr<Condition>> parts) {
  return std::make_unique<Junction>(std::move(parts), Match::False);
}
std::unique_ptr<Condition> make_or(std::vector<std::unique_ptr<Condition>> parts) {
  return std::make_unique<Junction>(std::move(parts), Match::True);
}
std::unique_ptr<Condition> make_parentheses(std::unique_ptr<Condition> inner) {
  return std::make_unique<ConditionParentheses>(std::move(inner));
}

}  // namespace fjord::selection
