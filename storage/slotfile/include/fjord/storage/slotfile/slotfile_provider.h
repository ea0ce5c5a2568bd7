#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fjord/common/env.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord {

/// When a write counts as done.
enum class Durability {
  Process,  ///< In the operating system's cache: survives the end of the process, not a loss of power.
  Sync,     ///< On the device: the parts are synced before the metadata that points to them, then the metadata.
};

/// How large slotfiles become. May be changed while running; a slotfile follows when it is next written to.
struct SlotfileLimits {
  /// Bytes of a slotfile at which all slotfiles of the bucket are split in two.
  std::uint64_t file_bytes_max = 16ULL << 20;
  /// The same for its entries. Lookups do not depend on it (there is an index in memory), but the cost of opening does.
  std::uint32_t entries_max = 8192;
  /// Slotfiles of a bucket; a power of two, at most 64. Beyond it the files grow over their maximum instead, so a
  /// bucket that large should be split by the cluster.
  std::uint32_t slotfiles_max = 64;
};

struct SlotfileOptions {
  /// Folder with one folder for each bucket; made if it is missing. Several stripes share it. With
  /// durability sync, what it is in has to be there already.
  std::string directory;
  /// This engine serves the buckets with (raw() & (stripes - 1)) == stripe, and touches no other.
  unsigned stripe = 0;
  unsigned stripes = 1;                                            ///< A power of two.
  std::uint64_t file_bytes_max = SlotfileLimits{}.file_bytes_max;  ///< See SlotfileLimits.
  std::uint32_t entries_max = SlotfileLimits{}.entries_max;        ///< See SlotfileLimits.
  unsigned slotfiles_max = SlotfileLimits{}.slotfiles_max;         ///< See SlotfileLimits.
  /// What the first write to a slotfile reserves at least; afterwards the size doubles when it is full.
  std::uint64_t file_bytes_initial = 64ULL << 10;
  std::uint32_t entries_initial = 64;
  /// Files kept open by this engine; the one used longest ago is closed first.
  unsigned open_files_max = 1024;
  Durability durability = Durability::Process;
};

/// What the engine has met and done since it was opened; the first three are of now.
struct SlotfileStats {
  std::uint64_t slotfiles = 0;
  std::uint64_t entries = 0;
  std::uint64_t index_bytes = 0;  ///< Memory held for the entries.
  std::uint64_t open_files = 0;

  std::uint64_t bad_entries = 0;        ///< Metadata entries with a wrong checksum, dropped while opening.
  std::uint64_t torn_entries = 0;       ///< The same behind the last valid one: what an interrupted write leaves.
  std::uint64_t repaired_entries = 0;   ///< Metadata entries with one flipped bit, which was found and turned back.
  std::uint64_t bad_slotfiles = 0;      ///< Unreadable or missing; an unreadable one is kept under the suffix ".bad".
  std::uint64_t short_slotfiles = 0;    ///< Cut off at the end; reads of what was there fail.
  std::uint64_t rebuilt_manifests = 0;  ///< Damaged; made again from the slotfiles, with replica set epoch 0.
  std::uint64_t leftovers_removed = 0;  ///< Files of an interrupted split, rewrite or deletion.
  std::uint64_t corrupt_reads = 0;      ///< Document parts that did not verify when read.
  std::uint64_t failed_writes = 0;      ///< Runs of writes refused by the file system.

  std::uint64_t rewrites = 0;  ///< Slotfiles enlarged or compacted.
  std::uint64_t splits = 0;    ///< Of buckets, k to k + 1.

  /// True if something acknowledged may be missing here; replicas of this node should be compared and repaired.
  bool damaged() const {
    return bad_entries + bad_slotfiles + short_slotfiles + rebuilt_manifests + corrupt_reads != 0;
  }
};

/// The default engine: each bucket is 2^k slotfiles. Format, and what a crash leaves behind: storage/FORMAT.md.
///
/// Threading: like every provider. Lifetime: `env` outlives it.
class SlotfileProvider : public spi::PersistenceProvider {
 public:
  /// Opens all buckets of the stripe and reads their metadata lists. Damage does not fail it: what is damaged is left
  /// out, counted in stats() and logged. Errors: InvalidArgument (options), IoError, NoSpace.
  static Result<std::unique_ptr<SlotfileProvider>> open(Env& env, const SlotfileOptions& options);

  virtual SlotfileStats stats() const = 0;
  /// Errors: InvalidArgument; the old limits stay then.
  virtual Status set_limits(const SlotfileLimits& limits) = 0;
  virtual SlotfileLimits limits() const = 0;
};

/// SlotfileProvider::open for those who need no more than the contract.
Result<std::unique_ptr<spi::PersistenceProvider>> open_slotfile_provider(Env& env, const SlotfileOptions& options);

}  // namespace fjord
