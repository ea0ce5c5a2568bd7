#pragma once

#include <string>

#include "fjord/common/result.h"

namespace fjord {

/// An exclusive lock of a data folder against other processes. The system releases the lock when the process ends, also
/// after a crash. The file `lock` in the folder holds the process id, for messages only.
class DirectoryLock {
 public:
  /// Locks the folder; creates a missing folder. `is_shared`: it may belong to another user, and others may change it.
  /// Errors: AlreadyExists that names the process holding the lock; those of make_private_folder().
  static Result<DirectoryLock> acquire(const std::string& directory, const std::string& owner, bool is_shared);
  DirectoryLock(DirectoryLock&& other) noexcept;
  DirectoryLock& operator=(DirectoryLock&& other) noexcept;
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int file) : file_(file) {}
  int file_ = -1;
};

}  // namespace fjord
