#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/cluster/replica_set.h"
#include "fjord/common/env.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/document_id.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord {

/// Reads an engine's files for people and tools, without changing or repairing anything. The report is exact only if no
/// engine runs on the files. Their format: storage/FORMAT.md.

/// A place in a file that deserves attention.
struct InspectFinding {
  enum class Severity {
    Note,     ///< Harmless: a crash or an interrupted change left it behind.
    Problem,  ///< Damage that may have lost data.
  };
  Severity severity = Severity::Problem;
  std::string path;
  std::uint64_t offset = 0;
  std::string what;
};
/// Returns for example "<path>: offset 64: the checksum is wrong".
std::string to_string(const InspectFinding& finding);

/// The state of a metadata entry in a slotfile, or of a write in the journal.
enum class EntryState {
  Newest,     ///< The entry is the newest version of its document.
  Replaced,   ///< There is a newer version of the same document.
  Forgotten,  ///< A remove entry that its bucket has dropped; it disappears when its slot is rewritten.
  Unused,     ///< The entry belongs to a bucket that was deleted or has other files now.
  Void,       ///< The document of the entry could not be read when the file was rewritten.
  Bad,        ///< The checksum is wrong; an acknowledged write may be lost.
};
/// Returns "newest", "replaced", "forgotten", "unused", "void" or "bad".
std::string_view to_string(EntryState state);

struct EntryReport {
  std::uint64_t offset = 0;  ///< Offset of the entry in a slotfile, or of the record in the journal.
  EntryState state = EntryState::Newest;
  BucketId bucket;  ///< Unknown (no bits) if the state is Unused, Void or Bad.
  GlobalId gid;
  std::uint64_t timestamp_us = 0;
  bool removed = false;
  std::string id;                     ///< Document id; empty if it could not be read.
  std::uint64_t header_position = 0;  ///< Position in the file; 0 for a write in the journal.
  std::uint32_t header_length = 0;    ///< Length of the header as stored: compressed, without the checksum.
  spi::Compression header_compression = spi::Compression::None;
  std::uint64_t body_position = 0;
  std::uint32_t body_length = 0;
  spi::Compression body_compression = spi::Compression::None;
};

struct RunReport {
  std::uint64_t offset = 0;
  std::uint64_t header_bytes = 0;
  std::uint64_t body_bytes = 0;
  std::uint64_t entry_count = 0;
  std::vector<EntryReport> entries;  ///< Empty if InspectOptions::entries is false.
};

struct SlotfileReport {
  std::string path;
  std::uint32_t number = 0;
  BucketId made_for;
  std::uint64_t bytes = 0;
  std::uint64_t counted_bytes = 0;  ///< File size in the catalog. Bytes beyond it are also in the journal, or unused.
  std::uint64_t live_bytes = 0;     ///< Bytes of the newest versions, including their metadata.
  std::vector<RunReport> runs;
};

/// The part of a slotfile that a slot uses: the entries of `bucket` in the cells from first_cell to end_cell - 1.
struct ShareReport {
  std::uint32_t number = 0;
  BucketId bucket;
  unsigned first_cell = 0;
  unsigned end_cell = 0;
};
struct SlotReport {
  unsigned first_cell = 0;
  unsigned end_cell = 0;
  BucketInfo info;  ///< As in the catalog; does not include writes in the journal.
  std::uint64_t live_bytes = 0;
  std::vector<ShareReport> files;
};
struct BucketReport {
  std::uint64_t uid = 0;
  BucketId bucket;
  ReplicaSet replicas;
  spi::Forgotten forgotten;
  bool damaged = false;
  std::vector<SlotReport> slots;
};
/// The buckets that took over the documents of the split or joined bucket `uid`.
struct SuccessorsReport {
  std::uint64_t uid = 0;
  std::uint64_t lsn = 0;
  std::vector<std::pair<std::uint64_t, BucketId>> buckets;
};
/// The content of a catalog, or of a journal record that changes it.
struct StructureReport {
  std::vector<BucketReport> buckets;
  std::vector<std::uint64_t> removed;  ///< Uids of buckets that the edit removes.
  std::vector<SuccessorsReport> successors;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> file_sizes;  ///< Size by file number.
  std::uint64_t next_uid = 0;
  std::uint32_t next_file = 0;
};

struct CatalogReport {
  std::string path;
  unsigned stripes = 0;
  std::uint64_t lsn = 0;
  std::uint64_t first_segment = 0;
  StructureReport structure;
};

struct RecordReport {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t lsn = 0;
  std::uint64_t write_count = 0;
  std::vector<EntryReport> writes;      ///< Empty if InspectOptions::entries is false.
  std::optional<StructureReport> edit;  ///< A change of the structure. Such a record has no writes.
};
struct SegmentReport {
  std::string path;
  std::uint64_t number = 0;
  bool needed = true;  ///< False if slotfiles have all its content, so that the engine can reuse the segment.
  std::uint64_t bytes = 0;
  std::uint64_t used_bytes = 0;  ///< Bytes up to the end of the last record.
  std::vector<RecordReport> records;
};

struct StripeReport {
  unsigned stripe = 0;
  std::vector<CatalogReport> catalogs;  ///< The catalog has two copies; these are the readable ones.
  std::vector<SegmentReport> segments;  ///< Oldest first.
  StructureReport structure;            ///< The newer catalog, with the changes in the journal applied to it.
  std::vector<SlotfileReport> slotfiles;
};

struct StoreReport {
  std::string path;
  std::vector<StripeReport> stripes;
  std::vector<InspectFinding> findings;

  std::uint64_t problem_count() const;
};

struct InspectOptions {
  /// If false, the report leaves out the entries of slotfiles and the writes of the journal to save memory. They are
  /// read and verified nevertheless. In either case about 100 bytes are needed for each document.
  bool entries = true;
};

/// Reads the folder of an engine with all its stripes, and verifies every checksum. Damage is reported in `findings`;
/// data after a damaged place is read as far as possible. Errors: NotFound, IoError.
Result<StoreReport> inspect_store(Env& env, const std::string& directory, const InspectOptions& options = {});
/// Reads a single file of any kind. Without the catalog, which says how much of a slotfile is valid, the whole file is
/// taken for valid. Errors: NotFound, IoError; InvalidArgument (not a file of an engine).
Result<StoreReport> inspect_store_file(Env& env, const std::string& path, const InspectOptions& options = {});

}  // namespace fjord
