#pragma once

#include <leveldb/env.h>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fjord/common/env.h"
#include "fjord/common/thread_annotations.h"

namespace fjord::leveldb_store {

/// What the file system refused, for a leveldb::Status does not tell a full disk or a failed sync from other failures.
/// Threading: every thread.
class FileFailures {
 public:
  void note(const Status& status);
  /// A sync failed, or what a failed write left could not be taken back: what the files hold is unknown.
  void note_in_doubt(const Status& status);
  /// OK, or the last failure since reset().
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
/// What it does beyond passing calls on: a log that was ended without a sync is synced before the next one is, so that
/// a record never survives a loss of power without those before it; the name of a file is durable after its first sync;
/// what a failed write left behind is cut off again.
///
/// Threading: every thread. Lifetime: `env` outlives it.
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
  /// There is one user of the folder already.
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
  std::vector<EndedLog> ended_logs_ FJORD_GUARDED_BY(ended_mutex_);  ///< Not synced, oldest first.
};

/// The folder that a file or folder is in.
std::string folder_of(const std::string& path);

/// What LevelDB has to say about itself goes to the debug log.
std::unique_ptr<leveldb::Logger> make_log_adapter();

}  // namespace fjord::leveldb_store
