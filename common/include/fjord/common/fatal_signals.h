#pragma once

#include <string_view>

namespace fjord {

/// Installs handlers for fatal signals. A process that a signal ends first writes to standard error the signal, its
/// origin, the thread and a stack trace. Then it ends by the same signal, with a core file if these are enabled. This
/// covers SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP, SIGQUIT, SIGXCPU and SIGXFSZ unless they are
/// ignored or have handlers; SIGKILL cannot be reported. A lost page of a mapped file does not end the process: see
/// lost_pages.h. `name` is the name of the process, for example "storage.2". Threading: call it before other threads
/// start.
void report_fatal_signals(std::string_view name);

/// A separate stack for the signal handlers of the thread that creates it. Without it, a thread whose stack has
/// overflowed ends without a report. Lifetime: destroyed by the same thread.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  void* memory_;
};

}  // namespace fjord
