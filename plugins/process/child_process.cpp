#include "fjord/plugins/child_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fjord/common/coding.h"
#include "fjord/common/processor_time.h"

namespace fjord {
namespace {

constexpr std::chrono::milliseconds kLook{100};
constexpr std::size_t kMessageBytesMax = std::size_t{256} << 20;

struct SpawnSettings {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;

  explicit SpawnSettings(int socket) {
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, socket, ChildProcess::kSocket);
    posix_spawn_file_actions_addclosefrom_np(&files, ChildProcess::kSocket + 1);
    posix_spawnattr_init(&attributes);
    // Fjord's programs block the signals that ask them to end; a child starts with the default signal state.
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
};

}  // namespace

std::string ChildProcess::beside_this_program(std::string_view program) {
  std::error_code ignored;
  return (std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / program).string();
}

std::string ChildProcess::framed(std::string_view message) {
  std::string frame;
  frame.reserve(message.size() + sizeof(std::uint32_t));
  put_fixed(frame, static_cast<std::uint32_t>(message.size()));
  return frame += message;
}

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const Options& options) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Status(StatusCode::IoError, std::string("socketpair: ") + std::strerror(errno));
  if (ends[1] == kSocket) {  // dup2 of a descriptor to itself would keep FD_CLOEXEC
    const int moved = ::fcntl(ends[1], F_DUPFD_CLOEXEC, kSocket + 1);
    ::close(ends[1]);
    ends[1] = moved;
  }
  std::vector<std::string> words{options.program};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  char* environment[] = {nullptr};
  const SpawnSettings settings(ends[1]);
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, options.program.c_str(), &settings.files, &settings.attributes,
                                   arguments.data(), environment);
  ::close(ends[1]);
  if (failed != 0) {
    ::close(ends[0]);
    return Status(StatusCode::IoError, options.program + " cannot be started: " + std::strerror(failed));
  }
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return std::unique_ptr<ChildProcess>(new ChildProcess(options.name, pid, ends[0]));
}

ChildProcess::~ChildProcess() { end(); }

void ChildProcess::end() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  reap();
}

std::optional<int> ChildProcess::reap() {
  int status = 0;
  rusage used{};
  pid_t reaped = -1;
  while ((reaped = ::wait4(pid_, &status, 0, &used)) < 0 && errno == EINTR) {
  }
  const bool is_ours = reaped == pid_;
  pid_ = -1;
  if (!is_ours) return std::nullopt;
  const auto time = [](const timeval& t) { return std::chrono::seconds(t.tv_sec) + Duration(t.tv_usec); };
  count(time(used.ru_utime) + time(used.ru_stime));
  return status;
}

void ChildProcess::count(Duration used_in_all) {
  if (used_in_all <= counted_) return;
  add_processor_time(used_in_all - counted_);
  counted_ = used_in_all;
}

/// Returns the reason for error messages. Call it only after the child has closed its end of the socket.
std::string ChildProcess::how_it_ended() {
  const std::optional<int> status = reap();
  if (!status) return "its process ended";
  if (WIFSIGNALED(*status))
    return fmt::format("its process was ended by signal {} ({})", WTERMSIG(*status), ::strsignal(WTERMSIG(*status)));
  return fmt::format("its process ended with code {}", WEXITSTATUS(*status));
}

Status ChildProcess::give_up(StatusCode code, const std::string& why) {
  gone_ = Status(code, name_ + ": " + why);
  end();
  return gone_;
}

Status ChildProcess::wait_for(short events, Deadline deadline, const IsCancelled& is_cancelled) {
  while (true) {
    pollfd one{socket_, events, 0};
    const auto now = std::chrono::steady_clock::now();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now);
    const int ready = ::poll(&one, 1, static_cast<int>(std::clamp(left, std::chrono::milliseconds(0), kLook).count()));
    if (ready > 0) return Status::ok();
    if (ready < 0 && errno != EINTR) return give_up(StatusCode::IoError, std::string("poll: ") + std::strerror(errno));
    if (is_cancelled()) return give_up(StatusCode::Cancelled, "the visit was cancelled");
    if (now >= deadline)
      return give_up(StatusCode::InvalidArgument, "a call did not return in time; its process was ended");
  }
}

Status ChildProcess::send(std::string_view frame, Deadline deadline, const IsCancelled& is_cancelled) {
  if (!gone_) return gone_;
  while (!frame.empty()) {
    const ssize_t sent = ::send(socket_, frame.data(), frame.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      frame.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      FJORD_TRY(wait_for(POLLOUT, deadline, is_cancelled));
    } else if (errno != EINTR) {
      return give_up(StatusCode::InvalidArgument, how_it_ended());
    }
  }
  return Status::ok();
}

Status ChildProcess::receive(char* to, std::size_t bytes, Deadline deadline, const IsCancelled& is_cancelled) {
  while (bytes > 0) {
    const ssize_t got = ::recv(socket_, to, bytes, 0);
    if (got > 0) {
      to += got;
      bytes -= static_cast<std::size_t>(got);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      return give_up(StatusCode::InvalidArgument, how_it_ended());
    } else if (errno == EAGAIN) {
      FJORD_TRY(wait_for(POLLIN, deadline, is_cancelled));
    }
  }
  return Status::ok();
}

Result<std::string> ChildProcess::receive(Deadline deadline, const IsCancelled& is_cancelled) {
  if (!gone_) return gone_;
  char length[sizeof(std::uint32_t)];
  FJORD_TRY(receive(length, sizeof(length), deadline, is_cancelled));
  const std::size_t bytes = load_fixed<std::uint32_t>(length);
  if (bytes > kMessageBytesMax) return give_up(StatusCode::InvalidArgument, "its process sent nonsense");
  std::string message(bytes, '\0');
  FJORD_TRY(receive(message.data(), bytes, deadline, is_cancelled));
  count(processor_time_of(pid_));
  return message;
}

namespace child_socket {
namespace {

bool read_all(char* to, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = ::read(ChildProcess::kSocket, to, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

std::optional<std::string> receive() {
  char length[sizeof(std::uint32_t)];
  if (!read_all(length, sizeof(length))) return std::nullopt;
  const std::size_t bytes = load_fixed<std::uint32_t>(length);
  if (bytes > kMessageBytesMax) return std::nullopt;
  std::string message(bytes, '\0');
  if (!read_all(message.data(), message.size())) return std::nullopt;
  return message;
}

bool send(std::string_view message) {
  const std::string frame = ChildProcess::framed(message);
  for (std::string_view left = frame; !left.empty();) {
    const ssize_t sent = ::write(ChildProcess::kSocket, left.data(), left.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace child_socket
}  // namespace fjord
