#pragma once

#include <cstdint>
#include <string>

#include "fjord/common/result.h"

namespace fjord::bench {

/// The folder of one engine, with its subfolders. All calls may return IoError.
///
/// Files that disappear during a call, because the engine deletes them, are skipped.
class EngineDirectory {
 public:
  /// Creates an empty folder; removes an existing one first.
  static Result<EngineDirectory> make(std::string path);
  EngineDirectory(const EngineDirectory&) = delete;
  EngineDirectory& operator=(const EngineDirectory&) = delete;
  EngineDirectory(EngineDirectory&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  EngineDirectory& operator=(EngineDirectory&&) = delete;
  /// Removes the folder with its content.
  ~EngineDirectory();

  const std::string& path() const { return path_; }
  /// Returns the bytes that the file system has allocated to its files and folders.
  Result<std::uint64_t> allocated_bytes() const;
  /// Returns the bytes of its files that are in the page cache.
  Result<std::uint64_t> cached_bytes() const;
  /// Calls fsync on every file and folder.
  Status sync() const;
  /// Removes its files from the page cache: fsync, then POSIX_FADV_DONTNEED. Precondition: no file is open or mapped.
  /// Errors: IoError also if more than a hundredth stays in the cache.
  Status drop_from_cache() const;

 private:
  explicit EngineDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace fjord::bench
