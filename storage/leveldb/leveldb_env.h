#pragma once

#include <leveldb/env.h>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fjord/common/env.h"
#include "fjord/common/thread_annotations.h"

namespace fjord::leveldb_store {

/// Remembers which operations the file system refused, because a leveldb::Status does not distinguish a full disk or a
/// failed sync from other failures.
/// Threading: from any thread.
class FileFailures {
 public:
  void note(const Status& status);
  /// Records that a sync failed, or that a failed write could not be undone: the content of the files is unknown.
  void note_in_doubt(const Status& status);
  /// Returns the last failure since reset(), or OK.
  Status last() const;
  Status in_doubt() const;
  void reset();

 private:
  mutable std::mutex mutex_;
  Status last_ FJORD_GUARDED_BY(mutex_);
  Status in_doubt_ FJORD_GUARDED_BY(mutex_);
};

/// Lets LevelDB work on the files of an Env. Time and threads are those of the system.
///
/// It passes calls on to the Env, and does three things in addition. A log that was closed without a sync is synced
/// before the next log is, so that a record never survives a loss of power without its predecessors. The name of a file
/// becomes durable with its first sync. The remains of a failed write are cut off.
///
/// Threading: from any thread. Lifetime: `env` outlives it.
class EnvAdapter final : public leveldb::EnvWrapper {
 public:
  explicit EnvAdapter(fjord::Env& env);
  ~EnvAdapter() override;

  FileFailures& failures() { return failures_; }

  leveldb::Status NewSequentialFile(const std::string& path, leveldb::SequentialFile** file) override;
  leveldb::Status NewRandomAccessFile(const std::string& path, leveldb::RandomAccessFile** file) override;
  leveldb::Status NewWritableFile(const std::string& path, leveldb::WritableFile** file) override;
  leveldb::Status NewAppendableFile(const std::string& path, leveldb::WritableFile** file) override;
  bool FileExists(const std::string& path) override;
  leveldb::Status GetChildren(const std::string& directory, std::vector<std::string>* names) override;
  leveldb::Status RemoveFile(const std::string& path) override;
  leveldb::Status CreateDir(const std::string& path) override;
  leveldb::Status RemoveDir(const std::string& path) override;
  leveldb::Status GetFileSize(const std::string& path, std::uint64_t* size) override;
  leveldb::Status RenameFile(const std::string& from, const std::string& to) override;
  /// Does not lock, because the caller ensures that the folder has one user.
  leveldb::Status LockFile(const std::string& path, leveldb::FileLock** lock) override;
  leveldb::Status UnlockFile(leveldb::FileLock* lock) override;

 private:
  class AppendedFile;

  leveldb::Status report(const Status& status);
  leveldb::Status sync(AppendedFile& file);

  fjord::Env& env_;
  FileFailures failures_;
  std::mutex ended_mutex_;
  struct EndedLog {
    std::string path;
    std::unique_ptr<fjord::RandomAccessFile> file;
  };
  std::vector<EndedLog> ended_logs_ FJORD_GUARDED_BY(ended_mutex_);  ///< Closed logs that are not synced, oldest first.
};

/// Returns the parent folder of a file or folder.
std::string folder_of(const std::string& path);

/// Makes a logger that writes LevelDB's messages to the debug log.
std::unique_ptr<leveldb::Logger> make_log_adapter();

}  // namespace fjord::leveldb_store
