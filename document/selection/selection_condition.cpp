#include <algorithm>

#include "selection_node.h"

namespace fjord::selection {
namespace {

class Parentheses final : public Condition {
 public:
  explicit Parentheses(std::unique_ptr<Condition> inner) : inner_(std::move(inner)) {}
  Match evaluate(const Context& context) const override { return inner_->evaluate(context); }
  void print(Printer& out) const override {
    if (!out.is_explicit) out.text += '(';
    inner_->print(out);
    if (!out.is_explicit) out.text += ')';
  }
  TypeLimits types() const override { return inner_->types(); }
  BucketLimits buckets() const override { return inner_->buckets(); }
  Needs needs() const override { return inner_->needs(); }
  std::optional<Match> constant() const override { return inner_->constant(); }

 private:
  std::unique_ptr<Condition> inner_;
};

class Constant final : public Condition {
 public:
  explicit Constant(bool value) : value_(value) {}
  Match evaluate(const Context&) const override { return to_match(value_); }
  void print(Printer& out) const override { out.text += value_ ? "true" : "false"; }
  TypeLimits types() const override { return limits<TypeSet>(); }
  BucketLimits buckets() const override { return limits<BucketSet>(); }
  std::optional<Match> constant() const override { return to_match(value_); }

 private:
  template <typename Set>
  Limits<Set> limits() const {
    return value_ ? Limits<Set>{Set::all(), Set::of({})} : Limits<Set>{Set::of({}), Set::all()};
  }

  bool value_;
};

class TypeTest final : public Condition {
 public:
  TypeTest(std::string name, std::uint32_t type_id) : name_(std::move(name)), type_id_(type_id) {}
  Match evaluate(const Context& context) const override {
    return context.type_id == 0 ? Match::Invalid : to_match(context.type_id == type_id_);
  }
  void print(Printer& out) const override { out.text += name_; }
  TypeLimits types() const override { return {TypeSet::of({type_id_}), TypeSet::all()}; }

 private:
  std::string name_;
  std::uint32_t type_id_;
};

class Existence final : public Condition {
 public:
  explicit Existence(std::unique_ptr<Expression> field) : field_(std::move(field)) {}
  Match evaluate(const Context& context) const override {
    return compare(field_->evaluate(context), CompareOp::NotEqual, Value::null(), context.scratch.budget());
  }
  void print(Printer& out) const override {
    if (out.is_explicit) out.text += '(';
    field_->print(out);
    if (out.is_explicit) out.text += " != null)";
  }
  TypeLimits types() const override { return {field_->types(), field_->types()}; }
  Needs needs() const override { return field_->needs(); }

 private:
  std::unique_ptr<Expression> field_;
};

class Comparison final : public Condition {
 public:
  Comparison(std::unique_ptr<Expression> left, CompareOp op, std::unique_ptr<Expression> right,
             std::unique_ptr<const Pattern> pattern)
      : left_(std::move(left)), op_(op), right_(std::move(right)), pattern_(std::move(pattern)) {
    if (left_->is_constant()) left_constant_.emplace(*left_);
    if (right_->is_constant()) right_constant_.emplace(*right_);
    if (right_constant_) right_constant_->value().pattern = pattern_.get();
  }
  Match evaluate(const Context& context) const override {
    Budget& budget = context.scratch.budget();
    if (right_constant_ && !left_constant_) {
      const Value& right = right_constant_->value();
      if (right.kind == Value::Kind::Integer) {
        if (const auto left = left_->integer(context)) return compare(*left, op_, right.integer);
      }
      return compare(left_->evaluate(context), op_, right, budget);
    }
    return compare(left_constant_ ? left_constant_->value() : left_->evaluate(context), op_,
                   right_constant_ ? right_constant_->value() : right_->evaluate(context), budget);
  }
  void print(Printer& out) const override {
    if (out.is_explicit) out.text += '(';
    left_->print(out);
    out.text.append(" ").append(to_string(op_)).append(" ");
    right_->print(out);
    if (out.is_explicit) out.text += ')';
  }
  TypeLimits types() const override {
    const TypeSet both = left_->types().intersect(right_->types());
    return {both, both};
  }
  BucketLimits buckets() const override {
    const BucketSet equal = buckets_if_equal();
    if (op_ == CompareOp::NotEqual) return {BucketSet::all(), equal};
    const bool is_equality = op_ == CompareOp::Equal || op_ == CompareOp::Glob;
    return {is_equality ? equal : BucketSet::all(), BucketSet::all()};
  }
  Needs needs() const override { return left_->needs() | right_->needs(); }

