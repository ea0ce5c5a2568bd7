#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/common/env.h"
#include "fjord/common/random.h"

namespace fjord::sim {

/// The operations that can be counted and made to fail.
enum class FileOperation {
  Open,
  Create,
  Read,
  Write,
  Sync,
  Allocate,
  Truncate,
  List,
  CreateDirectory,
  Remove,
  Rename,
  SyncDirectory,
};
inline constexpr std::size_t kFileOperations = 12;

/// A set of operations for FileFault.
class FileOperations {
 public:
  constexpr FileOperations(FileOperation one) : bits_(1U << static_cast<unsigned>(one)) {}  // NOLINT: a set of one
  static constexpr FileOperations all() { return FileOperations((1U << kFileOperations) - 1); }
  constexpr bool contains(FileOperation one) const { return (bits_ >> static_cast<unsigned>(one) & 1U) != 0; }
  friend constexpr FileOperations operator|(FileOperations a, FileOperations b) {
    return FileOperations(a.bits_ | b.bits_);
  }

 private:
  explicit constexpr FileOperations(std::uint32_t bits) : bits_(bits) {}
  std::uint32_t bits_;
};
constexpr FileOperations operator|(FileOperation a, FileOperation b) { return FileOperations(a) | FileOperations(b); }

/// A fault that waits for its operations to come along.
struct FileFault {
  enum class Effect {
    /// The operation returns `code`. A write has stored a prefix of its data by then, whose length the seed decides. A
    /// failed sync marks the data as clean: later syncs succeed without writing it. Until the power fails, readers see
    /// what was written.
    Fail,
    /// A write stores all of its data and returns `code` nevertheless.
    FailAfterwards,
    /// A sync that fails, after which readers see the old data as well. Needs SimEnvOptions::power_loss.
    FailSyncOldData,
    /// A write reports success and stores nothing.
    LoseWrite,
    /// A write reports success and stores its data elsewhere in the file, at a multiple of 512 bytes.
    MisdirectWrite,
  };

  std::string path_prefix = "/";  ///< of the whole path, with a leading '/'
  FileOperations operations = FileOperation::Write;
  StatusCode code = StatusCode::IoError;
  Effect effect = Effect::Fail;
  std::uint64_t skip = 0;   ///< so many matching operations are let through first
  std::uint64_t count = 1;  ///< so many are hit; after that the fault is gone
};

struct SimEnvOptions {
  std::uint64_t seed = 1;
  /// Remembers what is not durable, which lose_power() needs. Without it nothing extra is stored.
  bool power_loss = false;
  std::uint64_t capacity_bytes = std::uint64_t{1} << 40;
};

class SimTree;

/// The disk of one simulated machine, in memory.
///
/// A process that dies leaves everything it wrote; lose_power() drops what was not synced. Relative paths start at the
/// root; "." and empty components are skipped. Space is what the files' sizes add up to.
///
/// Threading: one thread. Lifetime: outlives the files it opened, whose owners may be destroyed in any order.
class SimEnv final : public Env {
 public:
  explicit SimEnv(SimEnvOptions options = {});
  ~SimEnv() override;

  Result<std::unique_ptr<RandomAccessFile>> open_random_access(const std::string& path) override;
  Result<std::unique_ptr<RandomAccessFile>> create_random_access(const std::string& path) override;
  Result<bool> exists(const std::string& path) override;
  Result<std::vector<std::string>> list_directory(const std::string& path) override;
  Status create_directories(const std::string& path) override;
  Status remove_file(const std::string& path) override;
  Status remove_all(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status sync_directory(const std::string& path) override;
  Result<SpaceInfo> space(const std::string& path) override;

  /// The machine goes off. Of the unsynced writes to a file the seed keeps none, all, or some 512-byte sectors; its
  /// size becomes the durable one, the last one or something between. Of the unsynced changes of names it keeps none or
  /// those up to some moment. Files opened before answer IoError from now on. Needs SimEnvOptions::power_loss.
  void lose_power();
  /// As lose_power(), but nothing that was not synced survives.
  void lose_power_and_all_unsynced();

  void inject(FileFault fault);
  void clear_faults();
  /// Injected faults that have not been used up.
  std::size_t faults_pending() const { return faults_.size(); }
  /// How often a fault was hit.
  std::uint64_t faults_hit() const { return faults_hit_; }

  /// From now on; files that are larger already stay. What does not fit fails with NoSpace.
  void set_capacity(std::uint64_t bytes) { options_.capacity_bytes = bytes; }
  std::uint64_t used_bytes() const;

  /// The medium decays: bit `bit` (0-7) of the byte at `offset` changes, in what readers see and in what survives.
  /// Errors: NotFound; InvalidArgument if the file is shorter.
  Status flip_bit(const std::string& path, std::uint64_t offset, int bit);

  /// Told of each operation before it is done; empty: nobody.
  void set_listener(std::function<void(FileOperation)> listener) { listener_ = std::move(listener); }
  /// Writes and allocations that failed with NoSpace.
  std::uint64_t refused_for_space() const { return refused_for_space_; }

  /// Calls so far, failed ones included: the range of FileFault::skip for a sweep.
  std::uint64_t operations(FileOperation operation) const { return counts_[static_cast<std::size_t>(operation)]; }
  /// All operations so far.
  std::uint64_t operations() const;

 private:
  class File;

  struct Verdict {
    FileFault::Effect effect = FileFault::Effect::Fail;
    Status status;  ///< what to report, unless the effect is to report nothing
    bool hit = false;
  };
  /// Counts the operation and finds the fault it hits, if any.
  Verdict begin(FileOperation operation, const std::string& path);
  /// begin() for operations that know no other effect than failing.
  Status begin_simple(FileOperation operation, const std::string& path);
  void lose_power(bool keep_some);
  std::uint64_t free_bytes() const;

  SimEnvOptions options_;
  Random random_;
  std::unique_ptr<SimTree> tree_;
  std::vector<FileFault> faults_;
  std::uint64_t faults_hit_ = 0;
  std::array<std::uint64_t, kFileOperations> counts_{};
  std::uint64_t power_cycles_ = 0;
  std::uint64_t refused_for_space_ = 0;
  std::function<void(FileOperation)> listener_;
};

}  // namespace fjord::sim
