#include "fjord/common/fatal_signals.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <execinfo.h>
#include <iterator>
#include <new>
#include <string_view>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#ifdef FJORD_HAVE_LIBBACKTRACE
#include <backtrace.h>
#include <cxxabi.h>
#endif

#include "fjord/common/lost_pages.h"

namespace fjord {

namespace {

constexpr std::size_t kStackBytes = 64 << 10;
constexpr unsigned kSecondsMost = 30;

struct Fatal {
  int number;
  const char* name;
  const char* meaning;
};
constexpr Fatal kFatal[] = {
    {SIGSEGV, "SIGSEGV", "memory that is not there"},
    {SIGBUS, "SIGBUS", "memory without a page behind it"},
    {SIGILL, "SIGILL", "no instruction"},
    {SIGFPE, "SIGFPE", "arithmetic without a result"},
    {SIGABRT, "SIGABRT", "the program gave up"},
    {SIGSYS, "SIGSYS", "a call of the system that is not allowed"},
    {SIGTRAP, "SIGTRAP", "a breakpoint"},
    {SIGQUIT, "SIGQUIT", "quit"},
    {SIGXCPU, "SIGXCPU", "the limit of CPU time"},
    {SIGXFSZ, "SIGXFSZ", "the limit of a file's size"},
};

// Globals, because a signal handler can reach nothing else.
std::array<char, 64> process_name{};
std::atomic<int> dying_thread{0};

/// Builds a line of text without allocating memory.
class Line {
 public:
  Line& text(std::string_view s) {
    const std::size_t n = std::min(s.size(), bytes_.size() - size_ - 1);
    std::memcpy(bytes_.data() + size_, s.data(), n);
    size_ += n;
    return *this;
  }
  Line& number(std::uint64_t value, int base = 10, std::size_t digits_least = 1) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, base).ptr;
    const auto count = static_cast<std::size_t>(end - digits.data());
    for (std::size_t i = count; i < digits_least; ++i) text("0");
    return text({digits.data(), count});
  }
  void write() {
    bytes_[size_++] = '\n';
    for (std::size_t done = 0; done < size_;) {
      const ssize_t n = ::write(STDERR_FILENO, bytes_.data() + done, size_ - done);
      if (n <= 0 && errno != EINTR) break;
      if (n > 0) done += static_cast<std::size_t>(n);
    }
    size_ = 0;
  }

 private:
  std::array<char, 1024> bytes_;
  std::size_t size_ = 0;
};

/// Writes the time like lines of the log, but in UTC: a signal handler cannot read the local time zone.
void put_time(Line& line) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t days = now.tv_sec / 86400;
  const std::int64_t second = now.tv_sec % 86400;
  // Converts days since 1970 to a civil date. The computation uses years that begin in March.
  const std::int64_t z = days + 719468;
  const std::int64_t era = z / 146097;
  const std::int64_t of_era = z - era * 146097;
  const std::int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const std::int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t shifted_month = (5 * of_year + 2) / 153;
  const std::int64_t day = of_year - (153 * shifted_month + 2) / 5 + 1;
  const std::int64_t month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
  const std::int64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  const auto put = [&line](std::int64_t value, std::size_t digits, std::string_view behind) {
    line.number(static_cast<std::uint64_t>(value), 10, digits).text(behind);
  };
  put(year, 4, "-");
  put(month, 2, "-");
  put(day, 2, "T");
  put(second / 3600, 2, ":");
  put(second / 60 % 60, 2, ":");
  put(second % 60, 2, ".");
  put(now.tv_nsec / 1000, 6, "+00:00 ");
}

void put_cause(Line& line, int number, const siginfo_t* info) {
  const auto* known =
      std::find_if(std::begin(kFatal), std::end(kFatal), [&](const Fatal& f) { return f.number == number; });
  line.text(process_name.data()).text(" (process ").number(static_cast<std::uint64_t>(::getpid()));
  std::array<char, 16> thread{};
  if (::prctl(PR_GET_NAME, thread.data(), 0, 0, 0) == 0) line.text(", thread ").text(thread.data());
  line.text(") ends on signal ").number(static_cast<std::uint64_t>(number));
  if (known != std::end(kFatal)) line.text(" (").text(known->name).text(": ").text(known->meaning).text(")");
  if (info->si_code == SI_USER || info->si_code == SI_QUEUE) {
    line.text(", sent by process ").number(static_cast<std::uint64_t>(info->si_pid));
  } else if (number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE) {
    line.text(" at 0x").number(reinterpret_cast<std::uintptr_t>(info->si_addr), 16);
  }
}

#ifdef FJORD_HAVE_LIBBACKTRACE

struct Names {
  unsigned frame = 0;
  bool any = false;
};

