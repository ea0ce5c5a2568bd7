#include "fjord/library/detail/document_query.h"

#include <algorithm>
#include <fmt/format.h>

#include "fjord/document/field_set.h"
#include "fjord/document/selection.h"

namespace fjord {
namespace {

/// Splits "a,b" into names.
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
  // Leaves out the documents of jobs and of searches. The latter are named by id, because a storage node of an earlier
  // version does not know their types.
  const std::string of_type = type.empty() ? "not fjord_tuples and not fjord_job and not fjord_result"
                                             " and not id = \"id:fjord:fjord_affinity:*\""
                                             " and not id = \"id:fjord:fjord_synonyms:*\""
                                             " and not id = \"id:fjord:fjord_queries:*\""
                                           : type;
  query.selection = selection.empty() ? of_type : fmt::format("({}) and ({})", of_type, selection);
  if (const auto parsed = Selection::parse(selection, types); !parsed) return parsed.error();
  return query;
}

}  // namespace fjord
