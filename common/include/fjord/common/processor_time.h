#pragma once

#include <sys/types.h>

#include "fjord/common/clock.h"

namespace fjord {

/// Returns the CPU time of the calling thread plus that of other processes which it reported by add_processor_time().
/// Waiting, also for a processor, does not count. Only differences have a meaning.
Duration processor_time();

/// Adds the CPU time `used` of another process that worked while this thread waited for it.
void add_processor_time(Duration used);

/// Returns the CPU time of all threads of a process on this machine; 0 if there is no such process.
Duration processor_time_of(pid_t process);

}  // namespace fjord
