#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"

namespace fjord {

/// A file opened for reading and writing at any position.
/// Threading: one user at a time. Lifetime: closed by its destructor; `env` outlives it.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;
  /// Reads up to `into.size()` bytes at `offset`; fewer only at the end of the file. Returns how many.
  virtual Result<std::size_t> read(std::uint64_t offset, std::span<char> into) const = 0;
  /// Writes all of `data` at `offset`, enlarging the file where needed. Durable only after sync().
  virtual Status write(std::uint64_t offset, std::string_view data) = 0;
  /// Writes the pieces one after the other, as if they were one; after an error any part of them may be there.
  virtual Status write_gather(std::uint64_t offset, std::span<const std::string_view> pieces) = 0;
  /// Asks the system to begin with writing to the device what was written here, so that a later sync has less to do.
  /// Promises nothing.
  virtual void start_writeback() = 0;
  /// Makes what was written durable. After an error the file must not be used again: the system may have dropped the
  /// data and a second attempt would succeed without it. May be called while another thread reads or writes; what that
  /// one writes meanwhile may be durable afterwards or not.
  virtual Status sync() = 0;
  virtual Result<std::uint64_t> size() const = 0;
  /// The first `end` bytes in memory, which the file has, or nothing where that cannot be done. The bytes are those of
  /// the file as long as it is open, but zeros where a part of it is gone when it is touched: see lost_pages.h.
  virtual std::string_view mapped(std::uint64_t end) = 0;
  /// Says that this range will be read soon. Promises nothing.
  virtual void will_need(std::uint64_t offset, std::uint64_t length) const = 0;
  /// False if reading a range of what mapped() gave would wait for the medium; true also where that is not known.
  virtual bool is_resident(std::uint64_t offset, std::uint64_t length) const {
    static_cast<void>(offset);
    static_cast<void>(length);
    return true;
  }
  /// Reserves space and sets the size (new bytes read as zero); a smaller size truncates. Errors: NoSpace.
  virtual Status allocate(std::uint64_t size) = 0;
  virtual Status truncate(std::uint64_t size) = 0;
};

struct SpaceInfo {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;
};

/// Files and directories, nothing else. Paths are '/'-separated. Nothing is durable before sync; a name (create,
/// rename, remove) is durable only after sync_directory of its folder. Threading: every thread may call it. Errors:
/// NotFound, AlreadyExists, NoSpace, IoError with path and errno text.
class Env {
 public:
  virtual ~Env() = default;
  /// Opens an existing file.
  virtual Result<std::unique_ptr<RandomAccessFile>> open_random_access(const std::string& path) = 0;
  /// Creates an empty file, or empties an existing one.
  virtual Result<std::unique_ptr<RandomAccessFile>> create_random_access(const std::string& path) = 0;
  virtual Result<bool> exists(const std::string& path) = 0;
  /// Names (not paths) in a directory, sorted.
  virtual Result<std::vector<std::string>> list_directory(const std::string& path) = 0;
  /// Creates the directory and its parents; fine if it is there.
  virtual Status create_directories(const std::string& path) = 0;
  virtual Status remove_file(const std::string& path) = 0;
  /// Removes a directory with everything in it; fine if it is not there.
  virtual Status remove_all(const std::string& path) = 0;
  /// Atomic; replaces `to`.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status sync_directory(const std::string& path) = 0;
  virtual Result<SpaceInfo> space(const std::string& path) = 0;
};

/// The files of the operating system.
std::unique_ptr<Env> make_posix_env();

/// The whole content of a file.
Result<std::string> read_file(Env& env, const std::string& path);
/// Replaces a file so that a crash leaves the old or the new content: temporary file, optional sync, rename.
Status write_file_atomically(Env& env, const std::string& path, std::string_view content, bool sync);

}  // namespace fjord
