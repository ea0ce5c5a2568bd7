#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fjord/common/result.h"

namespace fjord::fleetcontroller {

/// Returns the name of the document type that a .sd text declares: the word after the first `document` outside of
/// comments. A deployed text replaces the stored text with the same name. Errors: InvalidArgument if there is no name.
Result<std::string> schema_name(std::string_view sd_text);

/// Returns `message` with "text 3" replaced by "the schema of <type>". A user who deploys one file does not know the
/// order of all texts.
std::string with_schema_names(std::string message, std::span<const std::string> sd_texts);

}  // namespace fjord::fleetcontroller
