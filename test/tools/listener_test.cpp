#include "local/listener.h"

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace fjord::cli {
namespace {

TEST_CASE("a process listens on a port from listen() on, and others do not") {
  const int file = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(file >= 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  REQUIRE(::bind(file, reinterpret_cast<const sockaddr*>(&address), length) == 0);
  REQUIRE(::getsockname(file, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  const int port = ntohs(address.sin_port);
  CHECK_FALSE(listens(::getpid(), port));
  REQUIRE(::listen(file, 1) == 0);
  CHECK(listens(::getpid(), port));
  CHECK_FALSE(listens(::getppid(), port));
  ::close(file);
  CHECK_FALSE(listens(::getpid(), port));
}

}  // namespace
}  // namespace fjord::cli
