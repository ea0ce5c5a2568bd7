#pragma once

#include <cstdint>
#include <string>

#include "fjord/common/result.h"

namespace fjord::bench {

/// The folder of one engine, with the folders in it. Errors of all calls: IoError.
///
/// Files that disappear meanwhile, because an engine tidies up, are passed over.
class EngineDirectory {
 public:
  /// Made empty; what was there is removed.
  static Result<EngineDirectory> make(std::string path);
  EngineDirectory(const EngineDirectory&) = delete;
  EngineDirectory& operator=(const EngineDirectory&) = delete;
  EngineDirectory(EngineDirectory&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  EngineDirectory& operator=(EngineDirectory&&) = delete;
  /// Removes it.
  ~EngineDirectory();

  const std::string& path() const { return path_; }
  /// What the file system has given to its files and folders.
  Result<std::uint64_t> allocated_bytes() const;
  /// Of its files, what is in the page cache.
  Result<std::uint64_t> cached_bytes() const;
  /// fsync of every file and folder.
  Status sync() const;
  /// Takes its files out of the page cache: fsync, then POSIX_FADV_DONTNEED. Only while no file is open or mapped.
  /// Errors: IoError also if more than a hundredth stays.
  Status drop_from_cache() const;

 private:
  explicit EngineDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace fjord::bench
