#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fjord/common/status.h"
#include "fjord/document/document_type.h"

namespace fjord {

/// A reason why stored documents could not be read as before under a new schema.
struct SchemaProblem {
  enum class Kind : std::uint8_t {
    TypeRemoved,
    FieldRemoved,        ///< of a document type or a struct
    TypeChanged,         ///< the type of a field, element, key or member
    FieldMoved,          ///< a field moved from the body to the header part
    InheritanceRemoved,  ///< a type no longer inherits one of its former base types
    IdTaken,             ///< a new name has the same id as a removed name
  };

  Kind kind = Kind::TypeRemoved;
  /// The affected place: "song"; "song.title"; "song.credit.share" for a member of the struct credit; "song inherits
  /// media".
  std::string place;
  std::string why;
  std::string instead;  ///< The advice: what the operator should do.

  /// "song.title: <why>; <what to do>"
  std::string to_string() const;
};

struct SchemaChangeOptions {
  /// Places, in the form of SchemaProblem::place, whose data may be lost: a removal there is not reported.
  std::vector<std::string> may_drop;
};

/// All problems of a change from `from` to `to`, in the order of the declarations in `from`. These changes are no
/// problem: adding types, fields and members of structs, inheriting more, moving fields from the header to the body,
/// changing the order, the compression or the names of structs.
std::vector<SchemaProblem> schema_problems(const DocumentTypeRepo& from, const DocumentTypeRepo& to,
                                           const SchemaChangeOptions& options = {});

/// OK if there are no problems. Errors: InvalidArgument that lists the problems (at most twenty), one a line.
Status check_schema_change(const DocumentTypeRepo& from, const DocumentTypeRepo& to,
                           const SchemaChangeOptions& options = {});

}  // namespace fjord
