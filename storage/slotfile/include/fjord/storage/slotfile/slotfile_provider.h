#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "fjord/common/clock.h"
#include "fjord/common/env.h"
#include "fjord/common/executor.h"
#include "fjord/common/metrics.h"
#include "fjord/common/tunable.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord {

using spi::Durability;

/// What may be changed while running; a slotfile follows when it is next written to.
struct SlotfileLimits {
  /// Bytes of the newest versions in a slotfile at which it is split in two.
  std::uint64_t file_bytes_max = 16ULL << 20;
  /// The same for their number. Lookups do not depend on it (there is an index in memory), but the memory of an index
  /// and the time to load it do.
  std::uint32_t entries_max = 8192;
  /// Slotfiles of a bucket; a power of two, at most 64. Beyond it the files grow over their maximum instead, so a
  /// bucket that large should be split by the cluster.
  std::uint32_t slotfiles_max = 64;
  /// Memory for writes that are in the journal and not yet in slotfiles. More makes the runs in the files longer.
  std::uint64_t held_bytes_max = 64ULL << 20;
  /// Memory for indexes. Those that were not used for the longest time are dropped beyond it, and read again when they
  /// are needed; 10 million documents take some 600 MB.
  std::uint64_t index_bytes_max = 1ULL << 30;
  /// Journal that is replayed after a crash at most, roughly: a checkpoint begins at half of it.
  std::uint64_t journal_bytes_max = 256ULL << 20;
  /// Of each slotfile, what overwritten and removed documents may take before it is written anew; in percent.
  std::uint32_t dead_percent_max = 30;
  /// How fast the scrub reads, which verifies everything that is stored time and again; 0 turns it off.
  std::uint64_t scrub_bytes_per_second = 4ULL << 20;

  friend bool operator==(const SlotfileLimits&, const SlotfileLimits&) = default;
};

/// The limits as tunables of a storage node, for all stripes together where they are about memory or the journal.
/// Threading: from anywhere.
class SlotfileTunables {
 public:
  /// Declares them, with the given values as defaults. Lifetime: `registry` outlives it.
  SlotfileTunables(TunableRegistry& registry, const SlotfileLimits& defaults);
  /// Of one of `stripes` engines, as they are now.
  SlotfileLimits of_stripe(unsigned stripes) const;

 private:
  const Tunable& file_bytes_max_;
  const Tunable& entries_max_;
  const Tunable& slotfiles_max_;
  const Tunable& held_bytes_max_;
  const Tunable& index_bytes_max_;
  const Tunable& journal_bytes_max_;
  const Tunable& dead_percent_max_;
  const Tunable& scrub_bytes_per_second_;
};

struct SlotfileOptions {
  /// Folder of the engine's files; made if it is missing. Several stripes share it. What it is in has to be there
  /// already.
  std::string directory;
  /// This engine serves the buckets with (raw() & (stripes - 1)) == stripe, and touches no other. The number of stripes
  /// of a folder never changes.
  unsigned stripe = 0;
  unsigned stripes = 1;  ///< A power of two, at most 256.
  SlotfileLimits limits;
  /// The journal is written in files of this size, which is reserved.
  std::uint64_t journal_segment_bytes = 8ULL << 20;
  /// Files kept open by this engine; the one used longest ago is closed first.
  unsigned open_files_max = 1024;
  /// Documents are read from mapped files: faster, and a medium that fails under a read ends the process instead of the
  /// read (the scrub reads without, and meets such places first).
  bool map_files = true;
  /// The least that writes get, whatever they ask for.
  Durability durability = Durability::Process;
  /// The least that changes of buckets get: replica sets, splits, what is deleted. Never less than `durability`.
  Durability change_durability = Durability::Process;

  bool syncs_changes() const { return durability == Durability::Sync || change_durability == Durability::Sync; }
  /// Where the limits come from while it runs, instead of `limits`; null: they stay. Outlives the engine.
  const SlotfileTunables* tunables = nullptr;
  /// Where the statistics are told; null: nowhere. Outlives the engine.
  MetricRegistry* metrics = nullptr;
  /// With what waits and puts are timed; null: they are not. Outlives the engine.
  const Clock* clock = nullptr;
  /// Where files are synced in the background; null: in maintain(). Outlives the engine.
  Executor* background = nullptr;
};

/// Of some puts, removes and updates: how long they took, and how much of that the search for their entry in the
/// slotfile did. Searching is loading the index, if it is not in memory, and looking the id up in it.
struct SampledPuts {
  std::uint64_t puts = 0;
  std::uint64_t entries = 0;  ///< Of their slotfiles, added up.
  std::uint64_t us = 0;       ///< With their share of the batch's journal write.
  std::uint64_t search_us = 0;
};

