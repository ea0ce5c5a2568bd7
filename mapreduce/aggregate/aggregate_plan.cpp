#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <rapidjson/document.h>
#include <set>

#include "fjord/common/thread_annotations.h"
#include "fjord/document/selection.h"
#include "fjord/mapreduce/aggregate_spec.h"
#include "fjord/mapreduce/passes.h"
#include "scalar.h"

namespace fjord::mapreduce {

/// A condition on rows. It is a selection on documents of a type made for it, whose fields are the columns.
struct AggregatePlan::Condition {
  std::shared_ptr<const DocumentTypeRepo> types;
  const DocumentType* type = nullptr;
  std::vector<const Field*> fields;  ///< One per column; null for a column that conditions cannot use.
  Selection selection;

  /// `is_wide`: the columns of integers whose fields are floating-point numbers; empty: none. Errors: those of
  /// Selection::parse().
  static Result<std::shared_ptr<const Condition>> make(const std::string& text,
                                                       const std::vector<AggregateColumn>& columns,
                                                       const std::vector<bool>& is_wide);
};

/// Threading: any thread.
struct AggregatePlan::Having {
  std::string text;
  std::shared_ptr<const Condition> usual;
  mutable std::mutex mutex;
  /// The conditions for rows with integers of more than 64 bits, by the columns that have them.
  mutable std::map<std::vector<bool>, std::shared_ptr<const Condition>> of_wide FJORD_GUARDED_BY(mutex);

