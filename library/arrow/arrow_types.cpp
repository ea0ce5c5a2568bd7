#include "arrow/arrow_types.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <utility>

#include "fjord/library/arrow.h"

namespace fjord {
namespace {

const char* format_of(TypeTag tag) {
  switch (tag) {
    case TypeTag::Int:
      return "i";
    case TypeTag::Long:
      return "l";
    case TypeTag::Float:
      return "f";
    case TypeTag::Double:
      return "g";
    case TypeTag::Bool:
      return "b";
    case TypeTag::Byte:
      return "c";
    case TypeTag::Raw:
      return "z";
    case TypeTag::Array:
      return "+l";
    case TypeTag::WeightedSet:
    case TypeTag::Map:
      return "+m";
    case TypeTag::Struct:
      return "+s";
    default:
      return "u";
  }
}

constexpr std::string_view unit_of(char letter) {
  switch (letter) {
    case 's':
      return "s";
    case 'm':
      return "ms";
    case 'u':
      return "us";
    default:
      return "ns";
  }
}

/// Writes the schema of a document type, column by column.
class SdWriter {
 public:
  explicit SdWriter(std::vector<std::string>& problems) : problems_(problems) {}

  /// Adds a field if the column fits.
  void add(const ArrowSchema& column) {
    const std::string name = column.name;
    if (name == kIdColumn || name == kVersionColumn) return;
    if (!names_.insert(name).second) {
      problem(name, "left out, because a column before it has the same name: rename the column");
      return;
    }
    const std::string type = type_of(column, name);
    if (!type.empty() && check_name(name, name)) fields_ += fmt::format("    field {} type {} {{}}\n", name, type);
  }
  bool is_empty() const { return fields_.empty(); }
  std::string text(const std::string& type) const {
    return fmt::format("schema {0} {{\n  document {0} {{\n{1}{2}  }}\n}}\n", type, structs_, fields_);
  }

  static bool is_name(const std::string& name) {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    const auto fits = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
    return !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), fits);
  }

 private:
  std::string problem(const std::string& path, const std::string& text) {
    problems_.push_back(path + ": " + text);
    return {};
  }

  bool check_name(const std::string& name, const std::string& path) {
    if (is_name(name)) return true;
    problem(path, "left out, because a field's name has letters, digits and _ only: rename the column");
    return false;
  }

  /// Returns the type in a schema; empty if there is none, after a report.
  std::string type_of(const ArrowSchema& column, const std::string& path) {
    if (column.dictionary != nullptr) return type_of(*column.dictionary, path);
    const std::string format = column.format;
    static constexpr std::array<std::pair<const char*, const char*>, 17> kTypes{{{"u", "string"},
                                                                                 {"U", "string"},
                                                                                 {"vu", "string"},
                                                                                 {"z", "raw"},
                                                                                 {"Z", "raw"},
                                                                                 {"vz", "raw"},
                                                                                 {"b", "bool"},
                                                                                 {"c", "byte"},
                                                                                 {"C", "int"},
                                                                                 {"s", "int"},
                                                                                 {"S", "int"},
                                                                                 {"i", "int"},
                                                                                 {"I", "long"},
                                                                                 {"l", "long"},
                                                                                 {"L", "long"},
                                                                                 {"f", "float"},
                                                                                 {"g", "double"}}};
    if (format == "L") problem(path, "values of 2^63 and more do not fit and are refused");
    for (const auto& [arrow, type] : kTypes) {
      if (format == arrow) return type;
    }
    if (format.starts_with("w:")) return "raw";
    if (format == "+s") return struct_of(column, path);
    if (format == "+m") return map_of(*column.children[0], path, is_weighted_set(column));
    if (format == "+l" || format == "+L" || format.starts_with("+w:")) return list_of(*column.children[0], path);
    return problem(path, fmt::format("left out, because documents have no type for Arrow's {}: cast it to one that "
                                     "they have, such as int64 or string",
                                     arrow_type_name(format)));
  }

  static bool is_weighted_set(const ArrowSchema& column) {
    const auto metadata = metadata_of(column);
    const auto kind = metadata.find(kArrowKey);
    return kind != metadata.end() && kind->second == kArrowWeightedSet;
  }

  std::string list_of(const ArrowSchema& item, const std::string& path) {
    const std::string element = type_of(item, path + "[]");
    return element.empty() ? element : fmt::format("array<{}>", element);
  }

  std::string map_of(const ArrowSchema& entries, const std::string& path, bool is_set) {
    const std::string key = type_of(*entries.children[0], path + "{key}");
    const std::string value = type_of(*entries.children[1], path + "{value}");
    if (key.empty() || value.empty()) return {};
    for (const char* fit : {"string", "int", "long", "bool", "byte"}) {
      if (key == fit) return is_set ? fmt::format("weightedset<{}>", key) : fmt::format("map<{}, {}>", key, value);
    }
    return problem(path, fmt::format("left out, because the keys of a map cannot be of type {}", key));
  }

