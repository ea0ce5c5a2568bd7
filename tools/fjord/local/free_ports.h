#pragma once

#include <vector>

#include "fjord/common/result.h"

namespace fjord::cli {

/// Returns true if all these ports of 127.0.0.1 are free.
bool all_free(const std::vector<int>& ports);
/// Returns `count` different free ports of 127.0.0.1, below the range that the system uses for outgoing connections.
Result<std::vector<int>> find_free_ports(std::size_t count);

}  // namespace fjord::cli
