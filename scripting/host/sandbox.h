#pragma once

#include <cstdint>

/// What keeps this process from doing anything but computing and talking over its socket.
namespace fjord::scripting {

/// Limits of the process, and its end when the one that started it ends.
void limit_process(std::uint64_t memory_bytes, std::uint64_t cpu_seconds);

/// From here on a system call that computing does not need ends the process. False: the kernel would not.
bool allow_computing_only();

}  // namespace fjord::scripting
