#include "csv_lines.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <type_traits>

#include "fjord/document/docblock.h"
#include "fjord/document/json.h"
#include "fjord/library/detail/csv_cell.h"

namespace fjord {
namespace {

template <typename T>
std::string number_text(T value) {
  if constexpr (std::is_floating_point_v<T>) {  // As in JSON (document/FEED.md).
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  }
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

/// Returns the field's value alone, as JSON.
Result<std::string> json_of(const DocumentView& view, const Field& field) {
  const Field* const only[] = {&field};
  FJORD_TRY_ASSIGN(const std::string object, to_json_fields(view, only));
  const std::size_t colon = object.find(':', field.name.size());
  if (colon == std::string::npos) return Status(StatusCode::Corruption, "a field without a value: " + field.name);
  return object.substr(colon + 1, object.size() - colon - 2);
}

Result<std::string> cell_of(const DocumentView& view, const Field& field, const FieldSlice& slice) {
  switch (slice.tag) {
    case TypeTag::String:
      return slice.bytes.empty() ? std::string("\"\"") : csv_cell(slice.bytes);
    case TypeTag::Raw:
      return slice.bytes.empty() ? std::string("\"\"") : base64_encode(slice.bytes);
    case TypeTag::Bool:
      return std::string(slice.as_bool() ? "true" : "false");
    case TypeTag::Float:
      return number_text(static_cast<float>(slice.as_double()));
    case TypeTag::Double:
      return number_text(slice.as_double());
    case TypeTag::Int:
    case TypeTag::Long:
    case TypeTag::Byte:
      return number_text(slice.as_int64());
    default: {
      FJORD_TRY_ASSIGN(const std::string json, json_of(view, field));
      return csv_cell(json);
    }
  }
}

Result<std::vector<std::string>> named(const DocumentTypeRepo& types, const std::string& type,
                                       const std::string& fields) {
  std::string_view rest = fields;
  if (rest.starts_with(type + ":")) rest.remove_prefix(type.size() + 1);
  if (rest.starts_with('[') || rest.find(':') != std::string_view::npos) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("--fields {}: a CSV file has columns, expected the names of fields: a,b", fields));
  }
  std::vector<std::string> names;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string name(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) continue;
    const bool is_known = std::any_of(types.types().begin(), types.types().end(),
                                      [&](const auto& one) { return one->is_a(type) && one->field(name) != nullptr; });
    if (!is_known) return Status(StatusCode::InvalidField, fmt::format("no field \"{}\" in {}", name, type));
    names.push_back(name);
  }
  return names;
}

}  // namespace

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c;
    if (c == '"') quoted += c;
  }
  return quoted + "\"";
}

Result<CsvLines> CsvLines::make(std::shared_ptr<const DocumentTypeRepo> types, const std::string& type,
                                const std::string& fields) {
  if (type.empty()) {
    return Status(StatusCode::InvalidArgument,
                  "a CSV file needs --type: its columns are the fields of one document type; "
                  "FILE.jsonl or FILE.parquet hold documents of all types");
  }
  if (types->find(type) == nullptr) {
    return Status(StatusCode::UnknownType, fmt::format("there is no document type \"{}\"", type));
  }
  std::vector<std::string> columns;
  if (fields.empty()) {
    for (const auto& one : types->types()) {
      if (!one->is_a(type)) continue;
      for (const Field& field : one->fields()) {
        if (std::find(columns.begin(), columns.end(), field.name) == columns.end()) columns.push_back(field.name);
      }
    }
  } else {
    FJORD_TRY_ASSIGN(columns, named(*types, type, fields));
  }
  return CsvLines(std::move(types), std::move(columns));
}

std::string CsvLines::header() const {
  std::string line = "_id";
  for (const std::string& column : columns_) line += "," + csv_cell(column);
  return line + "\n";
}

Result<std::uint64_t> CsvLines::append(const std::string& docblock, std::string& out) const {
  std::uint64_t count = 0;
  DocBlockReader reader(docblock);
  while (const auto entry = reader.next()) {
    if (entry->removed || entry->header.empty()) continue;
    FJORD_TRY_ASSIGN(const DocumentView view, DocumentView::open(*types_, entry->header, entry->body));
    if (view.type() == nullptr) {
      return Status(StatusCode::UnknownType, fmt::format("the schema of {} is not known here", view.id()));
    }
    out += csv_cell(view.id());
    for (const std::string& column : columns_) {
      out += ',';
      const Field* const field = view.type()->field(column);
      const std::optional<FieldSlice> slice = field == nullptr ? std::nullopt : view.field(column);
      if (!slice) continue;
      FJORD_TRY_ASSIGN(const std::string cell, cell_of(view, *field, *slice));
      out += cell;
    }
    out += '\n';
    ++count;
  }
  if (!reader.ok()) return Status(StatusCode::Corruption, "a block of documents is malformed");
  return count;
}

}  // namespace fjord
