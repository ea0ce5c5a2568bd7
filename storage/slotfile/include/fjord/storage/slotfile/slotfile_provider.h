#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "fjord/common/clock.h"
#include "fjord/common/env.h"
#include "fjord/common/executor.h"
#include "fjord/common/metrics.h"
#include "fjord/common/setting.h"
#include "fjord/common/tunable.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord {

using spi::Durability;

/// Limits that may be changed while the engine runs. A changed limit applies to a slotfile when it is next written to.
struct SlotfileLimits {
  /// A slotfile is split in two when its newest versions have more bytes than this.
  std::uint64_t file_bytes_max = setting_default("storage.file_bytes_max");
  /// Number of entries in a slotfile above which it is split in two. Lookups do not get slower with more entries,
  /// because they use an index in memory; but the index takes more memory and time to load.
  std::uint32_t entries_max = setting_default("storage.entries_max");
  /// Maximum number of slotfiles of a bucket; a power of two, at most 64. When a bucket has this many, its files grow
  /// over their limits instead of being split; the cluster should split such a bucket.
  std::uint32_t slotfiles_max = setting_default("storage.slotfiles_max");
  /// Memory for writes that are in the journal and not yet in slotfiles. With more memory, the runs in the files are
  /// longer.
  std::uint64_t held_bytes_max = setting_default("storage.held_bytes_max");
  /// Memory for indexes. Above this limit, the least recently used indexes are dropped, and loaded again when they are
  /// needed. 10 million documents take about 600 MB.
  std::uint64_t index_bytes_max = setting_default("storage.index_bytes_max");
  /// Approximate maximum size of the journal that is replayed after a crash. A checkpoint begins at half of it.
  std::uint64_t journal_bytes_max = setting_default("storage.journal_bytes_max");
  /// Percentage of a slotfile that replaced and removed documents may take before the file is rewritten.
  std::uint32_t dead_percent_max = setting_default("storage.dead_percent_max");
  /// Rate at which the scrub reads; 0 turns it off. The scrub continuously verifies everything that is stored.
  std::uint64_t scrub_bytes_per_second = setting_default("storage.scrub_bytes_per_second");

  friend bool operator==(const SlotfileLimits&, const SlotfileLimits&) = default;
};

/// The limits as tunables of a storage node. The limits of memory and journal apply to all stripes together.
/// Threading: from any thread.
class SlotfileTunables {
 public:
  /// Declares the tunables with `defaults` as their default values. Lifetime: `registry` outlives it.
  SlotfileTunables(TunableRegistry& registry, const SlotfileLimits& defaults);
  /// Returns the current limits of one engine, if there are `stripes` engines.
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
  /// Folder of the engine's files, shared by several stripes; created if it is missing. Its parent folder must exist.
  std::string directory;
  /// This engine serves only the buckets with (raw() & (stripes - 1)) == stripe. The number of stripes of a folder
  /// never changes.
  unsigned stripe = 0;
  unsigned stripes = 1;  ///< Number of stripes of the folder: a power of two, at most 256.
  SlotfileLimits limits;
  /// Size of a journal file; the space is reserved when the file is made.
  std::uint64_t journal_segment_bytes = 8ULL << 20;
  /// Maximum number of files that this engine keeps open. The least recently used one is closed first.
  unsigned open_files_max = setting_default("storage_options.open_files_max");
  /// Reads documents from mapped files. This is faster, but a medium error during a read ends the process instead of
  /// failing the read. The scrub reads without mapping, so it usually finds such places first.
  bool map_files = true;
  /// Time from the end of a pass of the scrub to the next one.
  Duration scrub_interval = std::chrono::minutes(10);
  /// Minimum durability of writes, whatever they ask for.
  Durability durability = Durability::Process;
  /// Minimum durability of changes of buckets (replica sets, splits, deletions). Never less than `durability`.
  Durability change_durability = Durability::Process;

  bool syncs_changes() const { return durability == Durability::Sync || change_durability == Durability::Sync; }
  /// Source of the limits while the engine runs, instead of `limits`; null: `limits` stay in force. Outlives the
  /// engine.
  const SlotfileTunables* tunables = nullptr;
  /// Registry for the statistics; null: they are not reported. Outlives the engine.
  MetricRegistry* metrics = nullptr;
  /// Clock for measuring waits and puts; null: they are not measured. Outlives the engine.
  const Clock* clock = nullptr;
  /// Executor for syncs in the background; null: maintain() itself syncs. Outlives the engine.
  Executor* background = nullptr;
};

/// Times of a sample of puts, removes and updates, and the part of these times that was the search for their entries in
/// the slotfile: loading the index, if it is not in memory, and looking up the id in it.
struct SampledPuts {
  std::uint64_t puts = 0;
  std::uint64_t entries = 0;  ///< Sum of the numbers of entries of the slotfiles that the puts went to.
  std::uint64_t us = 0;       ///< Microseconds, including the puts' share of the batch's journal write.
  std::uint64_t search_us = 0;
};

/// Slotfiles are classed by their number of entries: below 256, 1024, ..., 1 Mi, and the rest.
inline constexpr std::size_t kEntryClasses = 8;
/// Returns the upper bound (exclusive) of the entries in a class; 0 for the last class, which has none.
constexpr std::uint64_t entry_class_bound(std::size_t index) {
  return index + 1 == kEntryClasses ? 0 : std::uint64_t{256} << (2 * index);
}

