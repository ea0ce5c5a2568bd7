#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/cluster/replica_set.h"
#include "fjord/common/result.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/docblock.h"
#include "fjord/document/document_type.h"
#include "fjord/document/selection.h"

namespace fjord::spi {

/// The largest header or body part that an engine takes; a larger one is TooLarge.
inline constexpr std::size_t kPartBytesMax = std::size_t{64} << 20;

/// A put or a remove on its way into a bucket. The views are read during the call only.
struct Write {
  GlobalId gid;
  Timestamp timestamp;
  bool remove = false;
  std::string_view id;
  std::string_view header;  ///< Empty for a remove.
  std::string_view body;
};

struct WriteResult {
  Status status;
  bool existed = false;     ///< A document (not a remove) of that id was there before.
  bool superseded = false;  ///< An entry with an equal or newer timestamp was there: nothing was changed.
};

/// The newest version of a document. Owned bytes.
struct StoredDocument {
  Timestamp timestamp;
  bool removed = false;
  std::string header;
  std::string body;
};

/// What merges compare.
struct EntryMeta {
  GlobalId gid;
  Timestamp timestamp;
  bool removed = false;

  friend bool operator==(const EntryMeta&, const EntryMeta&) = default;
};

enum class FieldSet { All, IdOnly };

struct IterateOptions {
  std::shared_ptr<const DocumentTypeRepo> types;
  std::shared_ptr<const Selection> selection;  ///< Null: everything matches. Never applied to removed entries.
  FieldSet fields = FieldSet::All;             ///< IdOnly: header reduced to its prefix (type and id), no body.
  bool include_removed = false;
  Timestamp from{0};                                        ///< Inclusive.
  Timestamp to{std::numeric_limits<std::uint64_t>::max()};  ///< Inclusive.
};

/// Walks the newest versions in one bucket. Every document that is present from creation to end is given at least once
/// (in its version at the time it is read); a document is never given twice in the same version.
/// Threading: like its provider. Lifetime: the provider outlives it; after the bucket was deleted `next` says NotFound.
class DocumentIterator {
 public:
  virtual ~DocumentIterator() = default;
  /// Appends entries until the block holds `max_bytes` (always at least one entry if there is any). Returns false when
  /// nothing is left. Errors: Corruption, IoError.
  virtual Result<bool> next(DocBlockBuilder& into, std::size_t max_bytes) = 0;
};

/// The contract between a storage node and an engine: buckets of timestamped put and remove entries, of which the
/// newest of each document id counts. One suite (test/conformance/provider) is run by every implementation.
///
/// Threading: one instance serves the buckets of one stripe and is confined to that stripe's executor.
/// Durability: when a call returns OK, its effect survives the end of the process.
class PersistenceProvider {
 public:
  virtual ~PersistenceProvider() = default;

  /// All buckets of this stripe, by rising raw id.
  virtual std::vector<BucketId> list_buckets() const = 0;
  /// Makes an empty bucket with replica set epoch 0; fine if it is there.
  virtual Status create_bucket(BucketId bucket) = 0;
  /// Removes the bucket with all it holds; fine if it is not there.
  virtual Status delete_bucket(BucketId bucket) = 0;
  /// Errors: NotFound.
  virtual Result<BucketInfo> bucket_info(BucketId bucket) const = 0;
  virtual Result<ReplicaSet> replica_set(BucketId bucket) const = 0;
  virtual Status set_replica_set(BucketId bucket, const ReplicaSet& set) = 0;

  /// Applies writes in order; `results` has the size of `writes`. An entry is kept only if its timestamp is newer than
  /// the one stored for its gid. Errors, each for its write alone: NotFound (no such bucket), TooLarge, NoSpace,
  /// IoError.
  virtual void apply(BucketId bucket, std::span<const Write> writes, std::span<WriteResult> results) = 0;
  /// Errors: NotFound (no bucket, or no entry of that id), Corruption.
  virtual Result<StoredDocument> get(BucketId bucket, const GlobalId& gid) = 0;

  /// Errors: NotFound.
  virtual Result<std::unique_ptr<DocumentIterator>> iterate(BucketId bucket, const IterateOptions& options) = 0;

  /// All entries by rising gid, removed ones included.
  virtual Result<std::vector<EntryMeta>> list_entries(BucketId bucket) const = 0;
  /// Appends the newest versions of `gids` to a docblock until `max_bytes`; returns how many of `gids` were dealt with
  /// (at least one; ids that are not there are passed over).
  virtual Result<std::size_t> read_entries(BucketId bucket, std::span<const GlobalId> gids, DocBlockBuilder& into,
                                           std::size_t max_bytes) = 0;
};

/// Hash of one entry for BucketInfo::checksum.
std::uint64_t entry_hash(const GlobalId& gid, Timestamp timestamp, bool removed);

}  // namespace fjord::spi
