#include "fjord/common/lost_pages.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace fjord {

namespace {

// Globals, because a signal handler can reach nothing else.
thread_local std::uint64_t met_here = 0;
std::atomic<std::uint64_t> met_in_all{0};
constexpr std::uint64_t kRemembered = 256;
std::array<std::atomic<std::uintptr_t>, kRemembered> remembered{};
std::atomic<std::uintptr_t> page_bytes{4096};

/// Reads /proc/self/maps without allocation, because a signal handler can call only few functions.
class MapsReader {
 public:
  MapsReader() : fd_(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
  ~MapsReader() {
    if (fd_ >= 0) ::close(fd_);
  }
  MapsReader(const MapsReader&) = delete;
  MapsReader& operator=(const MapsReader&) = delete;

  /// Returns true if `address` lies in a shared, read-only mapping of a file.
  bool is_shared_and_read_only(std::uintptr_t address) {
    while (at_end() == false) {
      const std::uintptr_t begin = number();
      const std::uintptr_t end = number();
      std::array<char, 4> rights{};
      for (char& right : rights) right = next();
      next();
      number();  // skips the offset
      number();  // skips the device: two numbers
      number();
      const bool has_file = number() != 0;  // reads the inode
      while (last_ != '\n' && last_ != 0) next();
      if (begin <= address && address < end) {
        return has_file && rights == std::array<char, 4>{'r', '-', '-', 's'};
      }
    }
    return false;
  }

 private:
  bool at_end() {
    fill();
    return used_ == filled_;
  }
  void fill() {
    if (used_ < filled_ || fd_ < 0) return;
    ssize_t n;
    do {
      n = ::read(fd_, buffer_.data(), buffer_.size());
    } while (n < 0 && errno == EINTR);
    used_ = 0;
    filled_ = n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  char next() {
    fill();
    return last_ = used_ < filled_ ? buffer_[used_++] : '\0';
  }
  /// Reads a number of base 16 and the character after it. The inode has base 10; the caller only compares it with 0.
  std::uintptr_t number() {
    std::uintptr_t value = 0;
    while (true) {
      const char c = next();
      const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
      if (digit < 0) return value;
      value = value * 16 + static_cast<std::uintptr_t>(digit);
    }
  }

  int fd_;
  std::array<char, 1024> buffer_;
  std::size_t used_ = 0;
  std::size_t filled_ = 0;
  char last_ = 0;
};

/// Handles SIGBUS in a program that has no other handler for it. If the page cannot be replaced, the next access ends
/// the process.
void on_bus_error(int signal, siginfo_t* info, void* /*context*/) {
  if (info->si_code == BUS_ADRERR && LostPages::replace(info->si_addr)) return;
  ::signal(signal, SIG_DFL);
  if (info->si_code <= 0) ::raise(signal);  // another process sent the signal, so no instruction will raise it again
}

}  // namespace

void LostPages::guard() {
  struct sigaction now {};
  if (::sigaction(SIGBUS, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) return;
  page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = &on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigaction(SIGBUS, &action, nullptr);
}

std::uint64_t LostPages::met() { return met_in_all.load(std::memory_order_relaxed); }

std::uint64_t LostPages::met_by_this_thread() { return met_here; }

bool LostPages::met_in(const void* begin, std::size_t length, std::uint64_t since) {
  const auto from = reinterpret_cast<std::uintptr_t>(begin);
  const std::uint64_t now = met();
  if (now - since > kRemembered) return true;
  for (std::uint64_t i = since; i < now; ++i) {
    const std::uintptr_t page = remembered[i % kRemembered].load(std::memory_order_relaxed);
    if (page >= from && page < from + length) return true;
  }
  return false;
}

bool LostPages::replace(void* address) noexcept {
  const int before = errno;
  const std::uintptr_t size = page_bytes.load(std::memory_order_relaxed);
  const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(address) / size * size;
  bool replaced = MapsReader().is_shared_and_read_only(page);
  if (replaced) {
    void* const at = reinterpret_cast<void*>(page);  // NOLINT(performance-no-int-to-ptr): it is an address
    replaced = ::mmap(at, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  }
  if (replaced) {
    remembered[met_in_all.fetch_add(1) % kRemembered].store(page);
    ++met_here;
  }
  errno = before;
  return replaced;
}

}  // namespace fjord
