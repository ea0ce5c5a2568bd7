#pragma once

#include <string>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document_type.h"

namespace fjord {

/// The documents, and the fields of them, that a visit or a subscription asks for.
struct DocumentQuery {
  std::string selection;           ///< Never empty.
  std::string field_set;           ///< Fields that the servers cut out, for which they must know the type. Empty: all.
  std::vector<std::string> names;  ///< Fields to cut out here, of any type that has them; none: all that came.

  /// `fields` is "title,year" or a field set. Without a type, the documents that jobs keep for themselves are left out.
  /// Errors: UnknownType, InvalidField, InvalidSelection.
  static Result<DocumentQuery> make(const std::string& type, const std::string& selection, const std::string& fields,
                                    const DocumentTypeRepo& types);
};

}  // namespace fjord
