#include "document_lines.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

#include "fjord/document/document.h"
#include "fjord/document/field_set.h"
#include "fjord/document/json.h"
#include "fjord/document/selection.h"
#include "json_text.h"

namespace fjord::cli {
namespace {

constexpr std::uint64_t kSlicesMax = 1'000'000;

/// The names in "a,b".
std::vector<std::string> names_of(const std::string& fields) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < fields.size();) {
    const std::size_t end = std::min(fields.find(',', at), fields.size());
    if (end > at) names.push_back(fields.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

Status check_names(const std::string& type_name, const std::vector<std::string>& names, const DocumentTypeRepo& types) {
  for (const std::string& name : names) {
    const bool known = std::any_of(types.types().begin(), types.types().end(), [&](const auto& type) {
      return (type_name.empty() || type->is_a(type_name)) && type->field(name) != nullptr;
    });
    if (!known) {
      return {StatusCode::InvalidField,
              fmt::format("no field \"{}\" in {}", name, type_name.empty() ? "any type" : type_name)};
    }
  }
  return Status::ok();
}

}  // namespace

Result<DocumentQuery> DocumentQuery::make(const std::string& type, const std::string& selection,
                                          const std::string& fields, const DocumentTypeRepo& types) {
  DocumentQuery query;
  if (!type.empty() && types.find(type) == nullptr) {
    return Status(StatusCode::UnknownType, fmt::format("there is no document type \"{}\"", type));
  }
  if (fields.starts_with('[') || fields.find(':') != std::string::npos) {
    query.field_set = fields;
  } else if (!fields.empty() && !type.empty()) {
    FJORD_TRY(check_names(type, names_of(fields), types));
    query.field_set = fmt::format("{}:{}", type, fields);
  } else {
    query.names = names_of(fields);
    FJORD_TRY(check_names(type, query.names, types));
  }
  if (!query.field_set.empty()) {
    if (const auto parsed = FieldSet::parse(types, query.field_set); !parsed) return parsed.error();
  }
  const std::string of_type = type.empty() ? "not fjord_tuples and not fjord_job" : type;
  query.selection = selection.empty() ? of_type : fmt::format("({}) and ({})", of_type, selection);
  if (const auto parsed = Selection::parse(selection, types); !parsed) return parsed.error();
  return query;
}

Result<std::uint64_t> DocumentLines::append(const std::string& docblock, std::uint64_t limit, std::string& out,
                                            const Filter& is_wanted) {
  std::uint64_t count = 0;
  DocBlockReader reader(docblock);
  while (count < limit) {
    const auto entry = reader.next();
    if (!entry) break;
    if (is_wanted && !is_wanted(*entry)) continue;
    ++count;
    if (entry->removed) {
      JsonText line;
      line.begin_object().key("remove").text(entry->id);
      if (timestamps_) line.key("timestamp_us").number(entry->timestamp.us);
      out += line.end_object().str() + '\n';
      continue;
    }
    if (entry->header.empty()) continue;  // The field set [none].
    FJORD_TRY_ASSIGN(const DocumentView view, DocumentView::open(*types_, entry->header, entry->body));
    if (view.type() == nullptr) {
      return Status(StatusCode::UnknownType, fmt::format("the schema of {} is not known here", view.id()));
    }
    FJORD_TRY_ASSIGN(const std::string json, to_json_document(view, fields_of(*view.type())));
    out += json;
    if (timestamps_) {
      out.pop_back();
      out += fmt::format(",\"timestamp_us\":{}}}", entry->timestamp.us);
    }
    out += '\n';
  }
  if (!reader.ok()) return Status(StatusCode::Corruption, "a block of documents is malformed");
  return count;
}

std::span<const Field* const> DocumentLines::fields_of(const DocumentType& type) {
  auto [at, is_new] = by_type_.try_emplace(&type);
  if (is_new) {
    for (const std::string& name : names_) {
      if (const Field* field = type.field(name)) at->second.push_back(field);
    }
  }
  return at->second;
}

Result<visitors::PositionRange> parse_slice(const std::string& text) {
  std::uint64_t index = 0;
  std::uint64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, index);
  const bool has_slash = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  const auto second = has_slash ? std::from_chars(first.ptr + 1, end, count) : first;
  if (!has_slash || second.ec != std::errc() || second.ptr != end || index == 0 || index > count ||
      count > kSlicesMax) {
    return Status(StatusCode::InvalidArgument, fmt::format("\"{}\" is no slice: 1/4 to 4/4, for example", text));
  }
  return visitors::PositionRange::slice(index - 1, count);
}

}  // namespace fjord::cli
