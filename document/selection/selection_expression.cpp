#include <algorithm>

#include "selection_lexer.h"
#include "selection_node.h"

namespace fjord::selection {
namespace {

ValueKind kind_of(TypeTag tag) {
  switch (tag) {
    case TypeTag::Int:
    case TypeTag::Long:
    case TypeTag::Byte:
      return ValueKind::Integer;
    case TypeTag::Float:
    case TypeTag::Double:
      return ValueKind::Number;
    case TypeTag::String:
      return ValueKind::String;
    case TypeTag::Bool:
      return ValueKind::Bool;
    default:
      return ValueKind::Several;
  }
}

class Literal final : public Expression {
 public:
  Literal(Value value, std::string string) : value_(value), string_(std::move(string)) {}
  Value evaluate(const Context&) const override {
    return value_.kind == Value::Kind::String ? Value::of_string(string_) : value_;
  }
  void print(Printer& out) const override {
    switch (value_.kind) {
      case Value::Kind::Null:
        out.text += "null";
        break;
      case Value::Kind::Integer:
        out.text += std::to_string(value_.integer);
        break;
      case Value::Kind::Double:
        out.text += print_double(value_.number);
        break;
      default:
        out.text += quote(string_);
    }
  }
  bool is_constant() const override { return true; }
  ValueKind kind() const override {
    if (value_.kind == Value::Kind::Integer) return ValueKind::Integer;
    if (value_.kind == Value::Kind::Double) return ValueKind::Number;
    return value_.kind == Value::Kind::String ? ValueKind::String : ValueKind::Any;
  }

 private:
  Value value_;
  std::string string_;
};

/// A literal true or false. In comparisons true is 1 and false is 0.
class BoolLiteral final : public Expression {
 public:
  explicit BoolLiteral(bool value) : value_(value) {}
  Value evaluate(const Context&) const override { return Value::of(value_ ? 1 : 0); }
  void print(Printer& out) const override { out.text += value_ ? "true" : "false"; }
  bool is_constant() const override { return true; }
  ValueKind kind() const override { return ValueKind::Bool; }

 private:
  bool value_;
};

class IdExpression final : public Expression {
 public:
  explicit IdExpression(IdPart part) : part_(part) {}
  Value evaluate(const Context& context) const override {
    if (!context.scratch.budget().spend(steps_of_bytes(context.id.size()))) return Value::invalid();
    return id_part_of(context.id, part_, context.scratch);
  }
  void print(Printer& out) const override { out.text += to_string(part_); }
  std::optional<IdPart> id_part() const override { return part_; }
  ValueKind kind() const override {
    if (part_ == IdPart::Bucket) return ValueKind::Several;
    return part_ == IdPart::User ? ValueKind::Integer : ValueKind::String;
  }

 private:
  IdPart part_;
};

class Now final : public Expression {
 public:
  Value evaluate(const Context& context) const override {
    return context.now ? Value::of(*context.now) : Value::invalid();
  }
  void print(Printer& out) const override { out.text += "now()"; }
  Needs needs() const override { return {.now = true}; }
  ValueKind kind() const override { return ValueKind::Integer; }
};

class FieldExpression final : public Expression {
 public:
  FieldExpression(std::string type_name, std::vector<std::uint32_t> type_ids, Field field, std::vector<PathStep> steps)
      : type_name_(std::move(type_name)), field_(std::move(field)), steps_(std::move(steps)) {
    types_ = TypeSet::of(std::move(type_ids));
  }
  Value evaluate(const Context& context) const override {
    if (context.view == nullptr || !has_field(*context.view)) return Value::invalid();
    const std::optional<FieldSlice> slice = find_in(context);
    return slice ? resolve(*slice, steps_, context.scratch.budget()) : Value::null();
  }
  std::optional<std::int64_t> integer(const Context& context) const override {
    if (!steps_.empty() || context.view == nullptr || !has_field(*context.view)) return std::nullopt;
    const std::optional<FieldSlice> slice = find_in(context);
    return slice && slice->is_integer() ? std::optional(slice->as_int64()) : std::nullopt;
  }
  void print(Printer& out) const override {
    out.text += type_name_ + "." + field_.name;
    for (const PathStep& step : steps_) print_step(step, out.text);
  }
  TypeSet types() const override { return types_; }
  Needs needs() const override { return {.body = !field_.in_header}; }
  ValueKind kind() const override {
    const DataType* type = field_.type.get();
    for (const PathStep& step : steps_) {
      if (step.kind == PathStep::Kind::Member && is_collection(type->tag())) return ValueKind::Several;
      type = type_after(*type, step);
    }
    return kind_of(type->tag());
  }

 private:
  std::optional<FieldSlice> find_in(const Context& context) const {
    const DocumentType* const type = context.view->type();
    if (!context.scratch.budget().spend(type == nullptr ? 1 : 1 + type->fields().size())) return std::nullopt;
    return context.view->field(field_);
  }
  bool has_field(const DocumentView& view) const {
    if (std::binary_search(types_.ids().begin(), types_.ids().end(), view.type_id())) return true;
    // The document's type may come from a later schema than the selection, which then does not know its id.
    return view.type() != nullptr && view.type()->is_a(type_name_);
  }
  std::string type_name_;
  Field field_;
  std::vector<PathStep> steps_;
  TypeSet types_;
};

class Parentheses final : public Expression {
 public:
  explicit Parentheses(std::unique_ptr<Expression> inner) : inner_(std::move(inner)) {}
  Value evaluate(const Context& context) const override { return inner_->evaluate(context); }
  void print(Printer& out) const override {
    if (!out.is_explicit) out.text += '(';
    inner_->print(out);
    if (!out.is_explicit) out.text += ')';
  }
  TypeSet types() const override { return inner_->types(); }
  Needs needs() const override { return inner_->needs(); }
  bool is_constant() const override { return inner_->is_constant(); }
  std::optional<IdPart> id_part() const override { return inner_->id_part(); }
  ValueKind kind() const override { return inner_->kind(); }

