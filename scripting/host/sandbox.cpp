#include "sandbox.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <seccomp.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fjord/plugins/child_process.h"

namespace fjord::scripting {
namespace {

/// Address space beyond that of scripts: for the program, its libraries and messages.
constexpr std::uint64_t kOwnMemoryBytes = std::uint64_t{512} << 20;

/// A sanitizer maps terabytes of address space, writes reports and makes other system calls. So a build with one, which
/// is for tests only, has neither the limits that it exceeds nor the filter of system calls.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasSanitizer = true;
#else
constexpr bool kHasSanitizer = false;
#endif

bool limit(int what, std::uint64_t most) {
  const auto resource = static_cast<__rlimit_resource>(what);
  rlimit now{};
  if (::getrlimit(resource, &now) != 0) return false;
  // A process without rights cannot go above the hard limit, which is then low enough.
  const rlim_t both = std::min<rlim_t>(most, now.rlim_max);
  const rlimit limited{both, both};
  return ::setrlimit(resource, &limited) == 0;
}

/// Where memory runs out, the kernel is to end a script and not the node that started it.
void be_killed_first() {
  const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;  // Without /proc it stays as it is.
  constexpr std::string_view kFirst = "1000";
  if (::write(file, kFirst.data(), kFirst.size()) < 0) std::perror("fjord-script-host: oom_score_adj");
  ::close(file);
}

}  // namespace

bool limit_process(std::uint64_t memory_bytes, std::uint64_t cpu_seconds) {
  be_killed_first();
  bool ok = ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0;
  ok = limit(RLIMIT_CPU, cpu_seconds) && ok;
  ok = limit(RLIMIT_CORE, 0) && ok;
  if (!kHasSanitizer) {
    ok = limit(RLIMIT_AS, 2 * memory_bytes + kOwnMemoryBytes) && ok;
    ok = limit(RLIMIT_FSIZE, 0) && ok;
  }
  return limit(RLIMIT_NOFILE, ChildProcess::kSocket + 1) && ok;
}

bool allow_computing_only() {
  if (kHasSanitizer) return true;
  const scmp_filter_ctx filter = ::seccomp_init(SCMP_ACT_KILL_PROCESS);
  if (filter == nullptr) return false;
  bool ok = true;
  const auto allow = [&](int call) { ok = ok && ::seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0) == 0; };
  for (const int call : {SCMP_SYS(read), SCMP_SYS(write)}) {
    ok = ok && ::seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 1, SCMP_A0(SCMP_CMP_EQ, ChildProcess::kSocket)) == 0;
  }
  // Allows memory, the clock without vDSO, the locks of malloc, and the exit of the process.
  allow(SCMP_SYS(brk));
  // Memory is never a program: without this a fault in the interpreter could run what a script has written.
  ok = ok &&
       ::seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)) == 0;
  allow(SCMP_SYS(munmap));
  allow(SCMP_SYS(mremap));
  allow(SCMP_SYS(madvise));
  allow(SCMP_SYS(clock_gettime));
  allow(SCMP_SYS(futex));
  allow(SCMP_SYS(getrandom));
  allow(SCMP_SYS(rt_sigreturn));
  allow(SCMP_SYS(exit));
  allow(SCMP_SYS(exit_group));
  ok = ok && ::seccomp_load(filter) == 0;
  ::seccomp_release(filter);
  return ok;
}

}  // namespace fjord::scripting
