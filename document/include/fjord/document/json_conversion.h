#pragma once

#include <string_view>

#include "fjord/document/json.h"

namespace fjord {

/// The kinds of JSON values that a field takes.
enum class JsonValues : bool {
  Exact,      ///< Texts for texts, numbers for numbers.
  Converted,  ///< Also a text with the digits of a number for a number, "true" and "false" for a bool, and a number or
              ///< a bool for a text, which becomes its digits or its word. Other systems write such values.
};

/// As the functions of json.h, with a choice of values.
Result<FeedOperation> parse_feed_operation(const DocumentTypeRepo& repo, std::string_view json, JsonValues values);
Result<EncodedDocument> fields_from_json(const DocumentType& type, const DocumentId& id, std::string_view json_object,
                                         JsonValues values);

}  // namespace fjord
