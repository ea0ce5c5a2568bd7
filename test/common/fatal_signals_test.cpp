#include "fjord/common/fatal_signals.h"

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <functional>
#include <poll.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "fjord/common/check.h"

namespace fjord {

// Outside of the unnamed namespace, so that a stack trace can show the names of these functions.
[[gnu::noinline]] void touch_what_is_not_there(volatile int* where) { *where = 1; }

[[gnu::noinline]] int overflow_the_stack(int depth) {
  volatile char bytes[4096];
  bytes[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : overflow_the_stack(depth + 1) + bytes[0];
}

namespace {

struct End {
  int status = 0;
  std::string said;
};

/// Runs `what` in a child process that reports its signals, and reads its output until all processes that could write
/// more have ended.
End end_of(const std::function<void()>& what) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    // Removes the signal handlers of the test program.
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL}) ::signal(signal, SIG_DFL);
    report_fatal_signals("storage.7");
    what();
    ::_exit(0);
  }
  ::close(ends[1]);
  End end;
  std::array<char, 4096> bytes;
  for (ssize_t n; (n = ::read(ends[0], bytes.data(), bytes.size())) > 0;) {
    end.said.append(bytes.data(), static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  REQUIRE(::waitpid(child, &end.status, 0) == child);
  return end;
}

bool ended_by(const End& end, int signal) { return WIFSIGNALED(end.status) && WTERMSIG(end.status) == signal; }

using Catch::Contains;

// The sanitizers handle these signals themselves, and use stacks of other sizes.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

TEST_CASE("a process that touches what is not there says so with a stack trace") {
  const End end = end_of([] { touch_what_is_not_there(reinterpret_cast<int*>(0x10)); });
  CHECK(ended_by(end, SIGSEGV));
  CHECK_THAT(end.said, Contains("error fatal: storage.7 (process "));
  CHECK_THAT(end.said, Contains("ends on signal 11 (SIGSEGV: memory that is not there) at 0x10; stack:\n"));
  CHECK_THAT(end.said, Contains("common_test("));
  CHECK_THAT(end.said, Contains("#0 fjord::touch_what_is_not_there(int volatile*) at "));
  CHECK_THAT(end.said, Contains("fatal_signals_test.cpp:"));
}

TEST_CASE("a stack that has overflowed is reported, of other threads too") {
  const End main_thread = end_of([] { overflow_the_stack(0); });
  CHECK(ended_by(main_thread, SIGSEGV));
  CHECK_THAT(main_thread.said, Contains("fjord::overflow_the_stack(int)"));
  const End other = end_of([] {
    std::thread thread([] {
      const SignalStack stack;
      overflow_the_stack(0);
    });
    thread.join();
  });
  CHECK(ended_by(other, SIGSEGV));
  CHECK_THAT(other.said, Contains("fjord::overflow_the_stack(int)"));
}

TEST_CASE("a check that fails says where it was called") {
  const End end = end_of([] { FJORD_CHECK(::getpid() == 0); });
  CHECK(ended_by(end, SIGABRT));
  CHECK_THAT(end.said, Contains("check failed: ::getpid() == 0") && Contains("SIGABRT"));
  CHECK_THAT(end.said, Contains("fjord::check_failed"));
}

TEST_CASE("of a signal that somebody sent it is said who") {
  const auto parent = static_cast<unsigned>(::getpid());
  const End end = end_of([] {
    ::kill(::getpid(), SIGQUIT);
    ::pause();
  });
  CHECK(ended_by(end, SIGQUIT));
  CHECK_THAT(end.said, Contains("(SIGQUIT: quit), sent by process "));
  CHECK_THAT(end.said, !Contains("sent by process " + std::to_string(parent) + ";"));
}

TEST_CASE("what a process ignores or handles stays as it is") {
  const End end = end_of([] {
    ::signal(SIGXCPU, SIG_IGN);
    report_fatal_signals("storage.7");
    ::raise(SIGXCPU);
  });
  CHECK((WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0));
  CHECK(end.said.empty());
}

#endif

}  // namespace
}  // namespace fjord