 private:
  BucketSet buckets_if_equal() const {
    const CompareOp op = op_ == CompareOp::NotEqual ? CompareOp::Equal : op_;
    if (left_->id_part() && right_constant_) return buckets_with(*left_->id_part(), op, right_constant_->value());
    // The right side of a glob is always the pattern, so the sides cannot be exchanged.
    const bool is_symmetric = op == CompareOp::Equal;
    if (right_->id_part() && left_constant_ && is_symmetric) {
      return buckets_with(*right_->id_part(), op, left_constant_->value());
    }
    return BucketSet::all();
  }

  std::unique_ptr<Expression> left_;
  CompareOp op_;
  std::unique_ptr<Expression> right_;
  std::unique_ptr<const Pattern> pattern_;
  std::optional<ConstantValue> left_constant_;
  std::optional<ConstantValue> right_constant_;
};

class Not final : public Condition {
 public:
  explicit Not(std::unique_ptr<Condition> inner) : inner_(std::move(inner)) {}
  Match evaluate(const Context& context) const override { return negate(inner_->evaluate(context)); }
  void print(Printer& out) const override {
    out.text += out.is_explicit ? "(not " : "not ";
    inner_->print(out);
    if (out.is_explicit) out.text += ')';
  }
  TypeLimits types() const override {
    const TypeLimits inner = inner_->types();
    return {inner.when_false, inner.when_true};
  }
  BucketLimits buckets() const override {
    const BucketLimits inner = inner_->buckets();
    return {inner.when_false, inner.when_true};
  }
  Needs needs() const override { return inner_->needs(); }
  std::optional<Match> constant() const override {
    const auto inner = inner_->constant();
    return inner ? std::optional<Match>(negate(*inner)) : std::nullopt;
  }

 private:
  std::unique_ptr<Condition> inner_;
};

/// `and` is decided by a False, `or` by a True. If nothing decides, the result is Invalid if a part is.
class Junction final : public Condition {
 public:
  Junction(std::vector<std::unique_ptr<Condition>> parts, Match decider)
      : parts_(std::move(parts)), decider_(decider) {}
  Match evaluate(const Context& context) const override {
    Match result = negate(decider_);
    for (const auto& part : parts_) {
      const Match match = part->evaluate(context);
      if (match == decider_ || !context.scratch.budget().spend(1)) return match;
      if (match == Match::Invalid) result = match;
    }
    return result;
  }
  void print(Printer& out) const override {
    if (out.is_explicit) out.text.append(parts_.size() - 1, '(');
    for (const auto& part : parts_) {
      const bool is_first = &part == &parts_.front();
      if (!is_first) out.text += is_and() ? " and " : " or ";
      part->print(out);
      if (out.is_explicit && !is_first) out.text += ')';
    }
  }
  TypeLimits types() const override {
    std::vector<TypeLimits> limits;
    for (const auto& part : parts_) limits.push_back(part->types());
    return is_and() ? TypeLimits::of_and(limits) : TypeLimits::of_or(limits);
  }
  BucketLimits buckets() const override {
    std::vector<BucketLimits> limits;
    for (const auto& part : parts_) limits.push_back(part->buckets());
    return is_and() ? BucketLimits::of_and(limits) : BucketLimits::of_or(limits);
  }
  Needs needs() const override {
    Needs needs;
    for (const auto& part : parts_) needs = needs | part->needs();
    return needs;
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
  bool is_and() const { return decider_ == Match::False; }

  std::vector<std::unique_ptr<Condition>> parts_;
  Match decider_;
};

}  // namespace

std::unique_ptr<Condition> make_constant(bool value) { return std::make_unique<Constant>(value); }
std::unique_ptr<Condition> make_type_test(std::string name, std::uint32_t type_id) {
  return std::make_unique<TypeTest>(std::move(name), type_id);
}
std::unique_ptr<Condition> make_existence(std::unique_ptr<Expression> field) {
  return std::make_unique<Existence>(std::move(field));
}
std::unique_ptr<Condition> make_comparison(std::unique_ptr<Expression> left, CompareOp op,
                                           std::unique_ptr<Expression> right, std::unique_ptr<const Pattern> pattern) {
  return std::make_unique<Comparison>(std::move(left), op, std::move(right), std::move(pattern));
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
  return std::make_unique<Parentheses>(std::move(inner));
}

}  // namespace fjord::selection
