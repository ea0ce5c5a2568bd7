#include "sandbox.h"

#include <csignal>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>

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

void limit(int what, std::uint64_t most) {
  const rlimit both{most, most};
  ::setrlimit(static_cast<__rlimit_resource>(what), &both);
}

}  // namespace

void limit_process(std::uint64_t memory_bytes, std::uint64_t cpu_seconds) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  limit(RLIMIT_CPU, cpu_seconds);
  limit(RLIMIT_CORE, 0);
  if (!kHasSanitizer) {
    limit(RLIMIT_AS, 2 * memory_bytes + kOwnMemoryBytes);
    limit(RLIMIT_FSIZE, 0);
  }
  limit(RLIMIT_NOFILE, ChildProcess::kSocket + 1);
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
  allow(SCMP_SYS(mmap));
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
