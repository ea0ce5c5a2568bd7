#pragma once

#include <string>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document_type.h"

namespace fjord {

/// The documents and fields that a visit or a subscription asks for.
struct DocumentQuery {
  std::string selection;           ///< Never empty.
  std::string field_set;           ///< Fields that the servers select; they need the type for it. Empty: all.
  std::vector<std::string> names;  ///< Fields that the client selects, in documents of any type; empty: all.

  /// `fields` is "title,year" or a field set. Without a type, the query excludes the internal documents of jobs.
  /// Errors: UnknownType, InvalidField, InvalidSelection.
  static Result<DocumentQuery> make(const std::string& type, const std::string& selection, const std::string& fields,
                                    const DocumentTypeRepo& types);
};

}  // namespace fjord
