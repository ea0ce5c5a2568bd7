#pragma once

#include <string>

namespace fjord::cli {

/// Returns lines of JSON, each a value, as YAML: a document for each line that is JSON, other lines unchanged.
std::string yaml_of_json_lines(const std::string& lines);

}  // namespace fjord::cli
