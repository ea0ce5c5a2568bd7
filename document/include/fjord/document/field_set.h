#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document.h"
#include "fjord/document/document_type.h"

namespace fjord {

/// The parts of a document after projection. Views of what went in, or of the buffer.
struct ProjectedDocument {
  std::string_view header;
  std::string_view body;
};

/// Which fields of documents a reader wants:
///   [all], [document]     everything
///   <type>:[document]     all fields that <type> has
///   <type>:<field>,...    these fields
///   [id]                  the document's id and type, no field
///   [none]                nothing at all: both parts empty
/// Sets that name a type hold for documents of it and of types that inherit it; of other documents they keep the id.
///
/// Threading: a value, read from any thread. Lifetime: independent of the repo it was parsed with; a type added later
/// counts as another type.
class FieldSet {
 public:
  enum class Kind : std::uint8_t { All, Fields, Id, None };

  /// [all]
  FieldSet() = default;
  /// Errors: UnknownType, InvalidField or InvalidArgument with the position in `text` and what is known there.
  static Result<FieldSet> parse(const DocumentTypeRepo& repo, std::string_view text);

  Kind kind() const { return kind_; }
  /// In the form of parse(), without white space.
  const std::string& text() const { return text_; }

  /// True if fields of the header part are kept. Id and type, which every set but [none] keeps, are in it, too.
  bool needs_header_fields() const { return kind_ == Kind::All || needs_header_fields_; }
  /// True if fields of the body part are kept; else project() does not look at the body, which may be left empty.
  bool needs_body() const { return kind_ == Kind::All || needs_body_; }

  /// `header` and `body` of one document without the fields that are not wanted. Copies only if some fields of a part
  /// are kept and others not, and then into `buffer`, which the caller reuses so that nothing is allocated for most
  /// documents. The views live until `buffer` or what went in changes. Errors: Corruption.
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
  std::vector<TypeFields> types_;  // by rising type id; of Kind::Fields
};

}  // namespace fjord