  Result<std::shared_ptr<const Condition>> condition_for(const std::vector<bool>& is_wide,
                                                         const std::vector<AggregateColumn>& columns) const;
};

namespace {

constexpr std::uint64_t kTopMax = 10'000;
constexpr const char* kFunctions =
    "count(), count(E), sum(E), avg(E), min(E), max(E), distinct(E), quantile(P,E), histogram(E,WIDTH) or top(K,E)";

Status invalid(std::string_view what) { return Status(StatusCode::InvalidArgument, std::string(what)); }

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && text.size() <= 128 && is_letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lowercase(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

/// True for words that have another meaning in a selection.
bool is_reserved(std::string_view name) {
  const std::string word = lowercase(name);
  for (const char* reserved : {"and", "or", "not", "true", "false", "null", "id", "now", kRowType}) {
    if (word == reserved) return true;
  }
  return false;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string without_spaces(std::string_view text) {
  std::string left(text);
  std::erase(left, ' ');
  return left;
}

/// Makes a column name of an expression, such as "quantile_0_5_price" of "quantile(0.5, price)".
std::string name_from(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (is_plain) {
      name.push_back(c);
    } else if (!name.empty() && name.back() != '_') {
      name.push_back('_');
    }
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name.insert(0, "c_");
  if (name.size() > 128) name.resize(128);
  if (is_reserved(name)) name += "_";
  return name;
}

struct Named {
  std::string_view expression;
  std::optional<std::string> name;
};

/// Splits "E AS name" or "name=E" into expression and name.
Named split_name(std::string_view text) {
  text = trimmed(text);
  const std::size_t equals = text.find('=');
  const bool is_operator = equals + 1 < text.size() && (text[equals + 1] == '=' || text[equals + 1] == '~');
  if (equals != std::string_view::npos && !is_operator && is_name(trimmed(text.substr(0, equals)))) {
    return {trimmed(text.substr(equals + 1)), std::string(trimmed(text.substr(0, equals)))};
  }
  const std::size_t last = text.find_last_of(" \t");
  if (last == std::string_view::npos || !is_name(text.substr(last + 1))) return {text, std::nullopt};
  const std::string_view before = trimmed(text.substr(0, last));
  const bool has_as =
      before.size() > 3 && lower(before[before.size() - 2]) == 'a' && lower(before.back()) == 's' &&
      (before[before.size() - 3] == ' ' || before[before.size() - 3] == '\t' || before[before.size() - 3] == ')');
  if (!has_as) return {text, std::nullopt};
  return {trimmed(before.substr(0, before.size() - 2)), std::string(text.substr(last + 1))};
}

/// Returns the end of the quoted text that begins at `at`; the end of `text` if the quotes are not closed.
std::size_t end_of_quoted(std::string_view text, std::size_t at) {
  const char quote = text[at++];
  while (at < text.size() && text[at] != quote) at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

/// Returns the function call that begins at `at`, such as "avg( price )"; empty if there is none.
std::string_view call_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_name(text.substr(at, end + 1 - at))) ++end;
  if (end == at) return {};
  while (end < text.size() && text[end] == ' ') ++end;
  int depth = 0;
  while (end < text.size()) {
    if (text[end] == '"' || text[end] == '\'') {
      end = end_of_quoted(text, end);
      continue;
    }
    depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
    ++end;
    if (depth == 0) return text[end - 1] == ')' ? text.substr(at, end - at) : std::string_view();
  }
  return {};
}

/// Returns the message of the selection parser without its leading "selection, ".
std::string place_of(const Status& error) {
  constexpr std::string_view kPrefix = "selection, ";
  std::string text(error.message());
  return text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text;
}

std::optional<ScalarView> parse_number(std::string_view text) {
  ScalarView value;
  const char* end = text.data() + text.size();
  if (const auto [at, error] = std::from_chars(text.data(), end, value.integer); error == std::errc() && at == end) {
    value.kind = ScalarView::Kind::Integer;
    return value;
  }
  const auto [at, error] = std::from_chars(text.data(), end, value.number);
  if (error != std::errc() || at != end || !std::isfinite(value.number)) return std::nullopt;
  value.kind = ScalarView::Kind::Double;
  return canonical(value);
}

ColumnKind column_kind(ValueExpression::Kind kind) {
  switch (kind) {
    case ValueExpression::Kind::Integer:
      return ColumnKind::Integer;
    case ValueExpression::Kind::Number:
      return ColumnKind::Number;
    case ValueExpression::Kind::Bool:
      return ColumnKind::Bool;
    default:
      return ColumnKind::String;
  }
}

const char* sd_type(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::Integer:
      return "long";
    case ColumnKind::Number:
      return "double";
    case ColumnKind::Bool:
      return "bool";
    default:
      return "string";
  }
}

std::optional<AggregateFunction> function_of(std::string_view name) {
  constexpr std::string_view kNames[] = {"count",    "sum",      "avg",       "min", "max",
                                         "distinct", "quantile", "histogram", "top"};
  const std::string word = lowercase(name);
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (word == kNames[i]) return static_cast<AggregateFunction>(i);
  }
  return std::nullopt;
}

}  // namespace

class AggregateCompiler {
 public:
  AggregateCompiler(const DocumentTypeRepo& types, const DocumentType& type) : types_(types), type_(type) {}

  Result<std::shared_ptr<const AggregatePlan>> compile(const AggregateSpec& spec) {
    for (const std::string& text : spec.group_by) FJORD_TRY(add_group(text));
    for (const std::string& text : spec.aggregates) FJORD_TRY(add_aggregate(text));
    if (spec.group_by.empty() && spec.aggregates.empty()) {
      return invalid(fmt::format("nothing to compute: expected an aggregate, {}", kFunctions));
    }
    plan_->columns_.insert(plan_->columns_.end(), aggregate_columns_.begin(), aggregate_columns_.end());
    FJORD_TRY(check_names());
    for (const std::string& text : spec.order_by) FJORD_TRY(add_order(text));
    if (!trimmed(spec.having).empty()) FJORD_TRY(add_having(spec.having));
    auto selection = Selection::parse(spec.selection, types_, type_);
    if (!selection) return selection.error();
    if (!trimmed(spec.selection).empty()) plan_->selection_ = selection->to_string();
    plan_->limit_ = spec.limit;
    return std::shared_ptr<const AggregatePlan>(std::move(plan_));
  }