/// Classes of slotfiles by their entries: below 256, 1024, ..., 1 Mi, and the rest.
inline constexpr std::size_t kEntryClasses = 8;
/// The bound of a class; 0 for the last one, which has none.
constexpr std::uint64_t entry_class_bound(std::size_t index) {
  return index + 1 == kEntryClasses ? 0 : std::uint64_t{256} << (2 * index);
}

/// What the engine has met and done since it was opened; the first block is of now.
struct SlotfileStats {
  std::uint64_t slotfiles = 0;
  std::uint64_t slots = 0;
  std::uint64_t entries = 0;
  std::uint64_t index_bytes = 0;  ///< Memory held for indexes.
  std::uint64_t held_bytes = 0;   ///< Written and not yet in slotfiles.
  std::uint64_t live_bytes = 0;   ///< What the newest versions take in slotfiles.
  std::uint64_t file_bytes = 0;   ///< Size of the slotfiles.
  std::uint64_t journal_bytes = 0;
  std::uint64_t open_files = 0;
  std::uint64_t damaged_buckets = 0;

  std::uint64_t bad_entries = 0;        ///< Metadata entries with a wrong checksum, left out.
  std::uint64_t repaired_entries = 0;   ///< Metadata entries with one flipped bit, which was found and turned back.
  std::uint64_t bad_runs = 0;           ///< Runs of which nothing can be read.
  std::uint64_t bad_slotfiles = 0;      ///< Missing.
  std::uint64_t corrupt_reads = 0;      ///< Document parts that did not verify when read, and are in quarantine.
  std::uint64_t lost_records = 0;       ///< Of the journal: missing or broken before others that are there.
  std::uint64_t damaged_catalogs = 0;   ///< Copies of the catalog that could not be read.
  std::uint64_t leftovers_removed = 0;  ///< Files of an interrupted change.
  std::uint64_t failed_writes = 0;      ///< Refused by the file system.

  std::uint64_t replayed_bytes = 0;  ///< Of the journal, when it was opened.
  std::uint64_t replayed_records = 0;

  std::uint64_t flushes = 0;  ///< Runs written to slotfiles.
  std::uint64_t flushed_bytes = 0;
  std::uint64_t checkpoints = 0;
  std::uint64_t rewrites = 0;  ///< Slotfiles written anew: compacted, or after a split or join.
  std::uint64_t rewritten_bytes = 0;
  std::uint64_t splits = 0;  ///< Of slots.
  std::uint64_t joins = 0;
  std::uint64_t index_loads = 0;
  std::uint64_t scrubbed_bytes = 0;
  std::uint64_t scrub_passes = 0;

  // What operations waited for, of those that ask for single documents: visits, merges and the scrub read everything,
  // and would miss whatever is kept. Times need a clock.
  std::uint64_t index_lookups = 0;
  std::uint64_t index_misses = 0;  ///< Of these, with the index not in memory.
  std::uint64_t index_wait_us = 0;
  std::uint64_t document_reads = 0;   ///< From slotfiles that are mapped.
  std::uint64_t document_misses = 0;  ///< Of these, from the medium; estimated from samples.
  std::uint64_t document_wait_us = 0;
  std::array<SampledPuts, kEntryClasses> sampled_puts;
};

/// The default engine: each bucket is some slotfiles behind a journal. Files, and what a crash leaves behind:
/// storage/FORMAT.md; how it works: storage/slotfile/README.md.
///
/// Threading: like every provider. Lifetime: `env` outlives it.
class SlotfileProvider : public spi::PersistenceProvider {
 public:
  /// Reads the catalog and replays the journal; slotfiles are read when they are needed. Damage does not fail it: what
  /// is damaged is left out, counted in stats() and logged. Errors: InvalidArgument (options), Corruption (no copy of
  /// the catalog can be read), NotImplemented (a newer format), IoError, NoSpace.
  static Result<std::unique_ptr<SlotfileProvider>> open(Env& env, const SlotfileOptions& options);
  /// With how many stripes the folder was made; nothing for a new one. Errors: as of open().
  static Result<std::optional<unsigned>> stripes_of(Env& env, const std::string& directory);

  virtual SlotfileStats stats() const = 0;
  /// Errors: InvalidArgument; the old limits stay then.
  virtual Status set_limits(const SlotfileLimits& limits) = 0;
  virtual SlotfileLimits limits() const = 0;
  /// Brings everything into slotfiles and empties the journal, as before a clean end; it takes as long as it takes.
  /// Errors: NoSpace, IoError.
  virtual Status checkpoint() = 0;
  /// Slotfiles that a bucket's documents are spread over. Each is split on its own, so that it is between the powers of
  /// two of the paper while they are. Errors: NotFound.
  virtual Result<unsigned> slots_of(BucketId bucket) const = 0;
};

/// SlotfileProvider::open for those who need no more than the contract.
Result<std::unique_ptr<spi::PersistenceProvider>> open_slotfile_provider(Env& env, const SlotfileOptions& options);

}  // namespace fjord
