#include "fjord/common/check.h"

#include <cstdio>
#include <cstdlib>

namespace fjord {

void check_failed(const char* file, int line, std::string_view condition, std::string_view detail) {
  std::fprintf(stderr, "%s:%d: check failed: %.*s%s%.*s\n", file, line, static_cast<int>(condition.size()),
               condition.data(), detail.empty() ? "" : ": ", static_cast<int>(detail.size()), detail.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace fjord