 private:
  Result<ValueExpression> compile_value(std::string_view text, const std::string& where) {
    auto expression = ValueExpression::compile(text, types_, type_);
    if (!expression) {
      return Status(expression.error().code(), where + ": " + place_of(expression.error()));
    }
    plan_->needs_body_ = plan_->needs_body_ || expression->needs_body();
    return expression;
  }

  Status add_group(const std::string& text) {
    const Named named = split_name(text);
    const std::string where = fmt::format("group-by \"{}\"", text);
    if (named.expression.empty()) return invalid(where + ": expected an expression, for example a field");
    FJORD_TRY_ASSIGN(ValueExpression expression, compile_value(named.expression, where));
    plan_->columns_.push_back({named.name.value_or(name_from(without_type(named.expression))),
                               column_kind(expression.kind()), expression.to_string()});
    plan_->groups_.push_back(std::move(expression));
    return Status::ok();
  }

  /// Removes the type's name in front of fields: column names need only the field's name.
  std::string without_type(std::string_view expression) const {
    const std::string prefix = type_.name() + ".";
    std::string text(expression);
    for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
      text.erase(at, prefix.size());
    }
    return text;
  }

  Status add_aggregate(const std::string& text) {
    const Named named = split_name(text);
    const std::string where = fmt::format("aggregate \"{}\"", text);
    const std::size_t open = named.expression.find('(');
    if (open == std::string_view::npos || named.expression.back() != ')') {
      return invalid(fmt::format("{}: expected {}", where, kFunctions));
    }
    const std::string_view name = trimmed(named.expression.substr(0, open));
    const auto function = function_of(name);
    if (!function) return invalid(fmt::format("{}: unknown function \"{}\": expected {}", where, name, kFunctions));
    const auto arguments = split_list(named.expression.substr(open + 1, named.expression.size() - open - 2));
    AggregatePlan::Aggregate aggregate;
    aggregate.function = *function;
    FJORD_TRY_ASSIGN(const std::string argument, take_arguments(where, arguments, aggregate));
    AggregateColumn column;
    column.name = named.name.value_or(name_from(without_type(named.expression)));
    column.kind = ColumnKind::Integer;
    column.text = std::string(named.expression);
    if (!argument.empty()) FJORD_TRY(add_input(where, argument, aggregate, column));
    aggregate_columns_.push_back(std::move(column));
    plan_->aggregates_.push_back(aggregate);
    return Status::ok();
  }

  /// Returns the argument that is an expression; stores the constant argument in `aggregate`.
  static Result<std::string> take_arguments(const std::string& where, const std::vector<std::string>& arguments,
                                            AggregatePlan::Aggregate& aggregate) {
    using F = AggregateFunction;
    const bool has_parameter =
        aggregate.function == F::Quantile || aggregate.function == F::Histogram || aggregate.function == F::Top;
    const std::size_t wanted = has_parameter ? 2 : 1;
    if (arguments.size() != wanted && !(aggregate.function == F::Count && arguments.empty())) {
      return invalid(fmt::format("{}: {} arguments, expected {}", where, arguments.size(), wanted));
    }
    if (arguments.empty()) return std::string();
    const bool is_first = aggregate.function != F::Histogram;
    if (has_parameter) {
      const std::string& text = arguments[is_first ? 0 : 1];
      const auto number = parse_number(text);
      const bool is_integer = number && number->kind == ScalarView::Kind::Integer;
      switch (aggregate.function) {
        case F::Quantile:
          if (!number || as_double(*number) < 0 || as_double(*number) > 1) {
            return invalid(fmt::format("{}: \"{}\": expected a number from 0 to 1", where, text));
          }
          break;
        case F::Histogram:
          if (!number || as_double(*number) <= 0) {
            return invalid(fmt::format("{}: \"{}\": expected the width of a bin, a number above 0", where, text));
          }
          break;
        default:
          if (!is_integer || number->integer < 1 || number->integer > std::int64_t{kTopMax}) {
            return invalid(fmt::format("{}: \"{}\": expected a number from 1 to {}", where, text, kTopMax));
          }
      }
      aggregate.parameter = *number;
    }
    const std::string& argument = arguments[has_parameter && is_first ? 1 : 0];
    if (argument.empty()) return invalid(where + ": expected an expression, for example a field");
    return argument;
  }

  Status add_input(const std::string& where, const std::string& argument, AggregatePlan::Aggregate& aggregate,
                   AggregateColumn& column) {
    using F = AggregateFunction;
    using Kind = ValueExpression::Kind;
    FJORD_TRY_ASSIGN(ValueExpression expression, compile_value(argument, where));
    const Kind kind = expression.kind();
    const bool needs_number = aggregate.function == F::Sum || aggregate.function == F::Avg ||
                              aggregate.function == F::Quantile || aggregate.function == F::Histogram;
    if (needs_number && kind == Kind::String) {
      return invalid(fmt::format("{}: {} is a text, expected a number", where, expression.to_string()));
    }
    aggregate.is_bool = kind == Kind::Bool;
    aggregate.is_integer = kind == Kind::Integer || kind == Kind::Bool;
    switch (aggregate.function) {
      case F::Count:
      case F::Distinct:
        column.kind = ColumnKind::Integer;
        break;
      case F::Sum:
        column.kind = aggregate.is_integer ? ColumnKind::Integer : ColumnKind::Number;
        break;
      case F::Avg:
      case F::Quantile:
        column.kind = ColumnKind::Number;
        break;
      case F::Min:
      case F::Max:
        column.kind = column_kind(kind);
        break;
      case F::Histogram:
      case F::Top:
        column.kind = ColumnKind::Json;
        break;
    }
    const std::string text = expression.to_string();
    for (std::size_t i = 0; i < plan_->inputs_.size(); ++i) {
      if (plan_->inputs_[i].to_string() == text) aggregate.input = static_cast<int>(i);
    }
    if (aggregate.input < 0) {
      aggregate.input = static_cast<int>(plan_->inputs_.size());
      plan_->inputs_.push_back(std::move(expression));
    }
    return Status::ok();
  }

  Status check_names() const {
    std::set<std::string> names;
    for (const AggregateColumn& column : plan_->columns_) {
      if (!is_name(column.name) || is_reserved(column.name)) {
        return invalid(
            fmt::format("\"{}\" cannot be the name of a column: expected letters, digits and underscores, "
                        "and no word of the selection language",
                        column.name));
      }
      if (!names.insert(column.name).second) {
        return invalid(fmt::format("two columns have the name \"{}\": give one of them another, as in \"{} AS other\"",
                                   column.name, column.text));
      }
    }
    return Status::ok();
  }

  std::string known_columns() const {
    std::string known;
    for (const AggregateColumn& column : plan_->columns_) known += (known.empty() ? "" : ", ") + column.name;
    return known;
  }

  /// Finds a column by its name, or by the text of its expression, such as "count()".
  std::optional<std::size_t> find_column(std::string_view name) const {
    for (std::size_t i = 0; i < plan_->columns_.size(); ++i) {
      const AggregateColumn& column = plan_->columns_[i];
      const bool is_text = without_spaces(column.text) == without_spaces(name);
      if (column.name == name || is_text || column.name == name_from(without_type(name))) return i;
    }
    return std::nullopt;
  }

  Status add_order(const std::string& text) {
    AggregatePlan::Order order;
    std::string_view name = trimmed(text);
    const std::string word = lowercase(name);
    if (word.ends_with(" desc") || word.ends_with(" asc")) {
      order.descending = word.ends_with(" desc");
      name = trimmed(name.substr(0, name.rfind(' ')));
    } else if (name.starts_with('-')) {
      order.descending = true;
      name = trimmed(name.substr(1));
    }
    const auto column = find_column(name);
    if (!column) {
      return invalid(
          fmt::format("order-by \"{}\": there is no column \"{}\": expected {}", text, name, known_columns()));
    }
    if (plan_->columns_[*column].kind == ColumnKind::Json) {
      return invalid(fmt::format("order-by \"{}\": a column of several values has no order", text));
    }
    order.column = *column;
    plan_->order_.push_back(order);
    return Status::ok();
  }

  /// Replaces calls by column names, as conditions need: "count() > 3" becomes "count > 3".
  std::string with_column_names(std::string_view text) const {
    std::string named;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at + 1;
      if (text[at] == '"' || text[at] == '\'') {
        end = end_of_quoted(text, at);
      } else if (is_name(text.substr(at, 1))) {
        const std::string_view call = call_at(text, at);
        if (const auto column = call.empty() ? std::nullopt : find_column(call)) {
          named += plan_->columns_[*column].name;
          at += call.size();
          continue;
        }
        while (is_name(text.substr(at, end + 1 - at)) && end < text.size()) ++end;
      }
      named += text.substr(at, end - at);
      at = end;
    }
    return named;
  }

  Status add_having(const std::string& as_given) {
    auto having = std::make_shared<AggregatePlan::Having>();
    having->text = with_column_names(as_given);
    FJORD_TRY_ASSIGN(having->usual, AggregatePlan::Condition::make(having->text, plan_->columns_, {}));
    plan_->having_ = std::move(having);
    return Status::ok();
  }

  const DocumentTypeRepo& types_;
  const DocumentType& type_;
  std::shared_ptr<AggregatePlan> plan_{new AggregatePlan};
  std::vector<AggregateColumn> aggregate_columns_;
};