int put_frame(void* names_of, std::uintptr_t /*pc*/, const char* file, int line_number, const char* function) {
  Names& names = *static_cast<Names*>(names_of);
  if (file == nullptr && function == nullptr) return 0;
  names.any = true;
  Line line;
  line.text("  #").number(names.frame).text(" ");
  int status = -1;
  char* const plain = function != nullptr ? abi::__cxa_demangle(function, nullptr, nullptr, &status) : nullptr;
  line.text(status == 0 ? plain : function != nullptr ? function : "??");
  std::free(plain);
  if (file != nullptr) line.text(" at ").text(file).text(":").number(static_cast<std::uint64_t>(line_number));
  line.write();
  return 0;
}

/// Resolves frames to function names and lines in a child process, because this takes time and memory. So the damaged
/// process can end at once.
void name_frames_in_a_child(void* const* frames, int count) {
  if (::_Fork() != 0) return;
  // Closes inherited descriptors, so that the resources of the process are free as soon as it has ended.
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  for (const Fatal& fatal : kFatal) ::signal(fatal.number, SIG_DFL);
  const auto ignore = [](void*, const char*, int) {};
  backtrace_state* const state = ::backtrace_create_state(nullptr, 0, ignore, nullptr);
  if (state != nullptr) {
    Names names;
    for (int i = 0; i < count; ++i) {
      names.frame = static_cast<unsigned>(i);
      // All frames but the first are return addresses, which may be on the line after the call.
      const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(frames[i]) - (i > 0 ? 1 : 0);
      ::backtrace_pcinfo(state, at, &put_frame, ignore, &names);
    }
  }
  ::_exit(0);
}

#else

void name_frames_in_a_child(void* const* /*frames*/, int /*count*/) {}

#endif

/// Collects the frame that the signal interrupted and its callers. Returns their number.
[[gnu::noinline]] int frames_from_signal(std::array<void*, 64>& frames) {
  const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  // The first three frames are this function, the handler and the system's trampoline.
  const int ours = std::min(count, 3);
  std::move(frames.begin() + ours, frames.begin() + count, frames.begin());
  return count - ours;
}

void on_fatal_signal(int number, siginfo_t* info, void* /*context*/) {
  if (number == SIGBUS && info->si_code == BUS_ADRERR && LostPages::replace(info->si_addr)) return;
  int nobody = 0;
  const int me = ::gettid();
  if (!dying_thread.compare_exchange_strong(nobody, me)) {
    if (nobody != me) {
      while (true) ::pause();  // Another thread handles a fatal signal already and ends the process.
    }
    ::signal(number, SIG_DFL);  // a second signal occurred in this handler
    ::raise(number);
    return;
  }
  ::alarm(kSecondsMost);  // ends the process if the code below hangs
  Line line;
  put_time(line);
  line.text("error fatal: ");
  put_cause(line, number, info);
  line.text("; stack:");
  line.write();
  std::array<void*, 64> frames{};
  const int count = frames_from_signal(frames);
  ::backtrace_symbols_fd(frames.data(), count, STDERR_FILENO);
  name_frames_in_a_child(frames.data(), count);
  ::signal(number, SIG_DFL);
  ::raise(number);
}

/// Gives the main thread its stack for signals. It is never destroyed: a signal can come while the process ends. It
/// lies in static memory: the compiler drops a pointer that nothing reads, and what it points to is then reported as a
/// leak.
void give_main_thread_a_stack() {
  alignas(SignalStack) static std::array<std::byte, sizeof(SignalStack)> memory;
  static const SignalStack* const stack = new (memory.data()) SignalStack();
  static_cast<void>(stack);
}

}  // namespace

void report_fatal_signals(std::string_view name) {
  const std::size_t length = std::min(name.size(), process_name.size() - 1);
  std::memcpy(process_name.data(), name.data(), length);
  process_name[length] = '\0';
  // Loads the stack unwinder in advance: a handler cannot load libraries.
  void* frame = nullptr;
  static_cast<void>(::backtrace(&frame, 1));
  LostPages::guard();  // installs its handler of SIGBUS
  give_main_thread_a_stack();
  for (const Fatal& fatal : kFatal) {
    struct sigaction before {};
    if (::sigaction(fatal.number, nullptr, &before) != 0) continue;
    const bool is_free = (before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_DFL;
    // Skips signals that have a handler already. For SIGBUS this is the handler that LostPages::guard() has just
    // installed.
    if (!is_free && fatal.number != SIGBUS) continue;
    struct sigaction action {};
    action.sa_sigaction = &on_fatal_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    ::sigaction(fatal.number, &action, nullptr);
  }
}

SignalStack::SignalStack()
    : memory_(::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
  if (memory_ == MAP_FAILED) return;
  const stack_t stack{.ss_sp = memory_, .ss_flags = 0, .ss_size = kStackBytes};
  ::sigaltstack(&stack, nullptr);
}

SignalStack::~SignalStack() {
  if (memory_ == MAP_FAILED) return;
  const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
  ::sigaltstack(&none, nullptr);
  ::munmap(memory_, kStackBytes);
}

}  // namespace fjord
