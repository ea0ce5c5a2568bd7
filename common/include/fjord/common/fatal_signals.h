#pragma once

#include <string_view>

namespace fjord {

/// From here on a process that a signal ends writes to standard error which signal, where it came from, which thread it
/// met and a stack trace, and then ends as it would have ended: with the same signal, and a core if that is wanted. For
/// SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP, SIGQUIT, SIGXCPU and SIGXFSZ, as far as nobody ignores or
/// handles them; SIGKILL says nothing. A page of a mapped file that is gone is no reason to end: see lost_pages.h.
/// `name` is what the process is called, for example "storage.2". Threading: before there are other threads.
void report_fatal_signals(std::string_view name);

/// A stack of its own for the handlers of the thread that makes it, without which one whose stack has overflowed ends
/// without a word. Lifetime: destroyed by the same thread.
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
