#include "fjord/common/processor_time.h"

#include <ctime>

namespace fjord {
namespace {

thread_local Duration worked_elsewhere{0};

Duration read(clockid_t clock) {
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) return Duration(0);
  return std::chrono::duration_cast<Duration>(std::chrono::seconds(time.tv_sec) +
                                              std::chrono::nanoseconds(time.tv_nsec));
}

}  // namespace

Duration processor_time() { return read(CLOCK_THREAD_CPUTIME_ID) + worked_elsewhere; }

void add_processor_time(Duration used) { worked_elsewhere += used; }

Duration processor_time_of(pid_t process) {
  clockid_t clock{};
  // For 0 and -1 the system returns the caller's clock.
  return process > 0 && ::clock_getcpuclockid(process, &clock) == 0 ? read(clock) : Duration(0);
}

}  // namespace fjord
