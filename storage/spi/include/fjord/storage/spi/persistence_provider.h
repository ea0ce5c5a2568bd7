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

/// Maximum size of a header or body part. An engine refuses a larger part with TooLarge.
inline constexpr std::size_t kPartBytesMax = std::size_t{64} << 20;

/// The point at which a write counts as done.
enum class Durability {
  Process,  ///< In the operating system's cache: survives a crash of the process, not a loss of power.
  Sync,     ///< On the device: survives a loss of power.
};

using Compression = PartCompression::Codec;

/// A put or remove to be applied to a bucket. The views are read during the call only.
struct Write {
  BucketId bucket;
  GlobalId gid;
  Timestamp timestamp;
  bool remove = false;
  std::string_view id;
  std::string_view header;  ///< The header part of a put; empty for a remove.
  std::string_view body;
  /// The compression that the document's type asks for; an engine may store the part uncompressed nevertheless.
  PartCompression header_compression = {};
  PartCompression body_compression = {};
};

struct WriteResult {
  Status status;
  bool existed = false;  ///< True if a document (not a remove entry) of that id was stored before.
  /// True if an entry with an equal or newer timestamp was stored: the write changed nothing.
  bool superseded = false;
};

/// A document, and the bucket that it is in.
struct DocumentPlace {
  BucketId bucket;
  GlobalId gid;
};

/// The newest version of a document. Lifetime: the views are valid until the next call of the provider.
struct StoredDocument {
  Timestamp timestamp;
  bool removed = false;
  std::string_view header;
  std::string_view body;
};

/// The metadata of an entry. Merges compare replicas by it.
struct EntryMeta {
  GlobalId gid;
  Timestamp timestamp;
  bool removed = false;

  friend bool operator==(const EntryMeta&, const EntryMeta&) = default;
};

/// Returns true for the id of a remove entry that keeps an idempotency token (token_entry.h). No document has such an
/// id.
inline bool is_token_id(std::string_view id) { return id.starts_with("token:"); }

/// Says which remove entries a bucket has dropped: those older than these times. Dropped entries are no longer read,
/// listed or counted.
struct Forgotten {
  Timestamp removes{0};        ///< All remove entries older than this, except tokens, are dropped.
  Timestamp tokens{0};         ///< All tokens older than this are dropped.
  std::uint64_t checksum = 0;  ///< Sum of entry_hash() over the dropped entries; 0 (unknown) after a split.

  bool covers(Timestamp timestamp, bool is_token) const { return timestamp < (is_token ? tokens : removes); }
  friend bool operator==(const Forgotten&, const Forgotten&) = default;
};

/// The remove entries that a bucket still has: the answer to a RemovedQuestion.
struct RemovedEntries {
  std::uint64_t removes = 0;  ///< Number of remove entries, without tokens.
  std::uint64_t tokens = 0;
  Timestamp oldest_remove{std::numeric_limits<std::uint64_t>::max()};
  Timestamp oldest_token{std::numeric_limits<std::uint64_t>::max()};
  /// Number of remove entries older than RemovedQuestion::removes_before, without tokens.
  std::uint64_t removes_due = 0;
  /// Number of tokens older than RemovedQuestion::tokens_before.
  std::uint64_t tokens_due = 0;
  /// Tokens older than this exceed RemovedQuestion::tokens_max; 0 if the bucket does not have more tokens than that.
  Timestamp surplus_tokens{0};
};
/// The limits by which count_removed() decides which remove entries could be dropped.
struct RemovedQuestion {
  Timestamp removes_before{0};
  Timestamp tokens_before{0};
  std::uint64_t tokens_max = 0;  ///< Number of tokens that a bucket should keep at most; 0: no limit.
};

/// Counts remove entries, which are added one by one in any order.
class RemovedCounter {
 public:
  explicit RemovedCounter(const RemovedQuestion& question) : question_(question) {}
  void add(Timestamp timestamp, bool is_token);
  /// Returns the counts. Nothing is added afterwards.
  RemovedEntries finish();

 private:
  RemovedQuestion question_;
  RemovedEntries counted_;
  std::vector<Timestamp> tokens_;
};

/// The parts of documents that a reader wants. The other parts are not read unless something else needs them, such as
/// a selection.
enum class Parts {
  IdOnly,      ///< The beginning of the header (type and id), no body. A get treats it as HeaderOnly.
  HeaderOnly,  ///< The whole header, no body.
  All,
};

struct IterateOptions {
  std::shared_ptr<const DocumentTypeRepo> types;
  std::shared_ptr<const Selection> selection;  ///< Null: every document matches. Never applied to remove entries.
  /// The parts that returned entries have. A selection may depend on further parts, which are then read for it.
  Parts parts = Parts::All;
  bool include_removed = false;
  Timestamp from{0};                                        ///< Oldest timestamp to give, inclusive.
  Timestamp to{std::numeric_limits<std::uint64_t>::max()};  ///< Newest timestamp to give, inclusive.
  /// If true, the iteration gives the bucket's content at the time when the iterator was made, even if the bucket is
  /// changed, deleted, split or joined meanwhile. This takes memory for each entry until the iterator is destroyed, and
  /// time to make the iterator.
  bool snapshot = false;
};

