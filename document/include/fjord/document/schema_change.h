#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fjord/common/status.h"
#include "fjord/document/document_type.h"

namespace fjord {

/// A reason why documents that are stored could not be read as before under a new schema.
struct SchemaProblem {
  enum class Kind : std::uint8_t {
    TypeRemoved,
    FieldRemoved,        ///< of a document or of a struct
    TypeChanged,         ///< of a field, an element, a key or a member
    FieldMoved,          ///< from the body to the header part
    InheritanceRemoved,  ///< a type no longer inherits one that it inherited
    IdTaken,             ///< a new name has the id of one that is given up
  };

  Kind kind = Kind::TypeRemoved;
  /// "song"; "song.title"; "song.credit.share" for a member of the struct credit; "song inherits media".
  std::string place;
  std::string why;
  std::string instead;  ///< What to do.

  /// "song.title: <why>; <what to do>"
  std::string to_string() const;
};

struct SchemaChangeOptions {
  /// Places, as in SchemaProblem, whose data may be lost: what is removed there is no problem.
  std::vector<std::string> may_drop;
};

/// All problems of a change, in the order in which `from` declares what they are about. Adding types, fields and
/// members of structs, inheriting more, moving fields from the header to the body, changing the order, compression or
/// the names of structs are none.
std::vector<SchemaProblem> schema_problems(const DocumentTypeRepo& from, const DocumentTypeRepo& to,
                                           const SchemaChangeOptions& options = {});

/// OK if there are no problems. Errors: InvalidArgument with all of them (the first twenty), one a line.
Status check_schema_change(const DocumentTypeRepo& from, const DocumentTypeRepo& to,
                           const SchemaChangeOptions& options = {});

}  // namespace fjord
