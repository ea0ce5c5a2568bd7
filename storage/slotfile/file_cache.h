#pragma once

#include <memory>
#include <string>

#include "fjord/common/env.h"

namespace fjord::slotfile {

class CachedFile;

/// Turns NotFound for a path into IoError. For callers that ask for a document or bucket, NotFound would mean that it
/// does not exist; a missing file is a fault of the machine instead.
inline Status io_error_if_gone(const Status& status) {
  return status.code() == StatusCode::NotFound ? Status(StatusCode::IoError, status.message()) : status;
}
template <typename T>
Result<T> io_error_if_gone(Result<T> result) {
  if (!result) return io_error_if_gone(result.error());
  return result;
}

/// Keeps at most `limit` files open and closes the least recently used one.
/// Threading: confined to its engine. Lifetime: outlives its CachedFiles; `env` outlives it.
class FileCache {
 public:
  FileCache(Env& env, unsigned limit) : env_(env), limit_(limit) {}
  FileCache(const FileCache&) = delete;
  FileCache& operator=(const FileCache&) = delete;

  unsigned open_files() const { return open_; }

 private:
  friend class CachedFile;  // accesses the neighbours in the intrusive list of open files

  void link_front(CachedFile& file);
  void unlink(CachedFile& file);
  void make_place();

  Env& env_;
  const unsigned limit_;
  unsigned open_ = 0;
  CachedFile* newest_ = nullptr;
  CachedFile* oldest_ = nullptr;
};

/// A file, named by its path, that is opened when it is needed.
class CachedFile {
 public:
  CachedFile(FileCache& cache, std::string path) : cache_(cache), path_(std::move(path)) {}
  ~CachedFile() { close(); }
  CachedFile(const CachedFile&) = delete;
  CachedFile& operator=(const CachedFile&) = delete;

  /// Opens the file if necessary. The pointer is valid until the next get() of another file of the cache, or close().
  /// Errors: Corruption if the file is missing; those of opening.
  Result<RandomAccessFile*> get();
  /// Like get(), but the file stays open as long as the caller holds the pointer.
  Result<std::shared_ptr<RandomAccessFile>> share();
  bool is_open() const { return file_ != nullptr; }
  /// Creates an empty file.
  Status create();
  void close();
  const std::string& path() const { return path_; }

 private:
  friend class FileCache;

  Status open();

  FileCache& cache_;
  const std::string path_;
  std::shared_ptr<RandomAccessFile> file_;
  CachedFile* newer_ = nullptr;
  CachedFile* older_ = nullptr;
};

}  // namespace fjord::slotfile
