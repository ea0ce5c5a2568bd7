#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/cluster/replica_set.h"
#include "fjord/common/clock.h"
#include "fjord/common/result.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/docblock.h"
#include "fjord/document/document_type.h"
#include "fjord/document/selection.h"

namespace fjord::spi {

/// The largest header or body part that an engine takes; a larger one is TooLarge.
inline constexpr std::size_t kPartBytesMax = std::size_t{64} << 20;

/// When a write counts as done.
enum class Durability {
  Process,  ///< In the operating system's cache: survives the end of the process, not a loss of power.
  Sync,     ///< On the device: survives a loss of power.
};

using Compression = PartCompression::Codec;

/// A put or a remove on its way into a bucket. The views are read during the call only.
struct Write {
  BucketId bucket;
  GlobalId gid;
  Timestamp timestamp;
  bool remove = false;
  std::string_view id;
  std::string_view header;  ///< Empty for a remove.
  std::string_view body;
  /// What the type of the document asks for; an engine may store the part plainly all the same.
  PartCompression header_compression = {};
  PartCompression body_compression = {};
};

struct WriteResult {
  Status status;
  bool existed = false;     ///< A document (not a remove) of that id was there before.
  bool superseded = false;  ///< An entry with an equal or newer timestamp was there: nothing was changed.
};

/// The newest version of a document. Lifetime: the views are good until the next call of the provider.
struct StoredDocument {
  Timestamp timestamp;
  bool removed = false;
  std::string_view header;
  std::string_view body;
};

/// What merges compare.
struct EntryMeta {
  GlobalId gid;
  Timestamp timestamp;
  bool removed = false;

  friend bool operator==(const EntryMeta&, const EntryMeta&) = default;
};

/// True for the id of a removed entry that keeps an idempotency token (rpc/token_entry.h), and of no document.
inline bool is_token_id(std::string_view id) { return id.starts_with("token:"); }

/// The removed entries that a bucket has dropped. They are neither read, listed nor counted any more.
struct Forgotten {
  Timestamp removes{0};        ///< All removed entries that are older, but for tokens.
  Timestamp tokens{0};         ///< All tokens that are older.
  std::uint64_t checksum = 0;  ///< The sum of entry_hash() of what was dropped; unknown (0) after a split.

  bool covers(Timestamp timestamp, bool is_token) const { return timestamp < (is_token ? tokens : removes); }
  friend bool operator==(const Forgotten&, const Forgotten&) = default;
};

/// The removed entries that a bucket keeps.
struct RemovedEntries {
  std::uint64_t removes = 0;  ///< Without tokens.
  std::uint64_t tokens = 0;
  Timestamp oldest_remove{std::numeric_limits<std::uint64_t>::max()};
  Timestamp oldest_token{std::numeric_limits<std::uint64_t>::max()};
  std::uint64_t removes_due = 0;  ///< Older than the time that was asked about.
  std::uint64_t tokens_due = 0;
  /// All tokens that are older are beyond the number that was asked about; zero: there are not so many.
  Timestamp surplus_tokens{0};
};
struct RemovedQuestion {
  Timestamp removes_before{0};
  Timestamp tokens_before{0};
  std::uint64_t tokens_max = 0;  ///< 0: any number.
};

/// Counts removed entries that are shown to it one by one, in any order.
class RemovedCounter {
 public:
  explicit RemovedCounter(const RemovedQuestion& question) : question_(question) {}
  void add(Timestamp timestamp, bool is_token);
  /// The end: nothing is added afterwards.
  RemovedEntries finish();

