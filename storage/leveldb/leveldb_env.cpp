#include "leveldb_env.h"

#include <array>
#include <cstdio>
#include <utility>

#include "fjord/common/log.h"

namespace fjord::leveldb_store {

namespace {

constexpr std::size_t kBufferBytes = 64 << 10;

bool is_log(const std::string& path) { return path.ends_with(".log"); }

class SequentialAdapter final : public leveldb::SequentialFile {
 public:
  SequentialAdapter(std::unique_ptr<fjord::RandomAccessFile> file, FileFailures& failures)
      : file_(std::move(file)), failures_(failures) {}

  leveldb::Status Read(size_t n, leveldb::Slice* result, char* scratch) override {
    const Result<std::size_t> read = file_->read(offset_, {scratch, n});
    *result = leveldb::Slice(scratch, read ? *read : 0);
    if (!read) {
      failures_.note(read.error());
      return leveldb::Status::IOError(read.error().message());
    }
    offset_ += *read;
    return leveldb::Status::OK();
  }
  leveldb::Status Skip(uint64_t n) override {
    offset_ += n;
    return leveldb::Status::OK();
  }

 private:
  std::unique_ptr<fjord::RandomAccessFile> file_;
  FileFailures& failures_;
  std::uint64_t offset_ = 0;
};

class TableAdapter final : public leveldb::RandomAccessFile {
 public:
  TableAdapter(std::unique_ptr<fjord::RandomAccessFile> file, FileFailures& failures)
      : file_(std::move(file)), failures_(failures) {}

  leveldb::Status Read(uint64_t offset, size_t n, leveldb::Slice* result, char* scratch) const override {
    const std::lock_guard lock(mutex_);
    const Result<std::size_t> read = file_->read(offset, {scratch, n});
    *result = leveldb::Slice(scratch, read ? *read : 0);
    if (read) return leveldb::Status::OK();
    failures_.note(read.error());
    return leveldb::Status::IOError(read.error().message());
  }

 private:
  mutable std::mutex mutex_;
  std::unique_ptr<fjord::RandomAccessFile> file_ FJORD_GUARDED_BY(mutex_);
  FileFailures& failures_;
};

struct HeldLock final : leveldb::FileLock {};

class LogAdapter final : public leveldb::Logger {
 public:
  void Logv(const char* format, std::va_list arguments) override {
    if (!log::enabled(log::Level::Debug)) return;
    std::array<char, 512> line;
    const int length = std::vsnprintf(line.data(), line.size(), format, arguments);
    if (length <= 0) return;
    std::string_view text(line.data(), std::min(static_cast<std::size_t>(length), line.size() - 1));
    while (text.ends_with('\n')) text.remove_suffix(1);
    log::debug("leveldb", "{}", text);
  }
};

}  // namespace

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::unique_ptr<leveldb::Logger> make_log_adapter() { return std::make_unique<LogAdapter>(); }

void FileFailures::note(const Status& status) {
  const std::lock_guard lock(mutex_);
  last_ = status;
}

void FileFailures::note_in_doubt(const Status& status) {
  const std::lock_guard lock(mutex_);
  last_ = status;
  if (in_doubt_) in_doubt_ = status;
}

Status FileFailures::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

Status FileFailures::in_doubt() const {
  const std::lock_guard lock(mutex_);
  return in_doubt_;
}

void FileFailures::reset() {
  const std::lock_guard lock(mutex_);
  last_ = Status::ok();
}

/// A log, table or manifest while it is being written. Threading: one user at a time.
class EnvAdapter::AppendedFile final : public leveldb::WritableFile {
 public:
  AppendedFile(EnvAdapter& adapter, std::string path, std::unique_ptr<fjord::RandomAccessFile> file,
               std::uint64_t offset)
      : adapter_(adapter), path_(std::move(path)), file_(std::move(file)), offset_(offset) {}
  ~AppendedFile() override {
    if (file_ != nullptr) static_cast<void>(Close());
  }

  leveldb::Status Append(const leveldb::Slice& data) override {
    buffer_.append(data.data(), data.size());
    return buffer_.size() < kBufferBytes ? leveldb::Status::OK() : Flush();
  }

  leveldb::Status Flush() override {
    if (buffer_.empty()) return leveldb::Status::OK();
    const Status status = file_->write(offset_, buffer_);
    if (status) {
      offset_ += buffer_.size();
      dirty_ = true;
    } else if (const Status cut = file_->truncate(offset_); !cut) {
      adapter_.failures_.note_in_doubt(cut.with_context("what a failed write left could not be taken back"));
    }
    buffer_.clear();
    if (buffer_.capacity() > 2 * kBufferBytes) buffer_.shrink_to_fit();
    return adapter_.report(status);
  }

  leveldb::Status Sync() override {
    leveldb::Status status = Flush();
    return status.ok() ? adapter_.sync(*this) : status;
  }

  leveldb::Status Close() override {
    const leveldb::Status status = Flush();
    if (dirty_ && is_log(path_)) {
      const std::lock_guard lock(adapter_.ended_mutex_);
      adapter_.ended_logs_.push_back({path_, std::move(file_)});
    }
    file_.reset();
    return status;
  }

