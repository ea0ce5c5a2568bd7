#pragma once

#include <cstdint>

/// Restricts this process to computing and talking over its socket.
namespace fjord::scripting {

/// Sets the limits of the process and ends it together with its parent process, or before it where memory runs out.
/// Returns false if the kernel refuses a limit.
bool limit_process(std::uint64_t memory_bytes, std::uint64_t cpu_seconds);

/// After this call the kernel kills the process at any system call that computing does not need. Returns false if the
/// kernel does not support this.
bool allow_computing_only();

}  // namespace fjord::scripting
