#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "fjord/common/env.h"

namespace fjord::testing {

/// The disk of an engine under test, with faults that a test switches on. Threading: as the inner Env.
class FaultyEnv final : public Env {
 public:
  explicit FaultyEnv(std::unique_ptr<Env> inner) : inner_(std::move(inner)) {}

  /// Switches on or off that every sync fails.
  void fail_syncs(bool fail) { faults_.syncs_fail = fail; }
  /// Switches on or off that no file can grow. Writes within a file's size still succeed.
  void set_full(bool full) { faults_.full = full; }

  Result<std::unique_ptr<RandomAccessFile>> open_random_access(const std::string& path) override {
    return wrap(inner_->open_random_access(path));
  }
  Result<std::unique_ptr<RandomAccessFile>> create_random_access(const std::string& path) override {
    return wrap(inner_->create_random_access(path));
  }
  Result<bool> exists(const std::string& path) override { return inner_->exists(path); }
  Result<std::vector<std::string>> list_directory(const std::string& path) override {
    return inner_->list_directory(path);
  }
  Status create_directories(const std::string& path) override { return inner_->create_directories(path); }
  Status remove_file(const std::string& path) override { return inner_->remove_file(path); }
  Status remove_all(const std::string& path) override { return inner_->remove_all(path); }
  Status rename(const std::string& from, const std::string& to) override { return inner_->rename(from, to); }
  Status sync_directory(const std::string& path) override {
    return faults_.syncs_fail ? sync_failed() : inner_->sync_directory(path);
  }
  Result<SpaceInfo> space(const std::string& path) override {
    FJORD_TRY_ASSIGN(SpaceInfo space, inner_->space(path));
    if (faults_.full) space.free_bytes = 0;
    return space;
  }

 private:
  struct Faults {
    std::atomic<bool> syncs_fail = false;
    std::atomic<bool> full = false;
  };
  static Status sync_failed() { return Status(StatusCode::IoError, "the disk of this test does not sync"); }

  class File final : public RandomAccessFile {
   public:
    File(std::unique_ptr<RandomAccessFile> file, const Faults& faults) : file_(std::move(file)), faults_(faults) {}
    Result<std::size_t> read(std::uint64_t offset, std::span<char> into) const override {
      return file_->read(offset, into);
    }
    Status write(std::uint64_t offset, std::string_view data) override {
      FJORD_TRY(check_fits(offset + data.size()));
      return file_->write(offset, data);
    }
    Status write_gather(std::uint64_t offset, std::span<const std::string_view> pieces) override {
      std::uint64_t end = offset;
      for (const std::string_view piece : pieces) end += piece.size();
      FJORD_TRY(check_fits(end));
      return file_->write_gather(offset, pieces);
    }
    void start_writeback() override { file_->start_writeback(); }
    Status sync() override { return faults_.syncs_fail ? sync_failed() : file_->sync(); }
    Result<std::uint64_t> size() const override { return file_->size(); }
    std::string_view mapped(std::uint64_t end) override { return file_->mapped(end); }
    void will_need(std::uint64_t offset, std::uint64_t length) const override { file_->will_need(offset, length); }
    Status allocate(std::uint64_t size) override {
      FJORD_TRY(check_fits(size));
      return file_->allocate(size);
    }
    Status truncate(std::uint64_t size) override { return file_->truncate(size); }

   private:
    Status check_fits(std::uint64_t end) const {
      if (!faults_.full) return Status::ok();
      FJORD_TRY_ASSIGN(const std::uint64_t size, file_->size());
      return end <= size ? Status::ok() : Status(StatusCode::NoSpace, "the disk of this test is full");
    }

    const std::unique_ptr<RandomAccessFile> file_;
    const Faults& faults_;
  };

  Result<std::unique_ptr<RandomAccessFile>> wrap(Result<std::unique_ptr<RandomAccessFile>> file) {
    if (!file) return file;
    return std::unique_ptr<RandomAccessFile>(std::make_unique<File>(std::move(*file), faults_));
  }

  const std::unique_ptr<Env> inner_;
  Faults faults_;
};

}  // namespace fjord::testing
