#pragma once

#include <vector>

#include "fjord/common/result.h"

namespace fjord::cli {

/// True if all of these ports of 127.0.0.1 can be listened on now.
bool all_free(const std::vector<int>& ports);
/// As many different free ports of 127.0.0.1, below those that the system hands out by itself to outgoing connections.
Result<std::vector<int>> find_free_ports(std::size_t count);

}  // namespace fjord::cli