Result<std::shared_ptr<const AggregatePlan>> AggregatePlan::compile(const AggregateSpec& spec,
                                                                    const DocumentTypeRepo& types) {
  const DocumentType* type = types.find(spec.type);
  if (type == nullptr) {
    return Status(StatusCode::UnknownType, fmt::format("there is no document type \"{}\"", spec.type));
  }
  return AggregateCompiler(types, *type).compile(spec);
}

namespace {

Status no_row() { return Status(StatusCode::Corruption, "malformed row of an aggregation"); }

/// Returns the plain value of a cell. An estimate is an object with its error; its first member is the value.
const rapidjson::Value& plain(const rapidjson::Value& value) {
  return value.IsObject() && value.MemberCount() > 0 ? value.MemberBegin()->value : value;
}

}  // namespace

Result<std::shared_ptr<const AggregatePlan::Condition>> AggregatePlan::Condition::make(
    const std::string& text, const std::vector<AggregateColumn>& columns, const std::vector<bool>& is_wide) {
  auto condition = std::make_shared<Condition>();
  std::string schema = fmt::format("document {} {{\n", kRowType);
  std::string known;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    known += (known.empty() ? "" : ", ") + columns[i].name;
    if (columns[i].kind == ColumnKind::Json) continue;
    const bool is_real = !is_wide.empty() && is_wide[i];
    schema += fmt::format("  field {} type {} {{ header }}\n", columns[i].name,
                          sd_type(is_real ? ColumnKind::Number : columns[i].kind));
  }
  schema += "}\n";
  FJORD_TRY_ASSIGN(condition->types, DocumentTypeRepo::build(std::span(&schema, 1)));
  condition->type = condition->types->find(kRowType);
  auto selection = Selection::parse(text, *condition->types, *condition->type);
  if (!selection) {
    return Status(selection.error().code(),
                  fmt::format("having \"{}\": {} (columns: {})", text, place_of(selection.error()), known));
  }
  condition->selection = std::move(*selection);
  for (const AggregateColumn& column : columns) condition->fields.push_back(condition->type->field(column.name));
  return std::shared_ptr<const Condition>(std::move(condition));
}

