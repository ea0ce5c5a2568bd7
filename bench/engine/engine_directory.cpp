#include "engine_directory.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace fjord::bench {
namespace {

namespace fs = std::filesystem;

Status errno_status(std::string_view what, const std::string& path) {
  return Status(StatusCode::IoError, fmt::format("{} {}: {}", what, path, std::strerror(errno)));
}

/// Calls `visit` with a descriptor of `path` and, if it is a folder, of everything in it.
Status for_each_open(const std::string& path, const std::function<Status(int, const std::string&)>& visit) {
  std::vector<std::string> paths = {path};
  std::error_code error;
  for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    paths.push_back(at->path().string());
  }
  for (const std::string& one : paths) {
    const int file = ::open(one.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
      if (errno == ENOENT) continue;
      return errno_status("cannot open", one);
    }
    const Status status = visit(file, one);
    ::close(file);
    FJORD_TRY(status);
  }
  return Status::ok();
}

Result<std::uint64_t> cached_bytes_of(int file, const std::string& path) {
  struct stat info = {};
  if (::fstat(file, &info) != 0) return errno_status("cannot stat", path);
  if (!S_ISREG(info.st_mode) || info.st_size == 0) return std::uint64_t{0};
  const auto size = static_cast<std::size_t>(info.st_size);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) return errno_status("cannot map", path);
  std::vector<unsigned char> pages((size + page - 1) / page);
  const int result = ::mincore(mapped, size, pages.data());
  ::munmap(mapped, size);
  if (result != 0) return errno_status("cannot ask for the cached pages of", path);
  std::uint64_t cached = 0;
  for (const unsigned char flags : pages) cached += (flags & 1U) * page;
  return cached;
}

}  // namespace

Result<EngineDirectory> EngineDirectory::make(std::string path) {
  std::error_code error;
  fs::remove_all(path, error);
  fs::create_directories(path, error);
  if (error) return Status(StatusCode::IoError, fmt::format("cannot make {}: {}", path, error.message()));
  return EngineDirectory(std::move(path));
}

EngineDirectory::~EngineDirectory() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
}

Result<std::uint64_t> EngineDirectory::allocated_bytes() const {
  constexpr std::uint64_t kBlock = 512;
  std::uint64_t bytes = 0;
  FJORD_TRY(for_each_open(path_, [&](int file, const std::string& path) -> Status {
    struct stat info = {};
    if (::fstat(file, &info) != 0) return errno_status("cannot stat", path);
    bytes += static_cast<std::uint64_t>(info.st_blocks) * kBlock;
    return Status::ok();
  }));
  return bytes;
}

Result<std::uint64_t> EngineDirectory::cached_bytes() const {
  std::uint64_t bytes = 0;
  FJORD_TRY(for_each_open(path_, [&](int file, const std::string& path) -> Status {
    FJORD_TRY_ASSIGN(const std::uint64_t cached, cached_bytes_of(file, path));
    bytes += cached;
    return Status::ok();
  }));
  return bytes;
}

Status EngineDirectory::sync() const {
  return for_each_open(path_, [](int file, const std::string& path) {
    return ::fsync(file) == 0 ? Status::ok() : errno_status("cannot sync", path);
  });
}

Status EngineDirectory::drop_from_cache() const {
  FJORD_TRY(for_each_open(path_, [](int file, const std::string& path) {
    if (::fsync(file) != 0) return errno_status("cannot sync", path);
    const int error = ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    if (error == 0) return Status::ok();
    errno = error;
    return errno_status("cannot drop from the page cache", path);
  }));
  FJORD_TRY_ASSIGN(const std::uint64_t cached, cached_bytes());
  FJORD_TRY_ASSIGN(const std::uint64_t allocated, allocated_bytes());
  if (cached * 100 > allocated) {
    return Status(StatusCode::IoError, fmt::format("{} of {} bytes of {} stay in the page cache; nothing would be cold",
                                                   cached, allocated, path_));
  }
  return Status::ok();
}

}  // namespace fjord::bench
