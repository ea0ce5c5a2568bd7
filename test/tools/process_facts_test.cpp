#include "local/process_facts.h"

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <fstream>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
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

/// Ends its first thread at once, and the other one, and so the process, when the pipe is closed.
[[noreturn]] void end_in_two_steps(int pipe) {
  std::thread([pipe] {
    char byte = 0;
    static_cast<void>(::read(pipe, &byte, 1));
    ::_exit(0);
  }).detach();
  ::syscall(SYS_exit, 0);  // Ends this thread alone. Unwinding would end in the handlers of the test.
  ::_exit(1);
}

char state_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const std::size_t name_end = stat.rfind(") ");
  return name_end == std::string::npos ? '-' : stat[name_end + 2];
}

TEST_CASE("a process runs until its last thread has ended") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(ends[1]);
    end_in_two_steps(ends[0]);
  }
  ::close(ends[0]);
  const std::string start = start_time_of(child);
  CHECK_FALSE(start.empty());
  CHECK_FALSE(is_ending(::getpid()));
  while (state_of(child) != 'Z') std::this_thread::yield();  // Its first thread has ended,
  CHECK(start_time_of(child) == start);                      // and the process has not.
  CHECK(is_ending(child));
  ::close(ends[1]);
  siginfo_t ended{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
  CHECK(start_time_of(child).empty());  // A zombie,
  CHECK_FALSE(is_ending(child));
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(start_time_of(child).empty());  // and gone.
}

}  // namespace
}  // namespace fjord::cli
