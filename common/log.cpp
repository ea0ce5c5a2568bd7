#include "fjord/common/log.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <poll.h>
#include <spdlog/pattern_formatter.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fjord/common/log_lines.h"
#include "fjord/common/printable.h"
#include "fjord/common/private_folder.h"
#include "fjord/common/thread_annotations.h"
#include "repeat_filter.h"

namespace fjord::log {

namespace {

// The only exception to "no globals": every component logs, and all lines of a process share one stream.
std::atomic<Level> current_level{Level::Info};

/// A peer may send texts of any length, which messages repeat.
constexpr std::size_t kLineBytesMax = 4096;
constexpr const char* kPattern = "%Y-%m-%dT%H:%M:%S.%f%z %l %v";
/// The journal has the time of a line itself, and reads its level from a prefix.
constexpr const char* kJournalPattern = "%v";

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::Debug:
      return spdlog::level::debug;
    case Level::Info:
      return spdlog::level::info;
    case Level::Warning:
      return spdlog::level::warn;
    case Level::Error:
      return spdlog::level::err;
    case Level::Off:
      break;
  }
  return spdlog::level::off;
}

/// Returns the prefix of sd-daemon(3).
std::string_view journal_prefix(Level level) {
  switch (level) {
    case Level::Debug:
      return "<7>";
    case Level::Warning:
      return "<4>";
    case Level::Error:
      return "<3>";
    default:
      return "<6>";
  }
}

/// Returns true if standard error is the stream of the journal that systemd names in the environment.
bool is_stderr_of_journal() {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat found {};
  return stream != nullptr && ::fstat(STDERR_FILENO, &found) == 0 &&
         fmt::format("{}:{}", found.st_dev, found.st_ino) == stream;
}

/// Writes bytes to standard error. Gives up, as the log must not stop its process, if the reader takes nothing for a
/// second.
void write_all(std::string_view text) {
  constexpr int kPatienceMs = 1000;
  while (!text.empty()) {
    const ssize_t bytes = ::write(STDERR_FILENO, text.data(), text.size());
    if (bytes > 0) text.remove_prefix(static_cast<std::size_t>(bytes));
    if (bytes > 0 || errno == EINTR) continue;
    pollfd ready{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    if (errno != EAGAIN || ::poll(&ready, 1, kPatienceMs) <= 0) return;
  }
}

/// Where the lines of all components go.
class Output {
 public:
  Status open_file(const FileOptions& options) {
    const std::lock_guard lock(mutex_);
    options_ = options;
    FJORD_TRY(open_again());
    has_file_ = true;
    return Status::ok();
  }

  Status reopen() {
    const std::lock_guard lock(mutex_);
    return has_file_ ? open_again() : Status::ok();
  }

  void write(std::string_view lines) {
    const std::lock_guard lock(mutex_);
    write_all(lines);
    if (has_file_) rotate_if_large();
  }

  /// Writes a line, unless it repeats; then the due counts of others.
  void write_line(Level level, std::string_view component, std::string_view line) {
    {
      const std::lock_guard lock(mutex_);
      const std::string_view known_by = line.substr(0, kLineBytesMax);
      if (level >= Level::Warning && !repeats_.admit(level, component, known_by, Clock::now())) return;
    }
    write(formatted(level, component, line));
  }

  void write_repeats() {
    std::vector<RepeatFilter::Repeat> due;
    {
      const std::lock_guard lock(mutex_);
      due = repeats_.take_due(Clock::now());
    }
    for (const auto& one : due) write(formatted(one.level, one.component, one.line));
  }

 private:
  using Clock = std::chrono::steady_clock;

  static std::string formatted(Level level, std::string_view component, std::string_view line) {
    thread_local LineFormatter formatter;
    std::string text;
    formatter.append(level, component, line, text);
    return text;
  }

  Status open_again() FJORD_REQUIRES(mutex_) {
    const std::string& path = options_.path;
    const auto failed = [&] { return Status(StatusCode::IoError, fmt::format("{}: {}", path, std::strerror(errno))); };
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file < 0) return failed();
    Status status = check_own_file(file, path);
    if (status && (::dup2(file, STDOUT_FILENO) < 0 || ::dup2(file, STDERR_FILENO) < 0)) status = failed();
    ::close(file);
    return status;
  }

  /// What children and crashes write counts, too.
  void rotate_if_large() FJORD_REQUIRES(mutex_) {
    struct stat found {};
    if (::fstat(STDERR_FILENO, &found) != 0 || static_cast<std::uint64_t>(found.st_size) < options_.bytes_max) return;
    const auto name_of = [&](int number) {
      return number == 0 ? options_.path : fmt::format("{}.{}", options_.path, number);
    };
    if (options_.files_max <= 1) {
      (void)::ftruncate(STDERR_FILENO, 0);
      return;
    }
    for (int i = options_.files_max - 1; i > 0; --i) (void)std::rename(name_of(i - 1).c_str(), name_of(i).c_str());
    const Status status = open_again();
    if (!status) write_all(fmt::format("the log stays in {}: {}\n", name_of(1), status.message()));
  }

  std::mutex mutex_;
  FileOptions options_ FJORD_GUARDED_BY(mutex_);
  bool has_file_ FJORD_GUARDED_BY(mutex_) = false;
  RepeatFilter repeats_ FJORD_GUARDED_BY(mutex_);
};

Output& output() {
  static Output* const instance = new Output;  // never destroyed: threads can log while the process ends
  return *instance;
}

}  // namespace

void set_level(Level level) { current_level.store(level, std::memory_order_relaxed); }

Level level_from_string(std::string_view name) {
  if (name == "debug") return Level::Debug;
  if (name == "warning") return Level::Warning;
  if (name == "error") return Level::Error;
  if (name == "off") return Level::Off;
  return Level::Info;
}

bool enabled(Level level) { return level != Level::Off && level >= current_level.load(std::memory_order_relaxed); }

void write(Level level, std::string_view component, const std::string& line) {
  output().write_line(level, component, line);
}

struct LineFormatter::Impl {
  const bool is_for_journal = is_stderr_of_journal();
  spdlog::pattern_formatter formatter{is_for_journal ? kJournalPattern : kPattern};
  fmt::memory_buffer text;
  spdlog::memory_buf_t line;
};

LineFormatter::LineFormatter() : impl_(std::make_unique<Impl>()) {}
LineFormatter::~LineFormatter() = default;

void LineFormatter::append(Level level, std::string_view component, std::string_view line, std::string& to) {
  impl_->text.clear();
  if (impl_->is_for_journal) impl_->text.append(journal_prefix(level));
  impl_->text.append(component);
  impl_->text.append(std::string_view(": "));
  if (line.size() <= kLineBytesMax && is_printable(line)) {
    impl_->text.append(line);
  } else {
    impl_->text.append(to_printable(line, kLineBytesMax));
  }
  impl_->line.clear();
  impl_->formatter.format(spdlog::details::log_msg("fjord", to_spdlog(level), {impl_->text.data(), impl_->text.size()}),
                          impl_->line);
  to.append(impl_->line.data(), impl_->line.size());
}

void write_lines(std::string_view lines) { output().write(lines); }

Status write_to_file(const FileOptions& options) { return output().open_file(options); }

Status reopen_file() { return output().reopen(); }

void write_repeats() { output().write_repeats(); }

}  // namespace fjord::log
