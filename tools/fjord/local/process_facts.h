#pragma once

#include <string>
#include <sys/types.h>

/// What the system says of a process.
namespace fjord::cli {

/// Returns true if the process listens on this TCP port, at any address. False, too, if the process has ended or is of
/// another user.
bool listens(pid_t process, int port);

/// Returns the start time of a process in clock ticks since boot; empty if it does not exist or has ended. A process
/// whose first thread has ended is still there, with its ports and locks, until its last thread has ended.
std::string start_time_of(pid_t process);

/// Returns true if the process is about to end: it does not tell its program any more, but may still have ports and
/// locks.
bool is_ending(pid_t process);

}  // namespace fjord::cli
