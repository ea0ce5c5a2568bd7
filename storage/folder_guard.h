#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "fjord/common/runtime.h"
#include "fjord/common/thread_annotations.h"
#include "folder_identity.h"

namespace fjord::storage {

/// Looks every second whether the folder of a node's files is still the one that was opened. If it is gone, was
/// replaced, or cannot be read, `gone` is called once; then nothing that the node acknowledges would be kept. Every few
/// seconds it makes and removes a file, and tells `probed` whether that worked: a folder in which no file can be made
/// fails the next checkpoint, which may be far away.
///
/// Threading: has its own executor, on which both are called, so that a file system that hangs delays nothing else.
/// The other functions: any thread. Lifetime: `runtime` outlives it.
class FolderGuard {
 public:
  /// Returns a number that another folder at the same path does not have; see StorageNodeOptions::folder_stamp.
  using Stamp = std::function<Result<std::uint64_t>()>;

  using Tell = std::function<void(const Status&)>;

  FolderGuard(std::string directory, FolderIdentity identity, Stamp stamp, Runtime& runtime, Tell gone, Tell probed);

  FolderIdentity identity() const;
  /// Makes the folder one of the cluster `cluster`; the number is not 0. Errors: InvalidArgument if it belongs to
  /// another cluster, naming both; those of save_identity().
  Status bind(std::uint64_t cluster);

 private:
  void look();
  /// Returns OK if the folder is the one that was opened. Errors: NotFound or AlreadyExists if it certainly is not,
  /// with what is there instead; others if it cannot be read, which may pass.
  Status check() const;
  /// Makes a file in the folder and removes it. Lack of space is no error here: the node watches it.
  Status probe() const;

  const std::string directory_;
  const Stamp stamp_;
  Env& env_;
  const Tell gone_;
  const Tell probed_;
  unsigned looks_ = 0;
  unsigned unreadable_ = 0;        ///< Looks in a row that could not read the folder.
  mutable std::mutex file_mutex_;  ///< Held while the file with the identity is read or written.
  mutable std::mutex mutex_;
  FolderIdentity identity_ FJORD_GUARDED_BY(mutex_);
  std::uint64_t stamp_at_start_ = 0;
  std::unique_ptr<Executor> executor_;  // The last member, because its tasks use all others.
};

}  // namespace fjord::storage