 private:
  RemovedQuestion question_;
  RemovedEntries counted_;
  std::vector<Timestamp> tokens_;
};

/// Which parts of documents a reader is after; the others are not read, unless something else needs them.
enum class Parts {
  IdOnly,      ///< The header reduced to its prefix (type and id), no body. A get takes it for HeaderOnly.
  HeaderOnly,  ///< The header whole, no body.
  All,
};

struct IterateOptions {
  std::shared_ptr<const DocumentTypeRepo> types;
  std::shared_ptr<const Selection> selection;  ///< Null: everything matches. Never applied to removed entries.
  Parts parts = Parts::All;  ///< What entries have; a selection may look at more, and its parts are read for it.
  bool include_removed = false;
  Timestamp from{0};                                        ///< Inclusive.
  Timestamp to{std::numeric_limits<std::uint64_t>::max()};  ///< Inclusive.
  /// What was there when the iterator was made, as it was then, whatever becomes of the bucket meanwhile: also after it
  /// was deleted, split or joined. Takes memory for each entry until the iterator ends, and time when it is made.
  bool snapshot = false;
};

/// Walks the newest versions in one bucket. Every document that is present from creation to end is given at least once
/// (in its version at the time it is read); a document is never given twice in the same version. With
/// IterateOptions::snapshot each is given once, as it was when the iterator was made.
/// Threading: like its provider. Lifetime: the provider outlives it; after the bucket was deleted `next` says NotFound.
class DocumentIterator {
 public:
  virtual ~DocumentIterator() = default;
  /// Appends entries until the block holds `max_bytes` (always at least one entry if there is any). Returns false when
  /// nothing is left. Errors: Corruption, IoError.
  virtual Result<bool> next(DocBlockBuilder& into, std::size_t max_bytes) = 0;
  /// The same without a block: gives entries to `sink` until that returns false, or nothing is left (the answer is
  /// false then). Views are good during the call of the sink, which calls nothing of the provider. What this default
  /// does by way of a block, an engine may do without copying.
  virtual Result<bool> visit(const std::function<bool(const EntryView&)>& sink);
};

/// What is left to do in the background.
struct Maintenance {
  bool more = false;    ///< A further step is due at once.
  Duration next_in{0};  ///< Else: when to ask again.
};

/// The contract between a storage node and an engine: buckets of timestamped put and remove entries, of which the
/// newest of each document id counts. One suite (test/conformance/provider) is run by every implementation.
///
/// Threading: one instance serves the buckets of one stripe and is confined to that stripe's executor.
/// Durability: when a call returns OK, its effect survives the end of the process; writes at least as long as their
/// `Durability` says, and changes of buckets as long as the writes that follow them.
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

  /// Applies writes to any buckets in order; `results` has the size of `writes`. An entry is kept only if its timestamp
  /// is newer than the one stored for its gid. All writes that are OK become durable together: after a crash either all
  /// of them are there or none. Errors, each for its write alone: NotFound (no such bucket), InvalidArgument (the
  /// document does not belong to the bucket), TooLarge. Errors of all:
  /// NoSpace, IoError (nothing was applied), Timeout (a sync failed: they may be there after a restart).
  virtual void apply(std::span<const Write> writes, std::span<WriteResult> results, Durability durability) = 0;
  /// Without the body it is left empty. Errors: NotFound (no bucket, or no entry of that id), Corruption.
  virtual Result<StoredDocument> get(BucketId bucket, const GlobalId& gid, Parts parts = Parts::All) = 0;

  /// Errors: NotFound.
  virtual Result<std::unique_ptr<DocumentIterator>> iterate(BucketId bucket, const IterateOptions& options) = 0;

  /// All entries by rising gid, removed ones included.
  virtual Result<std::vector<EntryMeta>> list_entries(BucketId bucket) = 0;
  /// The same without a list, in any order; the sink calls nothing of the provider. What this default does by way of a
  /// list, an engine may do without one.
  virtual Status for_each_entry(BucketId bucket, const std::function<void(const EntryMeta&)>& sink);
  /// Those of them that are newer than `after`. An engine need not look at all for it, as this default does.
  virtual Status for_each_newer(BucketId bucket, Timestamp after, const std::function<void(const EntryMeta&)>& sink);
  /// Appends the newest versions of `gids` to a docblock until `max_bytes`; returns how many of `gids` were dealt with
  /// (at least one; ids that are not there are passed over).
  virtual Result<std::size_t> read_entries(BucketId bucket, std::span<const GlobalId> gids, DocBlockBuilder& into,
                                           std::size_t max_bytes) = 0;

