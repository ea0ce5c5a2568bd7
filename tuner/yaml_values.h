#pragma once

#include <string>
#include <string_view>
#include <yaml-cpp/yaml.h>

#include "fjord/common/result.h"

namespace fjord::tuner {

/// Returns InvalidArgument "file:line: what: problem".
Status yaml_error(const std::string& file, const YAML::Node& node, std::string_view what, std::string_view problem);

/// Parses a whole document whose root is a map. Errors: InvalidArgument with the line.
Result<YAML::Node> load_yaml_map(std::string_view text, const std::string& file);

/// Parses a number, plain ("1.5e6") or of bytes ("16MiB", "1.5GB"). Errors: InvalidArgument "... is not a number".
Result<double> number_of(std::string_view text, bool bytes);

}  // namespace fjord::tuner
