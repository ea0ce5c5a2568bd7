#include "fjord/common/open_files.h"

#include <algorithm>
#include <sys/resource.h>

namespace fjord {
namespace {

constexpr rlim_t kWanted = 65'536;

}  // namespace

std::uint64_t raise_open_files_max() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < kWanted) {
    const rlimit wanted{.rlim_cur = kWanted, .rlim_max = std::max(limit.rlim_max, kWanted)};
    const rlimit permitted{.rlim_cur = std::min(limit.rlim_max, kWanted), .rlim_max = limit.rlim_max};
    // A process without rights may only go up to the hard limit.
    if (::setrlimit(RLIMIT_NOFILE, &wanted) != 0) (void)::setrlimit(RLIMIT_NOFILE, &permitted);
  }
  return open_files_max();
}

std::uint64_t open_files_max() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<std::uint64_t>(limit.rlim_cur) : 1024;
}

}  // namespace fjord
