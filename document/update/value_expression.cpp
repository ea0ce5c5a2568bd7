#include "fjord/document/value_expression.h"

#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "fjord/document/selection.h"
#include "selection/selection_lexer.h"
#include "selection/selection_node.h"
#include "selection/selection_parser.h"

namespace fjord {

namespace {

/// Steps of all expressions for one document: some tenths of a second of a thread that serves no other request. The
/// value of an expression that needs more is absent.
constexpr std::uint64_t kStepsMax = std::uint64_t{1} << 28;

}  // namespace

ValueExpression::Scratch::Scratch() : scratch_(std::make_unique<selection::Scratch>(kStepsMax)) {}
ValueExpression::Scratch::~Scratch() = default;

Result<ValueExpression> ValueExpression::compile(std::string_view text, const DocumentTypeRepo& types,
                                                 const DocumentType& type) {
  if (text.size() > Selection::kBytesMax) {
    return selection::error_at(
        1, fmt::format("{} bytes are more than the limit of {}", text.size(), Selection::kBytesMax));
  }
  FJORD_TRY_ASSIGN(std::unique_ptr<selection::Expression> root, selection::parse_value(text, types, type));
  const selection::Needs needs = root->needs();
  if (needs.now) return selection::error_at(1, "now() has no value here: expected one that depends on the document");
  Kind kind = Kind::Any;
  switch (root->kind()) {
    case selection::ValueKind::Several: {
      selection::Printer printer;
      root->print(printer);
      return selection::error_at(1, fmt::format("'{}' is not a single value: expected a number, a text or a bool, for "
                                                "example an element of the collection or a member of the struct",
                                                printer.text));
    }
    case selection::ValueKind::Any:
      break;
    case selection::ValueKind::Integer:
      kind = Kind::Integer;
      break;
    case selection::ValueKind::Number:
      kind = Kind::Number;
      break;
    case selection::ValueKind::String:
      kind = Kind::String;
      break;
    case selection::ValueKind::Bool:
      kind = Kind::Bool;
      break;
  }
  return ValueExpression(std::shared_ptr<const selection::Expression>(std::move(root)), kind, needs.body);
}

ScalarView ValueExpression::evaluate(const DocumentView& document, Scratch& scratch) const {
  const selection::Context context{document.id(), document.type_id(), &document, std::nullopt, *scratch.scratch_};
  ScalarView scalar;
  if (kind_ == Kind::Integer) {
    if (const auto integer = root_->integer(context)) {
      scalar.kind = ScalarView::Kind::Integer;
      scalar.integer = *integer;
      return scalar;
    }
  }
  const selection::Value value = root_->evaluate(context);
  switch (value.kind) {
    case selection::Value::Kind::Integer:
      scalar.kind = ScalarView::Kind::Integer;
      scalar.integer = value.integer;
      break;
    case selection::Value::Kind::Double:
      if (std::isnan(value.number)) break;
      scalar.kind = ScalarView::Kind::Double;
      scalar.number = value.number;
      break;
    case selection::Value::Kind::String:
      scalar.kind = ScalarView::Kind::String;
      scalar.string = value.string;
      break;
    default:
      break;
  }
  return scalar;
}

void ValueExpression::clear(Scratch& scratch) { scratch.scratch_->clear(kStepsMax); }

std::string ValueExpression::to_string() const {
  selection::Printer printer;
  root_->print(printer);
  return std::move(printer.text);
}

}  // namespace fjord
