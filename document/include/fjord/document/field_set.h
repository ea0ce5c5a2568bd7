#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document.h"
#include "fjord/document/document_type.h"

namespace fjord {

/// The parts of a document after projection. Lifetime: views of the input or of the buffer.
struct ProjectedDocument {
  std::string_view header;
  std::string_view body;
};

/// The fields of documents that a reader wants:
///   [all], [document]     everything
///   <type>:[document]     all fields that <type> has
///   <type>:<field>,...    these fields
///   [id]                  the document's id and type, no field
///   [none]                nothing at all: both parts empty
/// A set that names a type applies to documents of that type and of types that inherit it. It keeps only the id of
/// other documents.
///
/// Threading: a value, read from any thread. Lifetime: independent of the repo it was parsed with. A type that the
/// schema gets later counts as another type.
class FieldSet {
 public:
  enum class Kind : std::uint8_t { All, Fields, Id, None };

  /// The set [all].
  FieldSet() = default;
  /// Errors: UnknownType, InvalidField or InvalidArgument with the position in `text` and the names that are valid
  /// there.
  static Result<FieldSet> parse(const DocumentTypeRepo& repo, std::string_view text);

  Kind kind() const { return kind_; }
  /// The text that parse() accepts, without white space.
  const std::string& text() const { return text_; }

  /// True if fields of the header part are kept. Every set but [none] keeps id and type, which are also in the header
  /// part.
  bool needs_header_fields() const { return kind_ == Kind::All || needs_header_fields_; }
  /// True if fields of the body part are kept. If false, project() ignores the body, which may be empty.
  bool needs_body() const { return kind_ == Kind::All || needs_body_; }

  /// Returns `header` and `body` of one document without the unwanted fields. Copies only if a part has wanted and
  /// unwanted fields, and then into `buffer`; the caller reuses it, so most documents cost no allocation. Lifetime: the
  /// views live until `buffer` or the input changes. Errors: Corruption.
  Result<ProjectedDocument> project(std::string_view header, std::string_view body, EncodedDocument& buffer) const;

 private:
  friend class FieldSetParser;
  struct TypeFields {
    std::uint32_t type_id;
    std::vector<std::uint32_t> field_ids;  // rising
  };

  Kind kind_ = Kind::All;
  bool needs_header_fields_ = false;
  bool needs_body_ = false;
  std::string text_ = "[all]";
  std::vector<TypeFields> types_;  // ascending by type id; empty unless Kind::Fields
};

}  // namespace fjord