  std::string struct_of(const ArrowSchema& column, const std::string& path) {
    std::string members;
    std::set<std::string> names;
    for (std::int64_t i = 0; i < column.n_children; ++i) {
      const ArrowSchema& member = *column.children[i];
      const std::string place = fmt::format("{}.{}", path, member.name);
      if (!names.insert(member.name).second) {
        problem(place, "left out, because a member before it has the same name: rename it");
        continue;
      }
      const std::string type = type_of(member, place);
      if (!type.empty() && check_name(member.name, place)) {
        members += fmt::format(" field {} type {} {{}}", member.name, type);
      }
    }
    if (members.empty()) return problem(path, "left out, because no member fits");
    std::string name;
    for (const char c : path) name += is_name(std::string("_") + c) ? c : '_';
    name += fmt::format("_{}", ++structs_made_);
    structs_ += fmt::format("    struct {} {{{} }}\n", name, members);
    return name;
  }

  std::vector<std::string>& problems_;
  std::set<std::string> names_;  ///< Names of the columns so far.
  std::string structs_;
  std::string fields_;
  int structs_made_ = 0;
};

}  // namespace

std::string arrow_type_name(std::string_view format) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 35> kNames{
      {{"n", "null"},
       {"b", "bool"},
       {"c", "int8"},
       {"C", "uint8"},
       {"s", "int16"},
       {"S", "uint16"},
       {"i", "int32"},
       {"I", "uint32"},
       {"l", "int64"},
       {"L", "uint64"},
       {"f", "float"},
       {"g", "double"},
       {"z", "binary"},
       {"Z", "large_binary"},
       {"vz", "binary_view"},
       {"u", "string"},
       {"U", "large_string"},
       {"vu", "string_view"},
       {"+l", "list"},
       {"+L", "large_list"},
       {"+s", "struct"},
       {"+m", "map"},
       {"e", "halffloat"},
       {"tdD", "date32"},
       {"tdm", "date64"},
       {"tts", "time32[s]"},
       {"ttm", "time32[ms]"},
       {"ttu", "time64[us]"},
       {"ttn", "time64[ns]"},
       {"tiM", "month_interval"},
       {"tiD", "day_time_interval"},
       {"tin", "month_day_nano_interval"},
       {"+r", "run_end_encoded"},
       {"+vl", "list_view"},
       {"+vL", "large_list_view"}}};
  for (const auto& [code, name] : kNames) {
    if (format == code) return std::string(name);
  }
  if (format.starts_with("ts") && format.size() >= 4) {
    const std::string_view zone = format.substr(4);
    return fmt::format("timestamp[{}{}{}]", unit_of(format[2]), zone.empty() ? "" : ", tz=", zone);
  }
  if (format.starts_with("tD") && format.size() == 3) return fmt::format("duration[{}]", unit_of(format[2]));
  if (format.starts_with("w:")) return fmt::format("fixed_size_binary[{}]", format.substr(2));
  if (format.starts_with("+w:")) return fmt::format("fixed_size_list[{}]", format.substr(3));
  if (format.starts_with("d:")) return fmt::format("decimal({})", format.substr(2));
  if (format.starts_with("+ud:")) return "dense_union";
  if (format.starts_with("+us:")) return "sparse_union";
  return std::string(format);
}

SchemaNode arrow_field_of(const DataType& type, std::string name, bool nullable) {
  SchemaNode node{format_of(type.tag()), std::move(name), nullable};
  switch (type.tag()) {
    case TypeTag::Array:
      node.children.push_back(arrow_field_of(*type.element(), "item"));
      break;
    case TypeTag::Map:
      node.children.push_back({"+s",
                               "entries",
                               false,
                               {},
                               {arrow_field_of(*type.key(), "key", false), arrow_field_of(*type.element(), "value")}});
      break;
    case TypeTag::WeightedSet:
      node.metadata = {{kArrowKey, kArrowWeightedSet}};
      node.children.push_back(
          {"+s", "entries", false, {}, {arrow_field_of(*type.element(), "key", false), {"i", "value", false}}});
      break;
    case TypeTag::Struct:
      for (const Field& member : type.fields()) node.children.push_back(arrow_field_of(*member.type, member.name));
      break;
    default:
      break;
  }
  return node;
}

void arrow_schema_of(const DocumentType& type, ArrowSchema* out) {
  SchemaNode table{"+s", "", false, {{kArrowKey, kArrowExport}}, {{"u", kIdColumn, false}}};
  for (const Field& field : type.fields()) table.children.push_back(arrow_field_of(*field.type, field.name));
  export_schema(table, out);
}

Result<ArrowSchemaFit> sd_of_arrow_schema(const ArrowSchema& schema, const std::string& type) {
  if (std::string_view(schema.format) != "+s") {
    return Status(
        StatusCode::InvalidArgument,
        fmt::format("the Arrow type is \"{}\": expected a table, which is a struct of columns", schema.format));
  }
  if (!SdWriter::is_name(type)) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("\"{}\" is not a name of a type: expected letters, digits and _", type));
  }
  ArrowSchemaFit fit;
  SdWriter writer(fit.problems);
  for (std::int64_t i = 0; i < schema.n_children; ++i) writer.add(*schema.children[i]);
  if (writer.is_empty()) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("no column of the table fits a field: {}", fmt::join(fit.problems, "; ")));
  }
  fit.sd = writer.text(type);
  return fit;
}

}  // namespace fjord
