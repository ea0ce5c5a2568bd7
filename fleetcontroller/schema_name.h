#pragma once

#include <string>
#include <string_view>

#include "fjord/common/result.h"

namespace fjord::fleetcontroller {

/// The name of the document type that a .sd text declares: the word after the first `document`, comments passed over. A
/// text is replaced by one that declares the same type. Errors: InvalidArgument.
Result<std::string> schema_name(std::string_view sd_text);

}  // namespace fjord::fleetcontroller
