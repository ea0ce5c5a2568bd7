#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "fjord/common/env.h"
#include "fjord/common/log.h"
#include "fjord/common/lost_pages.h"
#include "fjord/common/posix_space.h"

namespace fjord {

namespace {

Status errno_status(int error, std::string_view operation, const std::string& path) {
  StatusCode code = StatusCode::IoError;
  if (error == ENOSPC || error == EDQUOT) code = StatusCode::NoSpace;
  if (error == ENOENT) code = StatusCode::NotFound;
  if (error == EEXIST) code = StatusCode::AlreadyExists;
  // Callers from other machines see the message. They know a node's files by their names in its folder.
  const std::filesystem::path whole(path);
  std::string message = (whole.parent_path().filename() / whole.filename()).string();
  message.append(": ").append(operation).append(": ").append(std::generic_category().message(error));
  return Status(code, std::move(message));
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

class PosixFile final : public RandomAccessFile {
 public:
  PosixFile(FileDescriptor fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  ~PosixFile() override {
    for (const Mapping& mapping : mappings_) ::munmap(mapping.at, mapping.length);
  }
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  Result<std::size_t> read(std::uint64_t offset, std::span<char> into) const override {
    std::size_t done = 0;
    while (done < into.size()) {
      const ssize_t n = ::pread(fd_.get(), into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
      if (n == 0) break;
      if (n < 0) {
        if (errno == EINTR) continue;
        return errno_status(errno, "read", path_);
      }
      done += static_cast<std::size_t>(n);
    }
    return done;
  }

  Status write(std::uint64_t offset, std::string_view data) override {
    while (!data.empty()) {
      const ssize_t n = ::pwrite(fd_.get(), data.data(), data.size(), static_cast<off_t>(offset));
      if (n < 0) {
        if (errno == EINTR) continue;
        return errno_status(errno, "write", path_);
      }
      offset += static_cast<std::uint64_t>(n);
      data.remove_prefix(static_cast<std::size_t>(n));
    }
    return Status::ok();
  }

  Status write_gather(std::uint64_t offset, std::span<const std::string_view> pieces) override {
    constexpr std::size_t kVectorsMax = 64;
    std::array<iovec, kVectorsMax> vectors;
    while (!pieces.empty()) {
      const std::size_t count = std::min(pieces.size(), kVectorsMax);
      std::size_t size = 0;
      for (std::size_t i = 0; i < count; ++i) {
        vectors[i] = {const_cast<char*>(pieces[i].data()), pieces[i].size()};
        size += pieces[i].size();
      }
      ssize_t n;
      do {
        n = ::pwritev(fd_.get(), vectors.data(), static_cast<int>(count), static_cast<off_t>(offset));
      } while (n < 0 && errno == EINTR);
      if (n < 0) return errno_status(errno, "write", path_);
      if (static_cast<std::size_t>(n) < size) {
        FJORD_TRY(write_rest(offset, pieces.first(count), static_cast<std::size_t>(n)));
      }
      offset += size;
      pieces = pieces.subspan(count);
    }
    return Status::ok();
  }

  void start_writeback() override { static_cast<void>(::sync_file_range(fd_.get(), 0, 0, SYNC_FILE_RANGE_WRITE)); }

  Status sync() override {
    // fdatasync writes the size too. It is never retried, not even after EINTR: see RandomAccessFile::sync().
    if (::fdatasync(fd_.get()) != 0) return errno_status(errno, "sync", path_);
    return Status::ok();
  }

  std::string_view mapped(std::uint64_t end) override {
    constexpr std::uint64_t kLeast = 1 << 20;
    if (has_lost_pages()) return {};
    if (mappings_.empty() || mappings_.back().length < end) {
      // The mapping is larger than the file, so that the file can grow. Earlier mappings stay valid.
      const std::uint64_t length = std::bit_ceil(std::max(end, kLeast));
      void* const at = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd_.get(), 0);
      if (at == MAP_FAILED) return {};
      // turns read-ahead off; sequential readers call will_need()
      static_cast<void>(::madvise(at, length, MADV_RANDOM));
      mappings_.push_back({at, length});
    }
    return {static_cast<const char*>(mappings_.back().at), static_cast<std::size_t>(end)};
  }

  void will_need(std::uint64_t offset, std::uint64_t length) const override {
    // For a longer range Linux reads only its usual readahead and ignores the rest.
    constexpr std::uint64_t kAtOnce = 128 << 10;
    for (const std::uint64_t end = offset + length; offset < end; offset += std::min(kAtOnce, end - offset)) {
      static_cast<void>(::posix_fadvise(fd_.get(), static_cast<off_t>(offset),
                                        static_cast<off_t>(std::min(kAtOnce, end - offset)), POSIX_FADV_WILLNEED));
    }
  }

  void expect_random() const override { static_cast<void>(::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_RANDOM)); }

  void will_not_need(std::uint64_t offset, std::uint64_t length) const override {
    static_cast<void>(
        ::posix_fadvise(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(length), POSIX_FADV_DONTNEED));
  }

  bool is_resident(std::uint64_t offset, std::uint64_t length) const override {
    static const auto kPage = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    constexpr std::uint64_t kPagesMost = 64;  // of a longer range only the first pages are checked
    if (mappings_.empty() || length == 0 || offset + length > mappings_.back().length) return true;
    const std::uint64_t begin = offset / kPage * kPage;
    const std::uint64_t pages = std::min(kPagesMost, (offset + length - begin + kPage - 1) / kPage);
    std::array<unsigned char, kPagesMost> resident = {};
    char* const at = static_cast<char*>(mappings_.back().at) + begin;
    if (::mincore(at, pages * kPage, resident.data()) != 0) return true;
    return std::all_of(resident.begin(), resident.begin() + static_cast<std::ptrdiff_t>(pages),
                       [](unsigned char page) { return (page & 1) != 0; });
  }

  Result<std::uint64_t> size() const override {
    struct stat info;
    if (::fstat(fd_.get(), &info) != 0) return errno_status(errno, "stat", path_);
    return static_cast<std::uint64_t>(info.st_size);
  }

  Status allocate(std::uint64_t size) override {
    FJORD_TRY_ASSIGN(const std::uint64_t old_size, this->size());
    if (size <= old_size) return truncate(size);
    int error;
    do {
      error = ::posix_fallocate(fd_.get(), static_cast<off_t>(old_size), static_cast<off_t>(size - old_size));
    } while (error == EINTR);
    if (error == 0) return Status::ok();
    Status status = errno_status(error, "allocate", path_);
    if (error == EOPNOTSUPP || error == EINVAL) status = write_zeros(old_size, size);
    if (!status) static_cast<void>(truncate(old_size));  // releases the space reserved before the failure
    return status;
  }

  Status truncate(std::uint64_t size) override {
    int result;
    do {
      result = ::ftruncate(fd_.get(), static_cast<off_t>(size));
    } while (result != 0 && errno == EINTR);
    if (result != 0) return errno_status(errno, "truncate", path_);
    return Status::ok();
  }

 private:
  /// Writes the rest of `pieces` at `offset` after a short write of `done` bytes.
  Status write_rest(std::uint64_t offset, std::span<const std::string_view> pieces, std::size_t done) {
    for (std::string_view piece : pieces) {
      const std::size_t skip = std::min(done, piece.size());
      FJORD_TRY(write(offset + skip, piece.substr(skip)));
      done -= skip;
      offset += piece.size();
    }
    return Status::ok();
  }

  /// Reserves space on a file system that has no call for it.
  Status write_zeros(std::uint64_t from, std::uint64_t to) {
    const std::string zeros(64 * 1024, '\0');
    while (from < to) {
      const std::uint64_t n = std::min<std::uint64_t>(zeros.size(), to - from);
      FJORD_TRY(write(from, std::string_view(zeros).substr(0, n)));
      from += n;
    }
    return Status::ok();
  }

  /// Returns whether a mapping of this file has lost pages. Such pages stay zeros as long as the mapping exists, even
  /// if the file is written there again. So the caller stops using the mapping and calls read(), which returns the
  /// content of the file.
  bool has_lost_pages() {
    const std::uint64_t now = LostPages::met();
    if (now == lost_pages_seen_) return has_lost_pages_;
    const std::uint64_t since = std::exchange(lost_pages_seen_, now);
    const bool before = has_lost_pages_;
    for (const Mapping& mapping : mappings_) {
      has_lost_pages_ = has_lost_pages_ || LostPages::met_in(mapping.at, mapping.length, since);
    }
    if (has_lost_pages_ && !before) {
      log::error("env", "{}: a part of the file is gone while it is open: it was cut off, or its medium failed", path_);
    }
    return has_lost_pages_;
  }

  struct Mapping {
    void* at;
    std::uint64_t length;
  };

  FileDescriptor fd_;
  std::string path_;
  std::vector<Mapping> mappings_;
  std::uint64_t lost_pages_seen_ = LostPages::met();
  bool has_lost_pages_ = false;
};

class PosixEnv final : public Env {
 public:
  Result<std::unique_ptr<RandomAccessFile>> open_random_access(const std::string& path) override {
    return open_file(path, O_RDWR);
  }

  Result<std::unique_ptr<RandomAccessFile>> create_random_access(const std::string& path) override {
    return open_file(path, O_RDWR | O_CREAT | O_TRUNC);
  }

  Result<bool> exists(const std::string& path) override {
    struct stat info;
    if (::stat(path.c_str(), &info) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return errno_status(errno, "stat", path);
  }

  Result<std::vector<std::string>> list_directory(const std::string& path) override {
    const auto close = [](DIR* d) { ::closedir(d); };
    const std::unique_ptr<DIR, decltype(close)> directory(::opendir(path.c_str()), close);
    if (!directory) return errno_status(errno, "open directory", path);
    std::vector<std::string> names;
    while (true) {
      errno = 0;
      const dirent* entry = ::readdir(directory.get());
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    if (errno != 0) return errno_status(errno, "read directory", path);
    std::sort(names.begin(), names.end());
    return names;
  }

  Status create_directories(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return errno_status(error.value(), "create directory", path);
    return Status::ok();
  }

  Status remove_file(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return errno_status(errno, "remove", path);
    return Status::ok();
  }

  Status remove_all(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) return errno_status(error.value(), "remove directory", path);
    return Status::ok();
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (std::rename(from.c_str(), to.c_str()) != 0) return errno_status(errno, "rename to " + to, from);
    return Status::ok();
  }

  Status sync_directory(const std::string& path) override {
    FJORD_TRY_ASSIGN(const FileDescriptor fd, open_descriptor(path, O_RDONLY | O_DIRECTORY));
    if (::fsync(fd.get()) != 0) return errno_status(errno, "sync directory", path);
    return Status::ok();
  }

  Result<SpaceInfo> space(const std::string& path) override {
    struct statvfs info;
    int result;
    do {
      result = ::statvfs(path.c_str(), &info);
    } while (result != 0 && errno == EINTR);
    if (result != 0) return errno_status(errno, "statvfs", path);
    return to_space_info(info);
  }

 private:
  static Result<FileDescriptor> open_descriptor(const std::string& path, int flags) {
    int fd;
    do {
      // A file of Fjord's is never a link; a folder may be, to another disk.
      const int no_link = (flags & O_DIRECTORY) != 0 ? 0 : O_NOFOLLOW;
      fd = ::open(path.c_str(), flags | O_CLOEXEC | no_link, S_IRUSR | S_IWUSR);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) return errno_status(errno, "open", path);
    return FileDescriptor(fd);
  }

  static Result<std::unique_ptr<RandomAccessFile>> open_file(const std::string& path, int flags) {
    FJORD_TRY_ASSIGN(FileDescriptor fd, open_descriptor(path, flags));
    return std::unique_ptr<RandomAccessFile>(std::make_unique<PosixFile>(std::move(fd), path));
  }
};

}  // namespace

std::unique_ptr<Env> make_posix_env() {
  LostPages::guard();
  return std::make_unique<PosixEnv>();
}

}  // namespace fjord
