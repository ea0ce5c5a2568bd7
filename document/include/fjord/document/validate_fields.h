#pragma once

#include <string_view>

#include "fjord/common/status.h"
#include "fjord/document/document.h"
#include "fjord/document/document_type.h"

namespace fjord {

/// Checks the fields of a document as validate() does, for a caller that knows the id to be right: parsing an id
/// computes hashes. `header_fields` is DocumentView::header_fields(). Errors: those of validate(), without the id.
Status validate_fields(const DocumentType& type, std::string_view header_fields, std::string_view body);

/// Returns whether a stored value is one of `type`, by its kind and that of its elements. It may be of a field that was
/// dropped and came back with another type; then the field counts as not set.
bool is_value_of(const DataType& type, const FieldSlice& slice);

}  // namespace fjord
