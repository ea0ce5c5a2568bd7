#include "output/time_text.h"

#include <array>
#include <ctime>

namespace fjord::cli {

std::string time_text(std::int64_t unix_us) {
  if (unix_us == 0) return "-";
  const std::time_t at = static_cast<std::time_t>(unix_us / 1'000'000);
  std::tm utc{};
  ::gmtime_r(&at, &utc);
  std::array<char, 32> text{};
  return std::string(text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &utc));
}

}  // namespace fjord::cli