 private:
  friend class EnvAdapter;
  EnvAdapter& adapter_;
  const std::string path_;
  std::unique_ptr<fjord::RandomAccessFile> file_;
  std::uint64_t offset_;
  std::string buffer_;
  bool dirty_ = false;  ///< True if something was written since the last sync.
  bool name_durable_ = false;
};

EnvAdapter::EnvAdapter(fjord::Env& env) : leveldb::EnvWrapper(leveldb::Env::Default()), env_(env) {}
EnvAdapter::~EnvAdapter() = default;

leveldb::Status EnvAdapter::report(const Status& status) {
  if (status) return leveldb::Status::OK();
  if (status.code() == StatusCode::NotFound) return leveldb::Status::NotFound(status.message());
  failures_.note(status);
  return leveldb::Status::IOError(status.message());
}

leveldb::Status EnvAdapter::sync(AppendedFile& file) {
  Status status;
  if (is_log(file.path_)) {
    const std::lock_guard lock(ended_mutex_);
    for (const EndedLog& ended : ended_logs_) {
      if (status) status = ended.file->sync();
    }
    if (status) ended_logs_.clear();
  }
  if (status) status = file.file_->sync();
  if (status && !file.name_durable_) status = env_.sync_directory(folder_of(file.path_));
  if (!status) {
    failures_.note_in_doubt(status.with_context("a sync failed"));
    return leveldb::Status::IOError(status.message());
  }
  file.dirty_ = false;
  file.name_durable_ = true;
  return leveldb::Status::OK();
}

leveldb::Status EnvAdapter::NewSequentialFile(const std::string& path, leveldb::SequentialFile** file) {
  *file = nullptr;
  auto opened = env_.open_random_access(path);
  if (!opened) return report(opened.error());
  *file = new SequentialAdapter(std::move(*opened), failures_);
  return leveldb::Status::OK();
}

leveldb::Status EnvAdapter::NewRandomAccessFile(const std::string& path, leveldb::RandomAccessFile** file) {
  *file = nullptr;
  auto opened = env_.open_random_access(path);
  if (!opened) return report(opened.error());
  *file = new TableAdapter(std::move(*opened), failures_);
  return leveldb::Status::OK();
}

leveldb::Status EnvAdapter::NewWritableFile(const std::string& path, leveldb::WritableFile** file) {
  *file = nullptr;
  auto created = env_.create_random_access(path);
  if (!created) return report(created.error());
  *file = new AppendedFile(*this, path, std::move(*created), 0);
  return leveldb::Status::OK();
}

leveldb::Status EnvAdapter::NewAppendableFile(const std::string& path, leveldb::WritableFile** file) {
  *file = nullptr;
  auto opened = env_.open_random_access(path);
  if (!opened && opened.error().code() == StatusCode::NotFound) return NewWritableFile(path, file);
  if (!opened) return report(opened.error());
  const Result<std::uint64_t> size = (*opened)->size();
  if (!size) return report(size.error());
  *file = new AppendedFile(*this, path, std::move(*opened), *size);
  return leveldb::Status::OK();
}

bool EnvAdapter::FileExists(const std::string& path) {
  const Result<bool> there = env_.exists(path);
  return there && *there;
}

leveldb::Status EnvAdapter::GetChildren(const std::string& directory, std::vector<std::string>* names) {
  Result<std::vector<std::string>> listed = env_.list_directory(directory);
  *names = listed ? std::move(*listed) : std::vector<std::string>();
  return report(listed.status());
}

leveldb::Status EnvAdapter::RemoveFile(const std::string& path) {
  if (is_log(path)) {
    const std::lock_guard lock(ended_mutex_);
    std::erase_if(ended_logs_, [&](const EndedLog& ended) { return ended.path == path; });
  }
  return report(env_.remove_file(path));
}

leveldb::Status EnvAdapter::CreateDir(const std::string& path) { return report(env_.create_directories(path)); }
leveldb::Status EnvAdapter::RemoveDir(const std::string& path) { return report(env_.remove_all(path)); }

leveldb::Status EnvAdapter::GetFileSize(const std::string& path, std::uint64_t* size) {
  *size = 0;
  const auto opened = env_.open_random_access(path);
  if (!opened) return report(opened.error());
  const Result<std::uint64_t> found = (*opened)->size();
  if (found) *size = *found;
  return report(found.status());
}

leveldb::Status EnvAdapter::RenameFile(const std::string& from, const std::string& to) {
  const Status status = env_.rename(from, to);
  if (!status) return report(status);
  // The renamed file is CURRENT, which names the manifest. It must be durable before LevelDB removes the old manifest.
  if (const Status synced = env_.sync_directory(folder_of(to)); !synced) {
    failures_.note_in_doubt(synced.with_context("a sync failed"));
    return leveldb::Status::IOError(synced.message());
  }
  return leveldb::Status::OK();
}

leveldb::Status EnvAdapter::LockFile(const std::string& /*path*/, leveldb::FileLock** lock) {
  *lock = new HeldLock;
  return leveldb::Status::OK();
}

leveldb::Status EnvAdapter::UnlockFile(leveldb::FileLock* lock) {
  delete lock;
  return leveldb::Status::OK();
}

}  // namespace fjord::leveldb_store