/// Walks through the newest versions in one bucket. Every document that is present from the iterator's creation to
/// its end is given at least once, in its version at the time it is read; the same version of a document is never
/// given twice. With IterateOptions::snapshot each document is given exactly once, as it was when the iterator was
/// made.
/// Threading: like its provider. Lifetime: the provider outlives it. Errors: NotFound from `next` after the bucket
/// was deleted.
class DocumentIterator {
 public:
  virtual ~DocumentIterator() = default;
  /// Appends entries until the block holds `max_bytes`, but at least one entry if any is left. With a selection it may
  /// append less, or none, so that it does not hold up the stripe for longer than about a millisecond. Returns false if
  /// nothing is left.
  /// Errors: Corruption, IoError; those of Selection::try_evaluate().
  virtual Result<bool> next(DocBlockBuilder& into, std::size_t max_bytes) = 0;
  /// Like `next`, but gives each entry to `sink` instead of a block, until `sink` returns false or the turn is over.
  /// Returns false if nothing is left. The views are valid during the call of `sink`, which must not call the
  /// provider. This default goes through a block; an engine may override it to avoid the copying.
  virtual Result<bool> visit(const std::function<bool(const EntryView&)>& sink);
};

/// What background work is left.
struct Maintenance {
  bool more = false;    ///< True if a further step is due at once.
  Duration next_in{0};  ///< Time until the next step is due, if `more` is false.
};

/// The contract between a storage node and an engine: buckets of timestamped put and remove entries, of which the
/// newest of each document id counts. Every implementation runs the same test suite, test/conformance/provider.
///
/// Threading: one instance serves the buckets of one stripe and is confined to that stripe's executor.
/// Durability: once a call has returned OK, its effect survives a crash of the process. Writes are at least as durable
/// as their `Durability` says. A change of a bucket is at least as durable as the writes that follow it.
class PersistenceProvider {
 public:
  virtual ~PersistenceProvider() = default;

  /// Returns all buckets of this stripe, sorted by raw id.
  virtual std::vector<BucketId> list_buckets() const = 0;
  /// Creates an empty bucket with replica set epoch 0. Returns OK if the bucket exists already.
  virtual Status create_bucket(BucketId bucket) = 0;
  /// Removes the bucket with its content. Returns OK if the bucket does not exist.
  virtual Status delete_bucket(BucketId bucket) = 0;
  /// Errors: NotFound.
  virtual Result<BucketInfo> bucket_info(BucketId bucket) const = 0;
  virtual Result<ReplicaSet> replica_set(BucketId bucket) const = 0;
  virtual Status set_replica_set(BucketId bucket, const ReplicaSet& set) = 0;

  /// Applies writes to any buckets, in order; `results` has the size of `writes`. An entry is stored only if its
  /// timestamp is newer than the one stored for its gid. All successful writes become durable together: after a crash
  /// either all of them are there or none.
  /// Errors of single writes: NotFound (no such bucket), InvalidArgument (the document does not belong to the
  /// bucket), TooLarge.
  /// Errors of the whole batch: NoSpace, IoError (nothing was applied), Timeout (a sync failed: the writes may be
  /// there after a restart).
  virtual void apply(std::span<const Write> writes, std::span<WriteResult> results, Durability durability) = 0;
  /// Returns the newest version of a document, with an empty body if `parts` leaves it out.
  /// Errors: NotFound (no such bucket, or no entry of that id), Corruption.
  virtual Result<StoredDocument> get(BucketId bucket, const GlobalId& gid, Parts parts = Parts::All) = 0;
  /// Hints that get() of these documents follows at once, so that an engine can wait for the memory of several of them
  /// at the same time. Does nothing by default.
  virtual void prefetch(std::span<const DocumentPlace> /*documents*/) {}

  /// Errors: NotFound.
  virtual Result<std::unique_ptr<DocumentIterator>> iterate(BucketId bucket, const IterateOptions& options) = 0;

  /// Returns all entries by rising gid, including remove entries.
  virtual Result<std::vector<EntryMeta>> list_entries(BucketId bucket) = 0;
  /// Passes all entries to `sink`, in any order. `sink` must not call the provider. This default builds a list first;
  /// an engine can avoid the list.
  virtual Status for_each_entry(BucketId bucket, const std::function<void(const EntryMeta&)>& sink);
  /// Like for_each_entry(), but passes only the entries newer than `after`. This default looks at all entries; an
  /// engine may skip older ones.
  virtual Status for_each_newer(BucketId bucket, Timestamp after, const std::function<void(const EntryMeta&)>& sink);
  /// Appends the newest versions of `gids`, in their order, to a docblock until it has `max_bytes`. Ids that are not
  /// stored are skipped. Returns how many of `gids` were appended or skipped, at least one.
  virtual Result<std::size_t> read_entries(BucketId bucket, std::span<const GlobalId> gids, DocBlockBuilder& into,
                                           std::size_t max_bytes) = 0;

