#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "accumulator.h"
#include "fjord/common/env.h"

namespace fjord::mapreduce {

/// A directory for groups that tasks cannot keep in memory.
/// Threading: callable from any thread. Lifetime: `env` outlives it.
class SpillArea {
 public:
  /// An empty `directory` means that there is none; tasks that need it fail.
  SpillArea(Env& env, std::string directory) : env_(env), directory_(std::move(directory)) {}

  bool is_there() const { return !directory_.empty(); }
  /// Removes the files that an earlier process left.
  Status clean();
  Env& env() { return env_; }
  /// Returns an unused path. Errors: those of creating the directory.
  Result<std::string> new_path();

 private:
  Env& env_;
  std::string directory_;
  std::atomic<std::uint64_t> next_{0};
};

struct GroupStoreOptions {
  std::size_t memory_bytes = 0;    ///< Limit for all groups in memory; a single group may exceed it.
  std::uint64_t spill_bytes = 0;   ///< Limit for groups on disk.
  std::uint32_t destinations = 1;  ///< Tuples come out sorted by destination, then by key.
};

/// The groups of one task. They are in memory up to a limit; beyond it the table is written to disk in output order and
/// emptied, and at the end table and files are merged. So the tuples that come out depend only on those that went in.
/// The files have checksums and are removed with this object.
///
/// Threading: confined. Lifetime: all arguments of the constructor outlive it.
class GroupStore {
 public:
  GroupStore(Application& application, SpillArea& area, GroupStoreOptions options,
             std::function<bool()> cancelled = {});
  ~GroupStore();
  GroupStore(const GroupStore&) = delete;
  GroupStore& operator=(const GroupStore&) = delete;

  Accumulator& table() { return *table_; }
  /// Called after each addition to the table. Writes the table to disk if it exceeds the limit. Errors: TooLarge that
  /// names the setting; those of writing.
  Status keep_within_memory();
  /// Returns all tuples; nothing may be added afterwards. The source must not outlive this object. Errors: those of
  /// reading.
  Result<std::unique_ptr<TupleSource>> finish();
  std::uint64_t spilled_bytes() const { return spilled_bytes_; }

 private:
  struct Run;
  Status spill();

  Application& application_;
  SpillArea& area_;
  GroupStoreOptions options_;
  std::unique_ptr<Accumulator> table_;
  std::vector<std::unique_ptr<Run>> runs_;
  std::uint64_t spilled_bytes_ = 0;
};

}  // namespace fjord::mapreduce
