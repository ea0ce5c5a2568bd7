#include "directory_lock.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

#include "fjord/common/private_folder.h"

namespace fjord {
namespace {

Status io_error(const std::string& path, int error) {
  return Status(StatusCode::IoError, fmt::format("{}: {}", path, std::strerror(error)));
}

std::string content_of(int file) {
  char buffer[256];
  const ssize_t size = ::pread(file, buffer, sizeof(buffer), 0);
  return size <= 0 ? "another process" : std::string(buffer, static_cast<std::size_t>(size));
}

}  // namespace

Result<DirectoryLock> DirectoryLock::acquire(const std::string& directory, const std::string& owner, bool is_shared) {
  if (is_shared) {
    std::error_code made;
    std::filesystem::create_directories(directory, made);
    if (made) return io_error(directory, made.value());
  } else if (const Status status = make_private_folder(directory); !status) {
    return status.with_context(owner + ": directory");
  }
  const std::string path = directory + "/lock";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (file < 0) return io_error(path, errno);
  DirectoryLock lock(file);
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return io_error(path, errno);
    return Status(StatusCode::AlreadyExists, fmt::format("the folder {} is in use by {}", directory, content_of(file)));
  }
  const std::string text = fmt::format("{} (process {})", owner, ::getpid());
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, text.data(), text.size(), 0) < 0) return io_error(path, errno);
  return lock;
}

DirectoryLock::DirectoryLock(DirectoryLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

DirectoryLock& DirectoryLock::operator=(DirectoryLock&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

DirectoryLock::~DirectoryLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace fjord
