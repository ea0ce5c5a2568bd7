#include "sandbox.h"

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fjord/plugins/child_process.h"

namespace fjord::scripting {
namespace {

/// Returns how a process ends that runs `what` in the sandbox: the signal, or its exit code minus 1000.
int end_of(void (*what)(), std::uint64_t cpu_seconds = 10) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!limit_process(std::uint64_t{1} << 30, cpu_seconds)) ::_exit(78);
    if (!allow_computing_only()) ::_exit(77);
    what();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) - 1000;
}

}  // namespace

TEST_CASE("sandbox: a process may compute and use memory, and ends with the first other thing that it does") {
  CHECK(end_of([] { std::free(std::malloc(64 << 20)); }) == -1000);
  CHECK(end_of([] { ::open("/etc/hostname", O_RDONLY); }) == SIGSYS);
  CHECK(end_of([] { ::socket(AF_INET, SOCK_STREAM, 0); }) == SIGSYS);
  CHECK(end_of([] { static_cast<void>(::fork()); }) == SIGSYS);
  CHECK(end_of([] { ::execl("/bin/true", "true", nullptr); }) == SIGSYS);
  CHECK(end_of([] { ::kill(::getppid(), SIGTERM); }) == SIGSYS);
  CHECK(end_of([] {
          const char byte = 0;
          static_cast<void>(::write(ChildProcess::kSocket - 1, &byte, 1));
        }) == SIGSYS);
}

TEST_CASE("sandbox: memory cannot become a program") {
  const auto map = [](int permissions) {
    void* const at = ::mmap(nullptr, 4096, permissions, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ::_exit(at == MAP_FAILED ? 1 : 0);
  };
  static const auto mapped = map;
  CHECK(end_of([] { mapped(PROT_READ | PROT_WRITE); }) == -1000);
  CHECK(end_of([] { mapped(PROT_READ | PROT_EXEC); }) == SIGSYS);
  CHECK(end_of([] { mapped(PROT_READ | PROT_WRITE | PROT_EXEC); }) == SIGSYS);
  CHECK(end_of([] {
          void* const at = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
          ::_exit(::mprotect(at, 4096, PROT_READ | PROT_EXEC) == 0 ? 0 : 1);
        }) == SIGSYS);
}

TEST_CASE("sandbox: where memory runs out, the kernel ends a script before any other process") {
  const pid_t child = ::fork();
  if (child == 0) {
    limit_process(std::uint64_t{1} << 30, 10);
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
  REQUIRE(WIFSTOPPED(status));
  std::ifstream file("/proc/" + std::to_string(child) + "/oom_score_adj");
  int score = 0;
  file >> score;
  CHECK(score == 1000);
  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, &status, 0) == child);
}

TEST_CASE("sandbox: time and memory have limits") {
  const auto loop = [] {
    const volatile bool for_ever = true;
    while (for_ever) {
    }
  };
  CHECK(end_of(loop, 1) == SIGKILL);
  CHECK(end_of([] { ::_exit(std::malloc(std::size_t{8} << 30) == nullptr ? 0 : 1); }) == -1000);
}

}  // namespace fjord::scripting
