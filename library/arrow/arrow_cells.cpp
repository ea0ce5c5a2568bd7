#include <algorithm>
#include <utility>

#include "arrow/arrow_memory.h"
#include "arrow/arrow_stream.h"
#include "arrow/arrow_types.h"
#include "arrow/column_builder.h"
#include "fjord/library/arrow.h"

namespace fjord {
namespace {

/// Returns the type in which all cells of a column fit: numbers that are not all integers are Double, different kinds
/// of values are text.
TypeTag type_of(const AggregateResult& result, std::size_t column) {
  bool integers = true;
  bool numbers = true;
  bool bools = true;
  bool is_empty = true;
  for (const auto& row : result.rows) {
    const Cell& cell = row[column];
    if (std::holds_alternative<std::monostate>(cell)) continue;
    is_empty = false;
    const bool integer = std::holds_alternative<std::int64_t>(cell);
    integers = integers && integer;
    numbers = numbers && (integer || std::holds_alternative<double>(cell));
    bools = bools && std::holds_alternative<bool>(cell);
  }
  if (is_empty) return TypeTag::String;
  if (bools) return TypeTag::Bool;
  if (integers) return TypeTag::Long;
  return numbers ? TypeTag::Double : TypeTag::String;
}

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
  } else {
    const auto* integer = std::get_if<std::int64_t>(&cell);
    const double number = integer != nullptr ? static_cast<double>(*integer) : std::get<double>(cell);
    static_cast<void>(column.append(slice_of(type, number)));
  }
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
  for (std::size_t i = 0; i < result.columns.size(); ++i) {
    const TypeTag tag = type_of(result, i);
    const auto type = DataType::primitive(tag);
    const auto column = ColumnBuilder::make(*type);
    for (const auto& row : result.rows) append(*column, tag, row[i]);
    table.children.push_back(arrow_field_of(*type, result.columns[i]));
    column->finish(&memory.children[i]);
  }
  ArrowArray batch;
  export_array(std::move(memory), static_cast<std::int64_t>(result.rows.size()), 0, &batch);
  export_stream(std::make_unique<OneBatch>(std::move(table), batch), out);
}

}  // namespace fjord
