#pragma once

#include <string>

#include "fjord/common/result.h"

namespace fjord {

/// An exclusive lock of a data folder against other processes. The system releases the lock when the process ends, also
/// after a crash. The file `lock` in the folder holds the process id, for messages only.
class DirectoryLock {
 public:
  /// Locks the folder; creates a missing folder. Errors: AlreadyExists that names the process holding the lock;
  /// IoError.
  static Result<DirectoryLock> acquire(const std::string& directory, const std::string& owner);
  DirectoryLock(DirectoryLock&& other) noexcept;
  DirectoryLock& operator=(DirectoryLock&& other) noexcept;
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int file) : file_(file) {}
  int file_ = -1;
};

}  // namespace fjord
