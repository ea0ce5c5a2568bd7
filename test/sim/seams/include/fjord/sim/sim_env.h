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

/// The file operations that SimEnv counts and can make fail.
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

/// A fault that hits the next matching operations.
struct FileFault {
  enum class Effect {
    /// The operation returns `code`. A write has stored a prefix of its data by then; the seed decides its length. A
    /// failed sync marks the data as clean, so later syncs succeed without writing it. Readers see the written data
    /// until a power loss.
    Fail,
    /// A write stores all of its data but returns `code`.
    FailAfterwards,
    /// A sync fails, and readers see the data of the last sync from then on. Needs SimEnvOptions::power_loss.
    FailSyncOldData,
    /// A write reports success and stores nothing.
    LoseWrite,
    /// A write reports success and stores its data elsewhere in the file, at a multiple of 512 bytes.
    MisdirectWrite,
  };

  std::string path_prefix = "/";  ///< Prefix of the whole path, with a leading '/'.
  FileOperations operations = FileOperation::Write;
  StatusCode code = StatusCode::IoError;
  Effect effect = Effect::Fail;
  std::uint64_t skip = 0;   ///< Number of matching operations that pass first.
  std::uint64_t count = 1;  ///< Number of operations that are hit; the fault ends afterwards.
};

struct SimEnvOptions {
  std::uint64_t seed = 1;
  /// Keeps track of unsynced data, which lose_power() needs. Otherwise no extra data is stored.
  bool power_loss = false;
  std::uint64_t capacity_bytes = std::uint64_t{1} << 40;
};

class SimTree;

/// The disk of one simulated machine, in memory.
///
/// Writes survive the end of a process; lose_power() drops what was not synced. Relative paths start at the root; "."
/// and empty components are skipped. Used space is the sum of the files' sizes.
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

  /// Makes the disk a copy of `other` as the end of all its processes would leave it: files, what of them is synced,
  /// and the capacity. Injected faults are not copied. `other` does not change. Precondition: no file of this disk is
  /// open, and both keep track of unsynced data or neither does.
  void copy_from(const SimEnv& other);

  /// Cuts the power of the machine. Of the unsynced writes to a file the seed keeps none, all, or some 512-byte
  /// sectors; the file's size becomes the durable one, the last one or one between. Of the unsynced changes of names it
  /// keeps none or those up to some moment. Operations on files opened before return IoError. Needs
  /// SimEnvOptions::power_loss.
  void lose_power();
  /// As lose_power(), but no unsynced data survives.
  void lose_power_and_all_unsynced();

  void inject(FileFault fault);
  void clear_faults();
  /// Returns the number of injected faults that are not used up.
  std::size_t faults_pending() const { return faults_.size(); }
  /// Returns the number of operations that a fault hit.
  std::uint64_t faults_hit() const { return faults_hit_; }

  /// Sets the capacity from now on. Existing files stay even if they exceed it. Writes beyond it fail with NoSpace.
  void set_capacity(std::uint64_t bytes) { options_.capacity_bytes = bytes; }
  std::uint64_t used_bytes() const;
  /// Lets files of other programs take `bytes` of the capacity.
  void set_used_by_others(std::uint64_t bytes) { used_by_others_ = bytes; }

  /// Flips bit `bit` (0-7) of the byte at `offset`, in the data that readers see and in the durable data, as a decaying
  /// medium does. Errors: NotFound if there is no such file; InvalidArgument if the file is shorter.
  Status flip_bit(const std::string& path, std::uint64_t offset, int bit);

  /// `listener` is called before each operation; empty: no listener.
  void set_listener(std::function<void(FileOperation)> listener) { listener_ = std::move(listener); }
  /// Returns the number of writes and allocations that failed with NoSpace.
  std::uint64_t refused_for_space() const { return refused_for_space_; }

  /// Returns the number of calls so far, failed ones included: the range of FileFault::skip for a sweep.
  std::uint64_t operations(FileOperation operation) const { return counts_[static_cast<std::size_t>(operation)]; }
  /// Returns the number of all operations so far.
  std::uint64_t operations() const;

 private:
  class File;

  struct Verdict {
    FileFault::Effect effect = FileFault::Effect::Fail;
    Status status;  ///< The error to report; unused if the effect is to report success.
    bool hit = false;
  };
  /// Counts the operation and returns the fault that hits it, if any.
  Verdict begin(FileOperation operation, const std::string& path);
  /// Counts an operation that a fault can only make fail, and returns its error.
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
  std::uint64_t used_by_others_ = 0;
  std::uint64_t refused_for_space_ = 0;
  std::function<void(FileOperation)> listener_;
};

}  // namespace fjord::sim
