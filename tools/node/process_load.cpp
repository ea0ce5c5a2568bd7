#include "process_load.h"

#include <algorithm>
#include <ctime>
#include <thread>

namespace fjord {
namespace {

constexpr std::int64_t kIntervalUs = 500'000;

std::int64_t read_us(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000 + time.tv_nsec / 1000;
}

}  // namespace

ProcessLoad::ProcessLoad() : measured_us_(read_us(CLOCK_MONOTONIC)), processor_us_(read_us(CLOCK_PROCESS_CPUTIME_ID)) {}

double ProcessLoad::part() {
  const std::lock_guard lock(mutex_);
  const std::int64_t now = read_us(CLOCK_MONOTONIC);
  if (now - measured_us_ < kIntervalUs) return part_;
  const std::int64_t used = read_us(CLOCK_PROCESS_CPUTIME_ID);
  const double processors = std::max(1U, std::thread::hardware_concurrency());
  part_ = std::clamp(static_cast<double>(used - processor_us_) / (static_cast<double>(now - measured_us_) * processors),
                     0.0, 1.0);
  measured_us_ = now;
  processor_us_ = used;
  return part_;
}

}  // namespace fjord
