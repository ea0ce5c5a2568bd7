#pragma once

#include <string>

#include "fjord/common/result.h"

namespace fjord {

/// Replaces a file atomically: after a crash it has either the old or the new content. Errors: IoError with the path.
Status replace_file(const std::string& path, const std::string& content);
/// Reads a whole file. Errors: NotFound, IoError with the path.
Result<std::string> read_small_file(const std::string& path);

}  // namespace fjord
