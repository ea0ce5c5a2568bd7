#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fjord/common/result.h"

namespace fjord::fleetcontroller {

/// The name of the document type that a .sd text declares: the word after the first `document`, comments passed over. A
/// text is replaced by one that declares the same type. Errors: InvalidArgument.
Result<std::string> schema_name(std::string_view sd_text);

/// `message` with "text 3" put as "the schema of <type>": whoever deployed one file does not know the others' order.
std::string with_schema_names(std::string message, std::span<const std::string> sd_texts);

}  // namespace fjord::fleetcontroller
