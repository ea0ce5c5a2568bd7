#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine_context.h"
#include "fjord/cluster/replica_set.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/timestamp.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::slotfile {

/// Feature bit of a catalog: metadata entries say whether they are tokens, and buckets record the time up to which they
/// have dropped tokens.
inline constexpr std::uint16_t kFeatureForgotten = 1;

/// A stored reference to a file: only the entries of `bucket` in the given cells count. The file may also contain
/// documents of other, deleted buckets.
struct FileShare {
  std::uint32_t number = 0;
  BucketId bucket;
  std::uint8_t first_cell = 0;
  std::uint8_t end_cell = 0;
};

/// The stored form of a slot.
struct SlotRecord {
  std::uint8_t first_cell = 0;
  std::uint8_t depth = 0;  ///< The slot covers 64 >> depth cells, beginning with first_cell.
  BucketInfo info;         ///< Correct unless the journal contains writes to the slot.
  /// Bytes of the newest versions in files; correct unless the journal contains writes to the slot.
  std::uint64_t live_bytes = 0;
  std::vector<FileShare> files;
};

struct BucketRecord {
  /// Unique number of the bucket, so that a new bucket is never taken for a deleted one with the same id.
  std::uint64_t uid = 0;
  BucketId id;
  ReplicaSet replicas;
  spi::Forgotten forgotten;
  bool damaged = false;
  std::vector<SlotRecord> slots;
};

/// The successors of a split or joined bucket, for which the journal may still have writes.
struct Successors {
  std::uint64_t uid = 0;
  std::uint64_t lsn = 0;  ///< Number of the journal record of the split or join.
  /// Each successor got the documents that belong to it. Successors may have been deleted since.
  std::vector<std::pair<std::uint64_t, BucketId>> buckets;
};

/// A change of the engine's structure. Each edit is one journal record, so that it is atomic.
struct Edit {
  std::vector<std::uint64_t> removed;
  std::vector<BucketRecord> buckets;  ///< Buckets that are new, or replace the earlier record with the same uid.
  std::vector<Successors> successors;
  std::map<std::uint32_t, std::uint64_t> file_sizes;  ///< By file number: bytes of each file that are on the device.
  std::uint64_t next_uid = 1;
  std::uint32_t next_file = 1;
};
std::string encode_edit(const Edit& edit);
/// Errors: Corruption.
Result<Edit> decode_edit(std::string_view bytes);

/// The whole structure, as of record `lsn` of the journal. Each checkpoint writes it, in two copies.
struct Catalog {
  std::uint64_t lsn = 0;
  /// The oldest journal segment that is needed; slotfiles have the content of older ones.
  std::uint64_t first_segment = 0;
  std::map<std::uint64_t, BucketRecord> buckets;  ///< All buckets, by uid.
  std::map<std::uint64_t, Successors> successors;
  std::map<std::uint32_t, std::uint64_t> file_sizes;
  std::uint64_t next_uid = 1;
  std::uint32_t next_file = 1;

  void apply(Edit edit, std::uint64_t edit_lsn);
};
std::string encode_catalog(const Catalog& catalog, unsigned stripe, unsigned stripes);

struct LoadedCatalog {
  bool found = false;
  bool damaged_copy = false;  ///< True if one of the two copies could not be read.
  std::uint16_t features = 0;
  unsigned stripes = 1;
  Catalog catalog;
};
/// Decodes one copy. Errors: Corruption; NotImplemented (newer format).
Result<LoadedCatalog> decode_catalog(std::string_view bytes, unsigned stripe);
/// Loads the newer readable copy. Errors: Corruption (copies exist and none can be read); NotImplemented (newer
/// format); IoError.
Result<LoadedCatalog> load_catalog(EngineContext& context);
/// Writes both copies durably, one after the other. Threading: from any thread.
Status save_catalog(Env& env, const std::string& directory, unsigned stripe, const std::string& encoded);

}  // namespace fjord::slotfile