  /// Replaces a bucket by its two halves, which use one bit more. Each half takes the entries that belong to it and
  /// the bucket's replica set. A half that existed before keeps its own replica set, and the entries are added to it.
  /// The split is atomic, also in a crash. Errors: NotFound; InvalidArgument (the bucket cannot use more bits).
  virtual Status split_bucket(BucketId bucket) = 0;
  /// Reverses a split: replaces the two halves of `parent`, of which one may be missing, by `parent`. If `parent`
  /// existed before, it keeps its own replica set, and the entries are added to it. Otherwise it gets the replica set
  /// of its halves, or epoch 0 if theirs differ. Errors: NotFound (neither half exists); InvalidArgument (`parent`
  /// cannot use more bits).
  virtual Status join_buckets(BucketId parent) = 0;
  /// Drops remove entries older than `removes_before` and tokens older than `tokens_before`; a time that is not later
  /// than in an earlier call changes nothing. Dropped entries disappear at once for all readers and from the bucket's
  /// information; their space is reclaimed later. The cluster calls this once every replica holds the entries. A remove
  /// entry that is written later with a timestamp before these times still hides an older document, but is dropped at
  /// once.
  /// Errors: NotFound; IoError (nothing was dropped).
  virtual Status forget(BucketId bucket, Timestamp removes_before, Timestamp tokens_before) = 0;
  /// Replaces the times up to which the bucket has dropped entries by those of another replica. These may be earlier
  /// than before: the bucket then accepts remove entries again that it had dropped. Errors: like forget().
  virtual Status set_forgotten(BucketId bucket, const Forgotten& forgotten) = 0;
  /// Returns what the bucket has dropped. After a split or join this is everything that any of the original buckets had
  /// dropped. Errors: NotFound.
  virtual Result<Forgotten> forgotten(BucketId bucket) const = 0;
  /// Counts the remove entries, and those that could be dropped. Looks at all entries; an engine may do so without
  /// reading their documents. Errors: those of iterate().
  virtual Result<RemovedEntries> count_removed(BucketId bucket, const RemovedQuestion& question);

  /// Drops remove entries older than `before`, but no tokens. Errors: like forget().
  Status forget_removes(BucketId bucket, Timestamp before) { return forget(bucket, before, Timestamp{0}); }
  /// Returns Forgotten::removes of the bucket. Errors: NotFound.
  Result<Timestamp> removes_forgotten_before(BucketId bucket) const;

  /// Does a bounded step of background work, which takes some milliseconds at most. The stripe's executor calls it
  /// repeatedly, between other calls.
  virtual Maintenance maintain(MonotonicTime now) = 0;
  /// Tells the engine whether the disk is so full that writes are slowed down or refused. While it is, the engine
  /// reclaims space at once, not only in times without reads and writes. An engine that never waits for such times may
  /// ignore the call.
  virtual void set_short_of_space(bool /*is_short*/) {}
  /// Returns the buckets in which damage was found since the last call, each once. Such a bucket may lack
  /// acknowledged writes; its BucketInfo describes what is left.
  virtual std::vector<BucketId> take_damaged() = 0;
  /// Rewrites the files of a damaged bucket, so that nothing that cannot be read is left in them, and a later start
  /// does not find the damage again. What fails verification meanwhile leaves the bucket's content; the bucket stays
  /// damaged. Each call does a bounded step; maintain() does others. Returns true when all files are rewritten and
  /// durable. This default is for engines that leave no unreadable entries behind.
  /// Errors: NotFound; NoSpace, IoError (a later call begins again).
  virtual Result<bool> renew(BucketId /*bucket*/) { return true; }
  /// Makes the engine accept older versions in the place of those that it has lost. The bucket stays damaged. By
  /// default the damaged state ends. Errors: NotFound.
  virtual Status forget_lost(BucketId bucket) { return mark_repaired(bucket); }
  /// Ends the bucket's damaged state, after other replicas have brought back what was lost. Until then reading an
  /// absent document gives Corruption, because the document may be among those that were lost. On OK the repair
  /// survives a loss of power. Errors: NotFound; NotReady (renew() has not ended; it goes on); those of renew().
  virtual Status mark_repaired(BucketId bucket) = 0;
  /// Returns true if the bucket has lost data and was not marked as repaired since. Errors: NotFound.
  virtual Result<bool> is_damaged(BucketId bucket) const = 0;
  /// Returns OK unless a sync failed. After a failed sync the engine writes nothing until it is opened again.
  virtual Status health() const = 0;
  /// Returns the error with which background work has failed in the last seconds; OK: none has. Lack of space does not
  /// count: the node watches it.
  virtual Status background() const { return Status::ok(); }
};

/// Sets the compression of a put's parts as its document type says. Leaves it unset if the type is unknown.
void set_compression(Write& write, const DocumentTypeRepo& types);
/// Returns the error for a write whose document does not belong to its bucket; the same for all engines.
Status not_of_bucket(const Write& write);
/// Returns the hash of one entry, a term of BucketInfo::checksum.
std::uint64_t entry_hash(const GlobalId& gid, Timestamp timestamp, bool removed);

}  // namespace fjord::spi
