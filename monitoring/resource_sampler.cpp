#include "fjord/monitoring/resource_sampler.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>

#include "fjord/common/clock.h"

namespace fjord {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

/// Returns the number of entries of a folder in /proc; -1 if it cannot be read.
long count_entries(const char* folder) {
  std::error_code error;
  std::filesystem::directory_iterator it(folder, error);
  long count = 0;
  while (!error && it != std::filesystem::directory_iterator()) {
    ++count;
    it.increment(error);
  }
  return error ? -1 : count;
}

}  // namespace

ResourceSampler::ResourceSampler(MetricRegistry& registry)
    : cpu_seconds_(registry.gauge("fjord_process_cpu_seconds", "CPU time used by the process, user and system.")),
      resident_bytes_(registry.gauge("fjord_process_resident_bytes",
                                     "Memory of the process that is in RAM, with mapped files that were read.")),
      own_bytes_(registry.gauge("fjord_process_own_bytes", "Memory of the process that is in RAM, without files.")),
      available_bytes_(registry.gauge("fjord_machine_memory_available_bytes",
                                      "Memory of the machine that could be used, cached files included.")),
      open_fds_(registry.gauge("fjord_process_open_fds", "Open file descriptors of the process.")),
      threads_(registry.gauge("fjord_process_threads", "Threads of the process.")),
      clock_seconds_(registry.gauge("fjord_process_clock_seconds",
                                    "Clock of the process when its metrics were read, in seconds since 1970.")) {}

void ResourceSampler::sample() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) cpu_seconds_.set(seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));

  std::ifstream statm("/proc/self/statm");
  double total_pages = 0;
  double resident_pages = 0;
  double file_pages = 0;
  if (statm >> total_pages >> resident_pages >> file_pages) {
    const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
    resident_bytes_.set(resident_pages * page);
    own_bytes_.set((resident_pages - file_pages) * page);
  }
  std::ifstream meminfo("/proc/meminfo");
  for (std::string word; meminfo >> word;) {
    double kilobytes = 0;
    if (word != "MemAvailable:" || !(meminfo >> kilobytes)) continue;
    available_bytes_.set(1024 * kilobytes);
    break;
  }
  // The listing itself holds one descriptor open.
  if (const long fds = count_entries("/proc/self/fd"); fds > 0) open_fds_.set(static_cast<double>(fds - 1));
  if (const long threads = count_entries("/proc/self/task"); threads > 0) threads_.set(static_cast<double>(threads));
  clock_seconds_.set(static_cast<double>(SystemClock().wall_now().us) * 1e-6);
}

}  // namespace fjord