  /// Replaces a bucket by the two that use one bit more. They take over its replica set and share its entries between
  /// them; where one of them was there before, it keeps its replica set and gets the entries added. Either all of it
  /// happened after a crash, or nothing. Errors: NotFound; InvalidArgument (no bit is left).
  virtual Status split_bucket(BucketId bucket) = 0;
  /// The reverse: replaces the two halves of `parent`, of which one may be missing, by `parent`. If it was there
  /// before, it keeps its replica set and gets the entries added; else it has the one of its halves, or epoch 0 if
  /// theirs differ. Errors: NotFound (neither half is here); InvalidArgument (no bit is left).
  virtual Status join_buckets(BucketId parent) = 0;
  /// Drops removed entries that are older than `removes_before`, and tokens that are older than `tokens_before`; times
  /// that are not later than those of before change nothing. From then on such entries are gone for every reader and
  /// from the bucket's information; their space comes back later. The cluster asks for it once every replica holds
  /// them. A removed entry that is written later and is as old hides an older document, and is gone itself.
  /// Errors: NotFound; IoError (nothing was dropped).
  virtual Status forget(BucketId bucket, Timestamp removes_before, Timestamp tokens_before) = 0;
  /// Makes the bucket count as having dropped what another replica has, which may be less than before: a removed entry
  /// that was dropped here is then taken again. Errors: like forget().
  virtual Status set_forgotten(BucketId bucket, const Forgotten& forgotten) = 0;
  /// A bucket that is made by a split or a join has dropped what any of those it was made of has. Errors: NotFound.
  virtual Result<Forgotten> forgotten(BucketId bucket) const = 0;
  /// What there is to drop. Looks at all entries, which an engine may do without reading them.
  /// Errors: those of iterate().
  virtual Result<RemovedEntries> count_removed(BucketId bucket, const RemovedQuestion& question);

  Status forget_removes(BucketId bucket, Timestamp before) { return forget(bucket, before, Timestamp{0}); }
  /// Errors: NotFound.
  Result<Timestamp> removes_forgotten_before(BucketId bucket) const;

  /// Does a bounded step of what is to be done in the background (at most some milliseconds). Called again and again
  /// from the stripe's executor, between other calls.
  virtual Maintenance maintain(MonotonicTime now) = 0;
  /// Whether the disk is so full that writes are slowed down or refused: from now on, what gives space back does not
  /// wait for a moment without reads and writes. An engine to which that is all the same need not listen.
  virtual void set_short_of_space(bool /*is_short*/) {}
  /// Buckets in which damage was met since the last call, each once: what they hold may be less than what was
  /// acknowledged, and their information says so.
  virtual std::vector<BucketId> take_damaged() = 0;
  /// What was lost in a bucket came back from other replicas: it is no longer damaged. Until then a read of what is not
  /// here answers Corruption, for nobody knows whether it should be. Errors: NotFound.
  virtual Status mark_repaired(BucketId bucket) = 0;
  /// It has lost something and was not repaired since. Errors: NotFound.
  virtual Result<bool> is_damaged(BucketId bucket) const = 0;
  /// OK unless a sync failed. Then nothing is written any more until the engine was opened again.
  virtual Status health() const = 0;
};

/// Sets how the parts of a put are to be compressed, as its type says; nothing for a type that is not known.
void set_compression(Write& write, const DocumentTypeRepo& types);
/// What every engine answers to a write whose document does not belong to its bucket.
Status not_of_bucket(const Write& write);
/// Hash of one entry for BucketInfo::checksum.
std::uint64_t entry_hash(const GlobalId& gid, Timestamp timestamp, bool removed);

}  // namespace fjord::spi