Result<std::shared_ptr<const AggregatePlan::Condition>> AggregatePlan::Having::condition_for(
    const std::vector<bool>& is_wide, const std::vector<AggregateColumn>& columns) const {
  if (is_wide.empty()) return usual;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const Condition>& found = of_wide[is_wide];
  if (found == nullptr) {
    FJORD_TRY_ASSIGN(found, Condition::make(text, columns, is_wide));
  }
  return found;
}

namespace {

/// Sets the field of a column from the cell of a row.
Status set_cell(Document& document, const Field& field, ColumnKind kind, const rapidjson::Value& value) {
  switch (kind) {
    case ColumnKind::Integer:
      if (value.IsInt64() && field.type->tag() == TypeTag::Long) return document.set(field, value.GetInt64());
      return value.IsNumber() ? document.set(field, value.GetDouble()) : Status::ok();
    case ColumnKind::Number:
      if (value.IsNumber()) return document.set(field, value.GetDouble());
      if (value.IsString()) {
        const double infinity = std::numeric_limits<double>::infinity();
        return document.set(field, *value.GetString() == '-' ? -infinity : infinity);
      }
      return Status::ok();
    case ColumnKind::Bool:
      return value.IsBool() ? document.set(field, value.GetBool()) : Status::ok();
    default:
      if (!value.IsString()) return Status::ok();
      return document.set(field, std::string(value.GetString(), value.GetStringLength()));
  }
}

}  // namespace

