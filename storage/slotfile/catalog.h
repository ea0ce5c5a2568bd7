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

/// A feature of a catalog: tokens are marked in metadata entries, and buckets say up to when they have dropped tokens,
/// too.
inline constexpr std::uint16_t kFeatureForgotten = 1;

/// Which entries of a file count: a file may have had other users, whose documents were deleted since.
struct FileShare {
  std::uint32_t number = 0;
  BucketId bucket;
  std::uint8_t first_cell = 0;
  std::uint8_t end_cell = 0;
};

/// A slot as it is written down.
struct SlotRecord {
  std::uint8_t first_cell = 0;
  std::uint8_t depth = 0;        ///< It has the 64 >> depth cells from the first on.
  BucketInfo info;               ///< Right unless the journal has writes for the slot.
  std::uint64_t live_bytes = 0;  ///< What its newest versions take in files; the same.
  std::vector<FileShare> files;
};

struct BucketRecord {
  std::uint64_t uid = 0;  ///< Never given twice, so that a bucket made anew is not taken for the one that was deleted.
  BucketId id;
  ReplicaSet replicas;
  spi::Forgotten forgotten;
  bool damaged = false;
  std::vector<SlotRecord> slots;
};

/// After a split or join the journal still has writes for the bucket that was.
struct Heirs {
  std::uint64_t uid = 0;
  std::uint64_t lsn = 0;  ///< Of the edit.
  /// Each got the documents that belong to it; it may be gone by now itself.
  std::vector<std::pair<std::uint64_t, BucketId>> buckets;
};

/// A change of the engine's structure: everything that a record of the journal needs to be atomic.
struct Edit {
  std::vector<std::uint64_t> removed;
  std::vector<BucketRecord> buckets;  ///< New, or replacing the one of the same uid.
  std::vector<Heirs> heirs;
  std::map<std::uint32_t, std::uint64_t> file_sizes;  ///< By number: how much of each file is on the device.
  std::uint64_t next_uid = 1;
  std::uint32_t next_file = 1;
};
std::string encode_edit(const Edit& edit);
/// Errors: Corruption.
Result<Edit> decode_edit(std::string_view bytes);

/// The structure as a whole, as of record `lsn` of the journal. Written anew at each checkpoint, in two copies.
struct Catalog {
  std::uint64_t lsn = 0;
  std::uint64_t first_segment = 0;                ///< Of the journal; what is older is in slotfiles.
  std::map<std::uint64_t, BucketRecord> buckets;  ///< By uid.
  std::map<std::uint64_t, Heirs> heirs;
  std::map<std::uint32_t, std::uint64_t> file_sizes;
  std::uint64_t next_uid = 1;
  std::uint32_t next_file = 1;

  void apply(Edit edit, std::uint64_t edit_lsn);
};
std::string encode_catalog(const Catalog& catalog, unsigned stripe, unsigned stripes);

struct LoadedCatalog {
  bool found = false;
  bool damaged_copy = false;  ///< One of the two could not be read.
  std::uint16_t features = 0;
  unsigned stripes = 1;
  Catalog catalog;
};
/// One copy. Errors: Corruption; NotImplemented (newer format).
Result<LoadedCatalog> decode_catalog(std::string_view bytes, unsigned stripe);
/// The newer of the two copies that can be read. Errors: Corruption (there is one and none can be read);
/// NotImplemented (newer format); IoError.
Result<LoadedCatalog> load_catalog(EngineContext& context);
/// Writes both copies durably, one after the other. Threading: from any thread.
Status save_catalog(Env& env, const std::string& directory, unsigned stripe, const std::string& encoded);

}  // namespace fjord::slotfile
