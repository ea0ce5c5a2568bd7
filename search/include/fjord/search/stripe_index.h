#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/search/auction.h"
#include "fjord/search/index_store.h"
#include "fjord/search/search_costs.h"
#include "fjord/search/slice_set.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::search {

/// What a stripe's index needs to know of its node. The node is opened after its stripes.
struct NodeFacts {
  std::uint16_t node = 0;
  /// Null until the node is open.
  std::atomic<const rpc::SnapshotHolder*> snapshots = nullptr;
};

struct IndexOptions {
  /// A search sees all writes that were acknowledged at least this long before it.
  Duration delta_age_max = milliseconds(50);
  std::size_t delta_bytes_max = std::size_t{1} << 20;
  /// Bytes of documents read in one step while a bucket is indexed.
  std::size_t step_bytes = std::size_t{256} << 10;
};

/// The keyword index of one stripe, kept in step with its engine, and the searches in it. The engine is the source of
/// truth: after a restart the buckets whose content the index does not have are indexed again.
///
/// Threading: confined to the stripe's executor. Lifetime: the engine outlives it.
class StripeIndex {
 public:
  StripeIndex(spi::PersistenceProvider& engine, std::unique_ptr<IndexStore> index, const NodeFacts& facts, Clock& clock,
              const IndexOptions& options);

  struct Question {
    const SliceSet& slices;  ///< Slices of this stripe.
    std::span<const QueryVariant> variants;
    const SearchContext& context;
    std::size_t hits_max = 0;
    std::int64_t reserve_micros = 0;
    bool session = false;
    /// A search that is not done by then gives up.
    MonotonicTime deadline{INT64_MAX};
  };
  struct Answer {
    explicit Answer(unsigned bits) : searched(bits) {}
    SliceSet searched;
    Status refused;  ///< Why a slice was not searched; OK if all were.
    std::vector<Hit> hits;
    std::uint64_t candidates = 0;
    std::uint64_t scanned = 0;
    std::vector<spi::SearchLoad> loads;  ///< The cost of the search, divided among the slices.
    ListUse lists;                       ///< How this search used lists.
  };
  /// Searches the slices that this node holds as an in-sync member under `state`, in one version of the index. A search
  /// that gives up at its deadline has searched no slice; `refused` says Timeout, and its cost counts. Errors: those of
  /// the index.
  Result<Answer> search(const Question& question, const rpc::ClusterSnapshot& state);
  /// Returns IndexStore::cache_changes() of the index.
  const affinity::CacheChanges* cache_changes() const { return index_->cache_changes(); }
  std::uint64_t pages_of(std::string_view word) const { return index_->pages_of(word); }
  /// Number of buckets that are not indexed yet.
  std::size_t buckets_to_index() const { return to_index_.size(); }

  /// True if the index takes no more: its disk takes no file, and memory is bounded. Writes are refused meanwhile.
  bool is_full() const { return index_->backlog() == IndexStore::Backlog::Full; }

  // --- Called about what the engine has done, in the order in which it was done

  /// Called when the engine has stored the write.
  void on_write(const spi::Write& write);
  /// Called after on_write() of all writes of a batch.
  void on_batch();
  void on_deleted(BucketId bucket);
  /// Called when the node may become a member of a set. From now on searches show all that the bucket got by merges,
  /// however new it is here, because it was acknowledged elsewhere before.
  void on_new_set();
  /// Called when a bucket was split into its halves or joined from them. What is indexed stays indexed.
  void on_split(BucketId parent, bool half_existed);
  void on_joined(BucketId parent, bool parent_existed);
  /// The bucket's checksum has changed, but not its documents.
  void on_same_documents(BucketId bucket) { unsaved_.insert(bucket); }
  /// Does a step of background work. Returns when the next step is due; nothing: not before something happens.
  std::optional<Duration> maintain(MonotonicTime now);

 private:
  /// A bucket that is being indexed. Lifetime: the iterator ends before the engine.
  struct Building {
    BucketId bucket;
    std::unique_ptr<spi::DocumentIterator> documents;
  };

  /// Follows the schemas: when the types that take part in searches change, all buckets are indexed again.
  void follow_types();
  void index_all_again();
  void index_again(BucketId bucket);
  /// Reads a part of a bucket that is to be indexed.
  void index_some();
  void index_entry(BucketId bucket, const EntryView& entry);
  void note_change(BucketId bucket);
  void merge_delta();
  void save_checksums();
  /// Finds the slices whose replica here may be searched under `state`: it is whole, in sync, intact and indexed.
  void check_slices(const SliceSet& slices, const rpc::ClusterSnapshot& state, Answer& answer) const;
  Status check_replica(BucketId bucket, const rpc::ClusterSnapshot& state) const;

  spi::PersistenceProvider& engine_;
  std::unique_ptr<IndexStore> index_;
  const NodeFacts& facts_;
  Clock& clock_;
  IndexOptions options_;
  std::shared_ptr<const DocumentTypeRepo> types_;  // Null until schemas have arrived.
  std::uint64_t schema_version_ = 0;
  std::string roles_;  // The types that take part in searches, as text.
  std::set<BucketId> to_index_;
  std::set<BucketId> unknown_;  // Buckets with documents of types that the schemas lack so far.
  std::set<BucketId> unsaved_;  // Buckets whose checksum in the index is not the engine's.
  std::optional<Building> building_;
  std::optional<MonotonicTime> delta_since_;
  SearchCosts costs_;
};

}  // namespace fjord::search
