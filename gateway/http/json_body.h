#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fjord/common/result.h"

namespace fjord::gateway {

/// The members of the body of a put or an update. Other members are ignored.
struct DocumentBody {
  std::string fields;  ///< The JSON object as it was sent.
  std::optional<std::string> condition;
  std::optional<bool> create;
};

/// Errors: InvalidArgument for malformed JSON, text after the object, a missing `fields`, a member that is there twice,
/// or too deep nesting.
Result<DocumentBody> read_document_body(std::string_view json);

/// Appends a JSON string. A text that is not UTF-8 gets replacement characters.
void append_json_string(std::string& to, std::string_view text);

}  // namespace fjord::gateway
