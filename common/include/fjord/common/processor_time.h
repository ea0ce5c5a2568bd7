#pragma once

#include <sys/types.h>

#include "fjord/common/clock.h"

namespace fjord {

/// Time that processors have worked for the thread that asks, itself and other processes that it said of
/// (add_processor_time()). Waiting, also for a processor, does not count. Only differences mean something.
Duration processor_time();

/// `used` was worked by another process while this thread waited for it.
void add_processor_time(Duration used);

/// Time that processors have worked for all threads of a process of this machine; 0 if there is no such process.
Duration processor_time_of(pid_t process);

}  // namespace fjord
