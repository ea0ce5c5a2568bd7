#include "local/free_ports.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fjord/common/random.h"

namespace fjord::cli {
namespace {

bool is_free(int port) {
  const int file = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0) return false;
  // Servers do the same, so that lingering connections of the port's last user do not matter.
  const int yes = 1;
  ::setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool bound =
      ::bind(file, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 && ::listen(file, 1) == 0;
  ::close(file);
  return bound;
}

}  // namespace

bool all_free(const std::vector<int>& ports) {
  for (const int port : ports) {
    if (!is_free(port)) return false;
  }
  return true;
}

Result<std::vector<int>> find_free_ports(std::size_t count) {
  constexpr int kLowest = 20'000;
  constexpr int kPast = 32'000;
  Random random = Random::from_system();
  int port = kLowest + static_cast<int>(random.below(kPast - kLowest));
  std::vector<int> ports;
  for (int tried = 0; tried < kPast - kLowest && ports.size() < count; ++tried) {
    if (is_free(port)) ports.push_back(port);
    port = port + 1 < kPast ? port + 1 : kLowest;
  }
  if (ports.size() == count) return ports;
  return Status(StatusCode::IoError,
                fmt::format("there are no {} free ports from {} to {}", count, kLowest, kPast - 1));
}

}  // namespace fjord::cli