 private:
  std::unique_ptr<Expression> inner_;
};

class Calls final : public Expression {
 public:
  Calls(std::unique_ptr<Expression> inner, std::vector<Function> functions)
      : inner_(std::move(inner)), functions_(std::move(functions)) {}
  Value evaluate(const Context& context) const override {
    Value value = inner_->evaluate(context);
    for (const Function function : functions_) value = call(function, value, context.scratch);
    return value;
  }
  void print(Printer& out) const override {
    inner_->print(out);
    for (const Function function : functions_) out.text.append(".").append(to_string(function)).append("()");
  }
  TypeSet types() const override { return inner_->types(); }
  Needs needs() const override { return inner_->needs(); }
  bool is_constant() const override { return inner_->is_constant(); }
  ValueKind kind() const override {
    if (inner_->kind() == ValueKind::Several) return ValueKind::Several;
    switch (functions_.back()) {
      case Function::Lowercase:
        return ValueKind::String;
      case Function::Hash:
        return ValueKind::Integer;
      case Function::Abs:
        break;
    }
    return ValueKind::Number;
  }

 private:
  std::unique_ptr<Expression> inner_;
  std::vector<Function> functions_;
};

class Arithmetic final : public Expression {
 public:
  using Rest = std::vector<std::pair<ArithmeticOp, std::unique_ptr<Expression>>>;

  Arithmetic(std::unique_ptr<Expression> first, Rest rest) : first_(std::move(first)), rest_(std::move(rest)) {}
  Value evaluate(const Context& context) const override {
    Value value = first_->evaluate(context);
    for (const auto& [op, operand] : rest_) {
      value = calculate(value, op, operand->evaluate(context), context.scratch);
      if (value.kind == Value::Kind::Invalid) break;
    }
    return value;
  }
  void print(Printer& out) const override {
    if (out.is_explicit) out.text.append(rest_.size(), '(');
    first_->print(out);
    for (const auto& [op, operand] : rest_) {
      out.text.append(" ").append(to_string(op)).append(" ");
      operand->print(out);
      if (out.is_explicit) out.text += ')';
    }
  }
  TypeSet types() const override {
    TypeSet types = first_->types();
    for (const auto& [op, operand] : rest_) types = types.intersect(operand->types());
    return types;
  }
  Needs needs() const override {
    Needs needs = first_->needs();
    for (const auto& [op, operand] : rest_) needs = needs | operand->needs();
    return needs;
  }
  bool is_constant() const override {
    return first_->is_constant() &&
           std::all_of(rest_.begin(), rest_.end(), [](const auto& one) { return one.second->is_constant(); });
  }
  ValueKind kind() const override {
    const auto is = [&](ValueKind kind) {
      return std::count_if(rest_.begin(), rest_.end(), [&](const auto& one) { return one.second->kind() == kind; }) +
             (first_->kind() == kind ? 1 : 0);
    };
    if (is(ValueKind::Several) != 0) return ValueKind::Several;
    if (is(ValueKind::Any) != 0) return ValueKind::Any;
    return is(ValueKind::String) != 0 ? ValueKind::String : ValueKind::Number;
  }

 private:
  std::unique_ptr<Expression> first_;
  Rest rest_;
};

}  // namespace

ConstantValue::ConstantValue(const Expression& expression) {
  Scratch scratch(Selection::kStepsMax);
  value_ = expression.evaluate({{}, 0, nullptr, {}, scratch});
  string_ = value_.string;
  value_.string = string_;
}

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

void print_step(const PathStep& step, std::string& out) {
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

std::unique_ptr<Expression> make_literal(Value value, std::string string) {
  return std::make_unique<Literal>(value, std::move(string));
}
std::unique_ptr<Expression> make_bool_literal(bool value) { return std::make_unique<BoolLiteral>(value); }
std::unique_ptr<Expression> make_id(IdPart part) { return std::make_unique<IdExpression>(part); }
std::unique_ptr<Expression> make_now() { return std::make_unique<Now>(); }
std::unique_ptr<Expression> make_field(std::string type_name, std::vector<std::uint32_t> type_ids, Field field,
                                       std::vector<PathStep> steps) {
  return std::make_unique<FieldExpression>(std::move(type_name), std::move(type_ids), std::move(field),
                                           std::move(steps));
}
std::unique_ptr<Expression> make_parentheses(std::unique_ptr<Expression> inner) {
  return std::make_unique<Parentheses>(std::move(inner));
}
std::unique_ptr<Expression> make_calls(std::unique_ptr<Expression> inner, std::vector<Function> functions) {
  return std::make_unique<Calls>(std::move(inner), std::move(functions));
}
std::unique_ptr<Expression> make_arithmetic(std::unique_ptr<Expression> first, Arithmetic::Rest rest) {
  return std::make_unique<Arithmetic>(std::move(first), std::move(rest));
}

}  // namespace fjord::selection
