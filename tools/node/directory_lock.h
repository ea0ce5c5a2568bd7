#pragma once

#include <string>

#include "fjord/common/result.h"

namespace fjord {

/// Keeps other processes out of a data folder while it lives; the system lets go of it when the process ends, however
/// it ends. The file `lock` in the folder holds the process id, for messages only.
class DirectoryLock {
 public:
  /// Makes the folder if it is missing. Errors: AlreadyExists that names the process; IoError.
  static Result<DirectoryLock> acquire(const std::string& directory, const std::string& owner);
  DirectoryLock(DirectoryLock&& other) noexcept;
  DirectoryLock& operator=(DirectoryLock&& other) noexcept;
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int file) : file_(file) {}
  int file_ = -1;
};

}  // namespace fjord
