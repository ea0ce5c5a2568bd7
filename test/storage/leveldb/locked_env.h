#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "fjord/sim/sim_env.h"

namespace fjord::test {

/// A simulated disk behind a mutex, for an engine with several threads. Lifetime: `env` outlives this disk, which
/// outlives its files.
class LockedEnv final : public Env {
 public:
  explicit LockedEnv(sim::SimEnv& env) : env_(env) {}

  /// Calls `use` with the disk while no other thread uses it.
  template <typename Use>
  auto locked(Use use) {
    const std::lock_guard lock(mutex_);
    return use(env_);
  }

  /// Blocks the creation of files whose names end in `suffix`: the call waits for release() and then fails.
  void hold_creations(std::string suffix) {
    const std::lock_guard lock(mutex_);
    held_suffix_ = std::move(suffix);
  }
  void release() {
    {
      const std::lock_guard lock(mutex_);
      held_suffix_.reset();
    }
    released_.notify_all();
  }

  Result<std::unique_ptr<RandomAccessFile>> open_random_access(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return wrap(env_.open_random_access(path));
  }
  Result<std::unique_ptr<RandomAccessFile>> create_random_access(const std::string& path) override {
    std::unique_lock lock(mutex_);
    const bool held = held_suffix_ && path.ends_with(*held_suffix_);
    released_.wait(lock, [&] { return !held || !held_suffix_; });
    if (held) return Status(StatusCode::IoError, path + " was held up until the machine was off");
    return wrap(env_.create_random_access(path));
  }
  Result<bool> exists(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return env_.exists(path);
  }
  Result<std::vector<std::string>> list_directory(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return env_.list_directory(path);
  }
  Status create_directories(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return env_.create_directories(path);
  }
  Status remove_file(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return env_.remove_file(path);
  }
  Status remove_all(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return env_.remove_all(path);
  }
  Status rename(const std::string& from, const std::string& to) override {
    const std::lock_guard lock(mutex_);
    return env_.rename(from, to);
  }
  Status sync_directory(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return env_.sync_directory(path);
  }
  Result<SpaceInfo> space(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return env_.space(path);
  }

 private:
  class File final : public RandomAccessFile {
   public:
    File(std::unique_ptr<RandomAccessFile> file, std::mutex& mutex) : file_(std::move(file)), mutex_(mutex) {}
    ~File() override {
      const std::lock_guard lock(mutex_);
      file_.reset();
    }
    Result<std::size_t> read(std::uint64_t offset, std::span<char> into) const override {
      const std::lock_guard lock(mutex_);
      return file_->read(offset, into);
    }
    Status write(std::uint64_t offset, std::string_view data) override {
      const std::lock_guard lock(mutex_);
      return file_->write(offset, data);
    }
    Status write_gather(std::uint64_t offset, std::span<const std::string_view> pieces) override {
      const std::lock_guard lock(mutex_);
      return file_->write_gather(offset, pieces);
    }
    void start_writeback() override {}
    Status sync() override {
      const std::lock_guard lock(mutex_);
      return file_->sync();
    }
    Result<std::uint64_t> size() const override {
      const std::lock_guard lock(mutex_);
      return file_->size();
    }
    std::string_view mapped(std::uint64_t /*end*/) override { return {}; }
    void will_need(std::uint64_t /*offset*/, std::uint64_t /*length*/) const override {}
    Status allocate(std::uint64_t size) override {
      const std::lock_guard lock(mutex_);
      return file_->allocate(size);
    }
    Status truncate(std::uint64_t size) override {
      const std::lock_guard lock(mutex_);
      return file_->truncate(size);
    }

   private:
    std::unique_ptr<RandomAccessFile> file_;
    std::mutex& mutex_;
  };

  Result<std::unique_ptr<RandomAccessFile>> wrap(Result<std::unique_ptr<RandomAccessFile>> file) {
    if (!file) return file;
    return std::unique_ptr<RandomAccessFile>(std::make_unique<File>(std::move(*file), mutex_));
  }

  sim::SimEnv& env_;
  std::mutex mutex_;
  std::condition_variable released_;
  std::optional<std::string> held_suffix_;
};

}  // namespace fjord::test
