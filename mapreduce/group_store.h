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

/// A folder for what tasks cannot keep in memory.
/// Threading: every thread. Lifetime: `env` outlives it.
class SpillArea {
 public:
  /// An empty `directory`: there is none, and tasks fail instead.
  SpillArea(Env& env, std::string directory) : env_(env), directory_(std::move(directory)) {}

  bool is_there() const { return !directory_.empty(); }
  /// Removes what an earlier process left.
  Status clean();
  Env& env() { return env_; }
  /// A name that nobody has. Errors: those of making the folder.
  Result<std::string> new_path();

 private:
  Env& env_;
  std::string directory_;
  std::atomic<std::uint64_t> next_{0};
};

struct GroupStoreOptions {
  std::size_t memory_bytes = 0;    ///< The groups in memory together; a single group may need more.
  std::uint64_t spill_bytes = 0;   ///< What may lie on disk.
  std::uint32_t destinations = 1;  ///< The order in which tuples come out: by destination, then by key.
  bool lose_spills = false;        ///< Wrong on purpose: forgets what it has written to disk.
};

/// The groups of one task: in memory up to a limit; beyond it the table is written to disk in the order in which tuples
/// come out and begun anew, and in the end table and files are merged. So the tuples that come out depend only on what
/// went in. The files are read back with checksums and removed with this object.
///
/// Threading: confined. Lifetime: what it is given outlives it.
class GroupStore {
 public:
  GroupStore(Application& application, SpillArea& area, GroupStoreOptions options,
             std::function<bool()> cancelled = {});
  ~GroupStore();
  GroupStore(const GroupStore&) = delete;
  GroupStore& operator=(const GroupStore&) = delete;

  Accumulator& table() { return *table_; }
  /// After each addition to the table. Errors: TooLarge that names the setting; those of writing.
  Status keep_within_memory();
  /// All tuples; nothing is added after that. The source does not outlive this object. Errors: those of reading.
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
