#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "arrow/arrow_memory.h"
#include "arrow/arrow_stream.h"
#include "arrow/arrow_types.h"
#include "arrow/column_builder.h"
#include "fjord/common/coding.h"
#include "fjord/library/arrow.h"

namespace fjord {
namespace {

/// The most digits that a column of Decimals has.
constexpr std::size_t kDigitsMax = 38;

/// Returns the type of a column, which follows from what the column is, so that it is the same for other rows.
TypeTag type_of(CellType type) {
  switch (type) {
    case CellType::Integer:
      return TypeTag::Long;
    case CellType::Number:
      return TypeTag::Double;
    case CellType::Truth:
      return TypeTag::Bool;
    case CellType::Text:
    case CellType::Json:
      break;
  }
  return TypeTag::String;
}

/// Returns the length of the longest integer of more than 64 bits in a column; 0 if there is none.
std::size_t digits_of(const AggregateResult& result, std::size_t column) {
  std::size_t digits = 0;
  for (const auto& row : result.rows) {
    if (const Json* number = std::get_if<Json>(&row[column])) digits = std::max(digits, number->text.size());
  }
  return digits;
}

/// A column of integers of 128 bits, of which some have more than 64.
class DecimalBuilder {
 public:
  void append(const Cell& cell) {
    __int128 number = 0;
    const bool is_null = std::holds_alternative<std::monostate>(cell);
    if (const auto* integer = std::get_if<std::int64_t>(&cell)) number = *integer;
    if (const auto* digits = std::get_if<Json>(&cell)) number = integer_of(digits->text);
    valid_.add(!is_null);
    put_fixed(values_, static_cast<std::uint64_t>(number));
    put_fixed(values_, static_cast<std::uint64_t>(number >> 64));
  }
  void finish(ArrowArray* out) {
    const auto rows = static_cast<std::int64_t>(valid_.rows());
    const auto nulls = static_cast<std::int64_t>(valid_.zeros());
    export_array({{valid_.take(), std::move(values_)}, {}}, rows, nulls, out);
  }

 private:
  static __int128 integer_of(std::string_view digits) {
    const bool is_negative = digits.starts_with('-');
    __int128 number = 0;
    for (const char c : digits.substr(is_negative ? 1 : 0)) number = number * 10 + (c - '0');
    return is_negative ? -number : number;
  }

  Bitmap valid_;
  std::string values_;
};

template <typename T>
FieldSlice slice_of(TypeTag tag, const T& value) {
  return {tag, {reinterpret_cast<const char*>(&value), sizeof(T)}};
}

void append(ColumnBuilder& column, TypeTag type, const Cell& cell) {
  if (std::holds_alternative<std::monostate>(cell)) return column.append_null();
  if (type == TypeTag::String) {
    static_cast<void>(column.append({type, to_string(cell)}));
  } else if (type == TypeTag::Bool) {
    static_cast<void>(column.append(slice_of(type, std::get<bool>(cell))));
  } else if (type == TypeTag::Long) {
    static_cast<void>(column.append(slice_of(type, std::get<std::int64_t>(cell))));
  } else if (const auto* number = std::get_if<double>(&cell)) {
    static_cast<void>(column.append(slice_of(type, *number)));
  } else {
    column.append_null();
  }
}

/// Adds a column of the result to the table.
void add_column(const AggregateResult& result, std::size_t i, SchemaNode& table, ArrowArray* out) {
  TypeTag tag = type_of(result.types[i]);
  const std::size_t digits = tag == TypeTag::Long ? digits_of(result, i) : 0;
  if (digits > kDigitsMax) tag = TypeTag::String;
  if (digits > 0 && digits <= kDigitsMax) {
    DecimalBuilder column;
    for (const auto& row : result.rows) column.append(row[i]);
    table.children.push_back({fmt::format("d:{},0", kDigitsMax), result.columns[i], true});
    return column.finish(out);
  }
  const auto type = DataType::primitive(tag);
  const auto column = ColumnBuilder::make(*type);
  for (const auto& row : result.rows) append(*column, tag, row[i]);
  table.children.push_back(arrow_field_of(*type, result.columns[i]));
  column->finish(out);
}

/// One batch, made in advance.
class OneBatch : public BatchSource {
 public:
  OneBatch(SchemaNode table, ArrowArray batch) : table_(std::move(table)), batch_(batch) {}
  ~OneBatch() override {
    if (batch_.release != nullptr) batch_.release(&batch_);
  }
  void schema(ArrowSchema* out) override { export_schema(table_, out); }
  Result<bool> next(ArrowArray* out) override {
    if (batch_.release == nullptr) return false;
    *out = std::exchange(batch_, {});
    return true;
  }

 private:
  SchemaNode table_;
  ArrowArray batch_;
};

}  // namespace

void aggregate_to_arrow(const AggregateResult& result, ArrowArrayStream* out) {
  SchemaNode table{"+s", "", false};
  ArrayMemory memory{{{}}, std::vector<ArrowArray>(result.columns.size())};
  for (std::size_t i = 0; i < result.columns.size(); ++i) add_column(result, i, table, &memory.children[i]);
  ArrowArray batch;
  export_array(std::move(memory), static_cast<std::int64_t>(result.rows.size()), 0, &batch);
  export_stream(std::make_unique<OneBatch>(std::move(table), batch), out);
}

}  // namespace fjord
