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

/// Reading of an engine's files for people and tools: changes nothing, repairs nothing, tells everything. Not to be
/// used on the files of a running engine if the answer is to be exact. The files: storage/FORMAT.md.

/// Something worth knowing about a place in a file.
struct InspectFinding {
  enum class Severity {
    Note,     ///< No harm: what a crash or an interrupted change leaves behind.
    Problem,  ///< Damage.
  };
  Severity severity = Severity::Problem;
  std::string path;
  std::uint64_t offset = 0;
  std::string what;
};
/// "<path>: offset 64: the checksum is wrong".
std::string to_string(const InspectFinding& finding);

/// What became of a metadata entry in a slotfile, or of a write in the journal.
enum class EntryState {
  Newest,     ///< The version that counts.
  Replaced,   ///< There is a newer one of the same document.
  Forgotten,  ///< A removed entry that its bucket has dropped; it goes when its slot is written anew.
  Unused,     ///< Of a bucket that was deleted, or that is in other files now.
  Void,       ///< Its document could not be read when the file was written anew.
  Bad,        ///< The checksum is wrong; an acknowledged write may be lost.
};
/// "newest", "replaced", "forgotten", "unused", "void", "bad".
std::string_view to_string(EntryState state);

struct EntryReport {
  std::uint64_t offset = 0;  ///< In a slotfile: of the entry. In the journal: of the record.
  EntryState state = EntryState::Newest;
  BucketId bucket;  ///< Unknown (no bits) if the state is Unused, Void or Bad.
  GlobalId gid;
  std::uint64_t timestamp_us = 0;
  bool removed = false;
  std::string id;                     ///< Document id, where it could be read.
  std::uint64_t header_position = 0;  ///< In the file; nothing for writes in the journal.
  std::uint32_t header_length = 0;    ///< As stored, hence compressed, without the checksum.
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
  std::vector<EntryReport> entries;  ///< Empty if InspectOptions says so.
};

struct SlotfileReport {
  std::string path;
  std::uint32_t number = 0;
  BucketId made_for;
  std::uint64_t bytes = 0;
  std::uint64_t counted_bytes = 0;  ///< What the catalog knows of; the rest is in the journal too, or means nothing.
  std::uint64_t live_bytes = 0;     ///< Of the newest versions, with their metadata.
  std::vector<RunReport> runs;
};

/// Which entries of a slotfile a slot uses: those of the bucket, in cells [first_cell, end_cell).
struct ShareReport {
  std::uint32_t number = 0;
  BucketId bucket;
  unsigned first_cell = 0;
  unsigned end_cell = 0;
};
struct SlotReport {
  unsigned first_cell = 0;
  unsigned end_cell = 0;
  BucketInfo info;  ///< Without what the journal adds.
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
/// Which buckets have the documents of one that was split or joined.
struct HeirsReport {
  std::uint64_t uid = 0;
  std::uint64_t lsn = 0;
  std::vector<std::pair<std::uint64_t, BucketId>> buckets;
};
/// What a catalog, or a record of the journal that changes it, says.
struct StructureReport {
  std::vector<BucketReport> buckets;
  std::vector<std::uint64_t> removed;  ///< uids
  std::vector<HeirsReport> heirs;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> file_sizes;  ///< By number.
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
  std::vector<EntryReport> writes;      ///< Empty if InspectOptions says so.
  std::optional<StructureReport> edit;  ///< Then there are no writes.
};
struct SegmentReport {
  std::string path;
  std::uint64_t number = 0;
  bool needed = true;  ///< False: what is in it is in slotfiles, and it waits to be written to again.
  std::uint64_t bytes = 0;
  std::uint64_t used_bytes = 0;  ///< Up to the end of the last record.
  std::vector<RecordReport> records;
};

struct StripeReport {
  unsigned stripe = 0;
  std::vector<CatalogReport> catalogs;  ///< Those of the two copies that can be read.
  std::vector<SegmentReport> segments;  ///< Oldest first.
  StructureReport structure;            ///< The newer catalog with what the journal changed in it.
  std::vector<SlotfileReport> slotfiles;
};

struct StoreReport {
  std::string path;
  std::vector<StripeReport> stripes;
  std::vector<InspectFinding> findings;

  std::uint64_t problem_count() const;
};

struct InspectOptions {
  /// False leaves out the entries of slotfiles and the writes of the journal, to save memory; all of them are read and
  /// verified all the same. About 100 bytes are needed for each document in either case.
  bool entries = true;
};

/// Reads the folder of an engine, all its stripes, and verifies every checksum in it. Damage is in `findings`; what
/// lies behind it is read as far as possible. Errors: NotFound, IoError.
Result<StoreReport> inspect_store(Env& env, const std::string& directory, const InspectOptions& options = {});
/// The same for a single file of whatever kind, without its catalog: then all of a slotfile counts. Errors: NotFound,
/// IoError; InvalidArgument (no file of an engine).
Result<StoreReport> inspect_store_file(Env& env, const std::string& path, const InspectOptions& options = {});

}  // namespace fjord