Result<bool> AggregatePlan::passes_having(std::string_view row) const {
  if (having_ == nullptr) return true;
  rapidjson::Document json;
  json.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseFullPrecisionFlag>(row.data(), row.size());
  if (json.HasParseError() || !json.IsArray() || json.Size() != columns_.size()) return no_row();
  // No field holds an integer of more than 64 bits: in this row such a column is a floating-point number.
  std::vector<bool> is_wide;
  for (rapidjson::SizeType i = 0; i < json.Size(); ++i) {
    const rapidjson::Value& value = plain(json[i]);
    if (columns_[i].kind != ColumnKind::Integer || !value.IsNumber() || value.IsInt64()) continue;
    is_wide.resize(columns_.size());
    is_wide[i] = true;
  }
  FJORD_TRY_ASSIGN(const std::shared_ptr<const Condition> condition, having_->condition_for(is_wide, columns_));
  FJORD_TRY_ASSIGN(DocumentId id, DocumentId::parse("id:fjord:row::row"));
  Document document(*condition->type, std::move(id));
  for (rapidjson::SizeType i = 0; i < json.Size(); ++i) {
    const rapidjson::Value& value = plain(json[i]);
    const Field* field = condition->fields[i];
    if (field != nullptr && !value.IsNull()) FJORD_TRY(set_cell(document, *field, columns_[i].kind, value));
  }
  const EncodedDocument encoded = encode(document);
  FJORD_TRY_ASSIGN(const DocumentView view, DocumentView::open(*condition->types, encoded.header, encoded.body));
  FJORD_TRY_ASSIGN(const Match match, condition->selection.try_evaluate(view));
  return match == Match::True;
}

