#pragma once

#include <cstdint>

namespace fjord {

/// Raises the number of files that this process may have open, as far as the system permits, to 65,536 if it is lower.
/// Returns the number that holds then. Threading: call it before other threads start.
std::uint64_t raise_open_files_max();

/// Returns the number of files that this process may have open. Threading: any thread.
std::uint64_t open_files_max();

}  // namespace fjord
