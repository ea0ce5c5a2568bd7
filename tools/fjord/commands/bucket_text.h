#pragma once

#include <string>
#include <vector>

namespace fjord::cli {

/// Returns the indexes of nodes, "2" for "storage.2".
inline std::vector<std::string> node_numbers(const std::vector<std::string>& nodes) {
  std::vector<std::string> numbers;
  for (const std::string& node : nodes) numbers.push_back(node.substr(node.find('.') + 1));
  return numbers;
}

}  // namespace fjord::cli