namespace {

/// Texts of cells that contain escapes and so cannot be views of the row.
using Texts = std::deque<std::string>;

/// Returns the value by which a cell is ordered. Errors: Corruption.
Result<ScalarView> scalar_of(std::string_view cell, ColumnKind kind, Texts& texts) {
  ScalarView value;
  if (cell.empty()) return no_row();
  if (cell == "null") return value;
  if (cell == "true" || cell == "false") {
    value.kind = ScalarView::Kind::Integer;
    value.integer = cell == "true" ? 1 : 0;
    return value;
  }
  if (cell.front() == '"' && cell.size() >= 2 && cell.find('\\') == std::string_view::npos) {
    value.kind = ScalarView::Kind::String;
    value.string = cell.substr(1, cell.size() - 2);
  } else if (cell.front() == '"' || cell.front() == '{') {
    rapidjson::Document json;
    json.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseFullPrecisionFlag>(cell.data(), cell.size());
    if (json.HasParseError()) return no_row();
    const rapidjson::Value& one = plain(json);
    if (one.IsString()) {
      value.kind = ScalarView::Kind::String;
      value.string = texts.emplace_back(one.GetString(), one.GetStringLength());
    } else if (one.IsInt64()) {
      value.kind = ScalarView::Kind::Integer;
      value.integer = one.GetInt64();
    } else if (one.IsNumber()) {
      value.kind = ScalarView::Kind::Double;
      value.number = one.GetDouble();
      return canonical(value);
    }
  } else {
    const auto number = parse_number(cell);
    if (!number) return no_row();
    return *number;
  }
  if (value.kind == ScalarView::Kind::String && kind == ColumnKind::Number) {
    const double sign = value.string.starts_with('-') ? -1 : 1;
    value.kind = ScalarView::Kind::Double;
    value.number = sign * std::numeric_limits<double>::infinity();
  }
  return value;
}

}  // namespace

Result<std::vector<std::uint32_t>> AggregatePlan::arranged(std::span<const JobRows::Row> rows) const {
  std::vector<Order> order = order_;
  for (std::size_t i = 0; i < groups_.size(); ++i) order.push_back({i, false});
  const std::size_t width = order.size();
  std::vector<ScalarView> values;  // the values of the first row, then those of the second, and so on
  values.reserve(rows.size() * width);
  Texts texts;
  for (const JobRows::Row& row : rows) {
    FJORD_TRY_ASSIGN(const std::vector<std::string_view> cells, row_cells(row.value));
    if (cells.size() != columns_.size()) return no_row();
    for (const Order& by : order) {
      FJORD_TRY_ASSIGN(const ScalarView value, scalar_of(cells[by.column], columns_[by.column].kind, texts));
      values.push_back(value);
    }
  }
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    for (std::size_t i = 0; i < width; ++i) {
      const int difference = compare(values[a * width + i], values[b * width + i]);
      if (difference != 0) return order[i].descending ? difference > 0 : difference < 0;
    }
    return rows[a].key < rows[b].key;
  };
  std::vector<std::uint32_t> sorted(rows.size());
  std::iota(sorted.begin(), sorted.end(), 0u);
  if (limit_ == 0 || limit_ >= rows.size()) {
    std::sort(sorted.begin(), sorted.end(), before);
  } else {
    std::partial_sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(limit_), sorted.end(), before);
    sorted.resize(static_cast<std::size_t>(limit_));
  }
  return sorted;
}

Status AggregatePlan::arrange(std::vector<std::pair<std::string, std::string>>& rows) const {
  std::vector<JobRows::Row> views;
  views.reserve(rows.size());
  for (const auto& [key, row] : rows) views.push_back({key, row});
  FJORD_TRY_ASSIGN(const std::vector<std::uint32_t> order, arranged(views));
  std::vector<std::pair<std::string, std::string>> kept;
  kept.reserve(order.size());
  for (const std::uint32_t index : order) kept.push_back(std::move(rows[index]));
  rows = std::move(kept);
  return Status::ok();
}

Status AggregatePlan::arrange(JobRows& rows) const {
  std::vector<JobRows::Row> views;
  views.reserve(rows.size());
  for (const JobRows::Row& row : rows) views.push_back(row);
  FJORD_TRY_ASSIGN(const std::vector<std::uint32_t> order, arranged(views));
  JobRows kept;
  for (const std::uint32_t index : order) kept.add(views[index].key, views[index].value);
  rows = std::move(kept);
  return Status::ok();
}

}  // namespace fjord::mapreduce
