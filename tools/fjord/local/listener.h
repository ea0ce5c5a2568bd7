#pragma once

#include <sys/types.h>

namespace fjord::cli {

/// Returns true if the process listens on this TCP port, at any address. False, too, if the process has ended or is of
/// another user.
bool listens(pid_t process, int port);

}  // namespace fjord::cli
