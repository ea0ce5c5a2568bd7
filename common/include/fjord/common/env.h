#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"

namespace fjord {

/// A file open for reads and writes at any position.
/// Threading: one user at a time, except sync(). Lifetime: closed by its destructor; `env` outlives it.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;
  /// Reads up to `into.size()` bytes at `offset`; fewer only at the end of the file. Returns the number of bytes read.
  virtual Result<std::size_t> read(std::uint64_t offset, std::span<char> into) const = 0;
  /// Writes all of `data` at `offset`, enlarging the file where needed. Durable only after sync().
  virtual Status write(std::uint64_t offset, std::string_view data) = 0;
  /// Writes the pieces one after the other, as one write. After an error, any part of the pieces can be in the file.
  virtual Status write_gather(std::uint64_t offset, std::span<const std::string_view> pieces) = 0;
  /// Asks the system to start writing data to the device, so that a later sync has less to do. Guarantees nothing.
  virtual void start_writeback() = 0;
  /// Makes the data written so far durable. After an error the file must not be used again: the system can have dropped
  /// the data, and a second sync would succeed without it. Can be called while another thread reads or writes; that
  /// thread's writes meanwhile are not guaranteed to be durable.
  virtual Status sync() = 0;
  virtual Result<std::uint64_t> size() const = 0;
  /// Returns the first `end` bytes of the file as mapped memory; empty if that is not possible. The file must have
  /// these bytes. The view is valid while the file is open. Bytes that the file has lost read as zeros: see
  /// lost_pages.h.
  virtual std::string_view mapped(std::uint64_t end) = 0;
  /// Announces that this range will be read soon. Guarantees nothing.
  virtual void will_need(std::uint64_t offset, std::uint64_t length) const = 0;
  /// Announces that ranges will be read in no order, so that the system reads nothing ahead of them. Guarantees
  /// nothing.
  virtual void expect_random() const {}
  /// Announces that this range, which was read or made durable, need not stay in the system's cache. Guarantees
  /// nothing.
  virtual void will_not_need(std::uint64_t offset, std::uint64_t length) const {
    static_cast<void>(offset);
    static_cast<void>(length);
  }
  /// Returns false if a read of a range of mapped() would wait for the medium; true also if that is unknown.
  virtual bool is_resident(std::uint64_t offset, std::uint64_t length) const {
    static_cast<void>(offset);
    static_cast<void>(length);
    return true;
  }
  /// Reserves space and sets the size (new bytes read as zero); a smaller size truncates. Errors: NoSpace.
  virtual Status allocate(std::uint64_t size) = 0;
  virtual Status truncate(std::uint64_t size) = 0;
};

/// Space of a file system without what it keeps for root.
struct SpaceInfo {
  std::uint64_t total_bytes = 0;  ///< Used and free together.
  std::uint64_t free_bytes = 0;
};

/// Files and directories. Paths are '/'-separated. Data is durable only after sync; a name (create, rename, remove) is
/// durable only after sync_directory of its folder. Threading: every thread. Errors: NotFound, AlreadyExists, NoSpace,
/// IoError with path and errno text.
class Env {
 public:
  virtual ~Env() = default;
  /// Opens an existing file.
  virtual Result<std::unique_ptr<RandomAccessFile>> open_random_access(const std::string& path) = 0;
  /// Creates an empty file, or empties an existing one.
  virtual Result<std::unique_ptr<RandomAccessFile>> create_random_access(const std::string& path) = 0;
  virtual Result<bool> exists(const std::string& path) = 0;
  /// Returns the names (not paths) in a directory, sorted.
  virtual Result<std::vector<std::string>> list_directory(const std::string& path) = 0;
  /// Creates the directory and its parents; OK if it exists.
  virtual Status create_directories(const std::string& path) = 0;
  virtual Status remove_file(const std::string& path) = 0;
  /// Removes a directory with its content; OK if it does not exist.
  virtual Status remove_all(const std::string& path) = 0;
  /// Renames atomically; replaces `to`.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status sync_directory(const std::string& path) = 0;
  virtual Result<SpaceInfo> space(const std::string& path) = 0;
};

/// Returns an Env on the files of the operating system.
std::unique_ptr<Env> make_posix_env();

/// Returns the whole content of a file.
Result<std::string> read_file(Env& env, const std::string& path);
/// Replaces a file so that a crash leaves the old or the new content: temporary file, optional sync, rename.
Status write_file_atomically(Env& env, const std::string& path, std::string_view content, bool sync);

}  // namespace fjord
