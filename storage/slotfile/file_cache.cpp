#include "file_cache.h"

#include <utility>

namespace fjord::slotfile {

void FileCache::link_front(CachedFile& file) {
  file.newer_ = nullptr;
  file.older_ = newest_;
  if (newest_ != nullptr) newest_->newer_ = &file;
  newest_ = &file;
  if (oldest_ == nullptr) oldest_ = &file;
}

void FileCache::unlink(CachedFile& file) {
  (file.newer_ != nullptr ? file.newer_->older_ : newest_) = file.older_;
  (file.older_ != nullptr ? file.older_->newer_ : oldest_) = file.newer_;
}

void FileCache::make_place() {
  while (open_ >= limit_ && oldest_ != nullptr) oldest_->close();
}

Status CachedFile::open() {
  if (file_ == nullptr) {
    cache_.make_place();
    auto opened = cache_.env_.open_random_access(path_);
    if (!opened && opened.error().code() == StatusCode::NotFound) {
      return {StatusCode::Corruption, path_ + " is not there any more"};
    }
    FJORD_TRY_ASSIGN(file_, std::move(opened));
    ++cache_.open_;
    cache_.link_front(*this);
  } else if (cache_.newest_ != this) {
    cache_.unlink(*this);
    cache_.link_front(*this);
  }
  return Status::ok();
}

Result<RandomAccessFile*> CachedFile::get() {
  FJORD_TRY(open());
  return file_.get();
}

Result<std::shared_ptr<RandomAccessFile>> CachedFile::share() {
  FJORD_TRY(open());
  return file_;
}

Status CachedFile::create() {
  close();
  cache_.make_place();
  FJORD_TRY_ASSIGN(file_, io_error_if_gone(cache_.env_.create_random_access(path_)));
  ++cache_.open_;
  cache_.link_front(*this);
  return Status::ok();
}

void CachedFile::close() {
  if (file_ == nullptr) return;
  file_.reset();
  cache_.unlink(*this);
  --cache_.open_;
}

}  // namespace fjord::slotfile
