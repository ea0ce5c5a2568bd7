#include "ask_cluster.h"

#include <array>
#include <cstdlib>
#include <ctime>
#include <unistd.h>

namespace fjord::cli {

std::string who_am_i() {
  const char* user = std::getenv("USER");
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = 0;
  return (user != nullptr && *user != 0 ? std::string(user) : "uid " + std::to_string(::getuid())) + "@" + host.data();
}

std::string time_text(std::int64_t unix_us) {
  if (unix_us == 0) return "-";
  const std::time_t at = static_cast<std::time_t>(unix_us / 1'000'000);
  std::tm utc{};
  ::gmtime_r(&at, &utc);
  std::array<char, 32> text{};
  return std::string(text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &utc));
}

}  // namespace fjord::cli
