#pragma once

#include <string_view>

#include "fjord/common/status.h"
#include "fjord/document/document_type.h"

namespace fjord {

/// Checks the fields of a document as validate() does, for a caller that knows the id to be right: parsing an id
/// computes hashes. `header_fields` is DocumentView::header_fields(). Errors: those of validate(), without the id.
Status validate_fields(const DocumentType& type, std::string_view header_fields, std::string_view body);

}  // namespace fjord
