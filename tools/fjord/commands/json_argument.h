#pragma once

#include <cstddef>
#include <string>

#include "fjord/common/result.h"

namespace fjord::cli {

/// A JSON object that is given on the command line.
struct JsonArgument {
  std::string text;
  std::string source;  ///< Where the text is from, for messages: a path, "<stdin>" or "command line".
};

/// Reads `argument`: the text is `argument` itself if it begins with a brace, else the content of that file, or of
/// standard input for "-". Errors: those of InputFile, with its name.
Result<JsonArgument> json_argument(const std::string& argument, std::size_t bytes_max);

}  // namespace fjord::cli