/// Statistics since the engine was opened. The first block describes the current state.
struct SlotfileStats {
  std::uint64_t slotfiles = 0;
  std::uint64_t slots = 0;
  std::uint64_t entries = 0;
  std::uint64_t index_bytes = 0;  ///< Memory used by indexes.
  std::uint64_t held_bytes = 0;   ///< Bytes of writes that are in the journal and not yet in slotfiles.
  std::uint64_t live_bytes = 0;   ///< Bytes of the newest versions in slotfiles.
  std::uint64_t file_bytes = 0;   ///< Total size of the slotfiles on disk.
  std::uint64_t journal_bytes = 0;
  std::uint64_t open_files = 0;
  std::uint64_t damaged_buckets = 0;

  std::uint64_t bad_entries = 0;        ///< Metadata entries with a wrong checksum, which are left out.
  std::uint64_t repaired_entries = 0;   ///< Metadata entries in which one flipped bit was found and corrected.
  std::uint64_t bad_runs = 0;           ///< Number of runs of which nothing can be read.
  std::uint64_t bad_headers = 0;        ///< Slotfile headers and doubled frames that do not verify; nothing is lost.
  std::uint64_t bad_slotfiles = 0;      ///< Number of slotfiles that the catalog names and that are missing.
  std::uint64_t corrupt_reads = 0;      ///< Document parts that failed verification when read, and are in quarantine.
  std::uint64_t lost_records = 0;       ///< Missing or broken journal records that are followed by intact ones.
  std::uint64_t damaged_catalogs = 0;   ///< Catalog copies that could not be read.
  std::uint64_t leftovers_removed = 0;  ///< Number of files that interrupted changes left behind and that were removed.
  std::uint64_t failed_writes = 0;      ///< Number of writes that the file system refused.

  std::uint64_t replayed_bytes = 0;  ///< Bytes of the journal replayed when the engine was opened.
  std::uint64_t replayed_records = 0;

  std::uint64_t flushes = 0;  ///< Number of runs written to slotfiles.
  std::uint64_t flushed_bytes = 0;
  std::uint64_t checkpoints = 0;
  std::uint64_t rewrites = 0;  ///< Number of slotfiles rewritten: to compact them, or after a split or join.
  std::uint64_t rewritten_bytes = 0;
  std::uint64_t splits = 0;  ///< Number of slots that were split.
  std::uint64_t joins = 0;
  std::uint64_t index_loads = 0;
  std::uint64_t scrubbed_bytes = 0;
  std::uint64_t scrub_passes = 0;

  // How operations on single documents wait. Visits, merges and the scrub are left out, because they read everything
  // and no cache would help them. Times need a clock.
  std::uint64_t index_lookups = 0;
  std::uint64_t index_misses = 0;  ///< Number of lookups for which the index was not in memory.
  std::uint64_t index_wait_us = 0;
  std::uint64_t document_reads = 0;   ///< Number of document reads from mapped slotfiles.
  std::uint64_t document_misses = 0;  ///< Number of reads that went to the medium, estimated from samples.
  std::uint64_t document_wait_us = 0;
  std::array<SampledPuts, kEntryClasses> sampled_puts;
};

/// The default engine: each bucket consists of slotfiles behind a journal. storage/FORMAT.md describes the files and
/// what a crash leaves behind; storage/slotfile/README.md describes how the engine works.
///
/// Threading: like every provider. Lifetime: `env` outlives it.
class SlotfileProvider : public spi::PersistenceProvider {
 public:
  /// Opens the engine: reads the catalog and replays the journal; slotfiles are read when they are needed. Damage is
  /// not an error: damaged data is left out, counted in stats() and logged.
  /// Errors: InvalidArgument (options), Corruption (no copy of the catalog can be read), NotImplemented (a newer
  /// format), IoError, NoSpace.
  static Result<std::unique_ptr<SlotfileProvider>> open(Env& env, const SlotfileOptions& options);
  /// Returns the number of stripes with which the folder was made; nothing for a new folder. Errors: those of open().
  static Result<std::optional<unsigned>> stripes_of(Env& env, const std::string& directory);

  virtual SlotfileStats stats() const = 0;
  /// Sets the limits. Errors: InvalidArgument; the old limits then stay in force.
  virtual Status set_limits(const SlotfileLimits& limits) = 0;
  virtual SlotfileLimits limits() const = 0;
  /// Writes everything to slotfiles and empties the journal, as before a clean shutdown. Blocks until this is done.
  /// Errors: NoSpace, IoError.
  virtual Status checkpoint() = 0;
  /// Returns the number of slotfiles over which a bucket's documents are spread. Each slotfile is split separately, so
  /// during splits the number need not be a power of two, as in [VDS 2007]. Errors: NotFound.
  virtual Result<unsigned> slots_of(BucketId bucket) const = 0;
};

/// Like SlotfileProvider::open(), for callers that need only the contract of all engines.
Result<std::unique_ptr<spi::PersistenceProvider>> open_slotfile_provider(Env& env, const SlotfileOptions& options);

}  // namespace fjord
