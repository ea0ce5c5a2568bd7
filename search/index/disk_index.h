#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "fjord/common/env.h"
#include "fjord/common/metrics.h"
#include "fjord/search/index_store.h"
#include "list_cache.h"
#include "memory_index.h"
#include "segment.h"
#include "segment_merge.h"

namespace fjord::search {

struct DiskIndexOptions {
  std::string directory;
  /// New documents in memory of this size become a segment.
  std::size_t recent_bytes_max = std::size_t{1} << 20;
  /// Number of segments of about the same size that are merged into one.
  std::size_t segments_of_tier = 4;
  /// Bytes of documents in memory with which the index is full. They are more than `recent_bytes_max` only while the
  /// disk takes no file, or no step of background work could be made.
  std::size_t memory_bytes_max = std::size_t{16} << 20;
  /// Bytes of segments that are kept in memory: posting lists and runs of documents.
  std::size_t cache_bytes = std::size_t{32} << 20;
  /// Returns limits of the cache, which may change; called by each maintain(). Empty: `cache_bytes` is the limit.
  std::function<ListCache::Limits()> cache_limits = {};
  /// Bytes copied in one step of a merge of segments.
  std::size_t step_bytes = std::size_t{256} << 10;
};

struct IndexMetrics {
  explicit IndexMetrics(MetricRegistry& registry);
  Counter& list_hits;
  Counter& list_misses;
  Counter& pages_read;
  Counter& segments_written;
  Counter& segments_merged;
  Counter& lost;
};

/// An index in files: immutable segments, and the latest documents in memory until they become a segment. A document is
/// alive in one place at most: when it is written again, its number in the segment that has it is marked as dead.
///
/// After a crash the index is that of the last manifest, with the checksums of that moment; its owner indexes the
/// buckets again that have changed since. If a file is missing or damaged, the whole index is made empty.
///
/// Threading: confined to the stripe's executor. Lifetime: `env` outlives it.
class DiskIndex final : public IndexStore {
 public:
  /// A damaged index is opened empty. Errors: those of the directory.
  static Result<std::unique_ptr<DiskIndex>> open(Env& env, const DiskIndexOptions& options,
                                                 MetricRegistry* metrics = nullptr);
  ~DiskIndex() override;

  void put(IndexedDocument document) override;
  void remove(const GlobalId& gid) override;
  void remove_bucket(BucketId bucket) override;
  Backlog backlog() const override;
  std::size_t delta_bytes() const override { return recent_.delta_bytes(); }
  void merge_delta() override;
  Status for_each_keyword(std::string_view word, const std::function<void(const KeywordEntry&)>& sink) const override;
  Result<std::string_view> payload_of(const GlobalId& gid) const override;
  Status for_each_of_group(
      std::uint64_t group,
      const std::function<void(const GlobalId&, IndexRole, std::string_view)>& sink) const override;
  void set_checksum(BucketId bucket, std::uint64_t checksum) override;
  std::vector<std::pair<BucketId, std::uint64_t>> checksums() const override;
  std::string label() const override { return label_; }
  void clear(const std::string& label) override;
  std::uint64_t pages_read() const override { return counts_.pages_read; }
  Result<bool> maintain() override;
  bool take_lost() override;
  ListUse list_use() const override {
    return {counts_.list_hits, counts_.list_misses, counts_.list_pages, counts_.list_pages_read};
  }
  const affinity::CacheChanges* cache_changes() const override { return &cache_.changes(); }
  std::uint64_t pages_of(std::string_view word) const override;

  const IndexCounts& counts() const { return counts_; }
  const ListCache& cache() const { return cache_; }
  std::size_t segments() const { return segments_.size(); }

 private:
  using Kill = std::variant<GlobalId, BucketId>;

  DiskIndex(Env& env, const DiskIndexOptions& options);
  /// Opens the segments that the manifest names. Errors: NotFound if there is no manifest; Corruption; those of the
  /// files.
  Status load();
  /// Marks documents of segments as dead if they lie in no bucket with a checksum, as nothing would remove them later.
  Status kill_unknown();
  Status kill(const Kill& kill);
  Status write_manifest();
  /// Removes files that the manifest does not name.
  Status remove_strangers();
  /// Writes the documents in memory as a segment, and a manifest of the same moment, so that its checksums fit the
  /// content of the segments. Precondition: the delta is empty.
  Status save();
  Result<bool> work();
  Result<SegmentPlace> write_segment(std::uint64_t number);
  /// Returns the segments that should become one; empty if there are none.
  std::vector<Segment*> to_merge() const;
  Status finish_merge();
  /// Forgets all content; the owner indexes everything again.
  void lose(const Status& why);
  /// Adds to the metrics what was counted since the last call.
  void tell_metrics();
  /// Records that a file is damaged if `status` says so, and returns `status`.
  Status noted(const Status& status) const;
  std::string_view pin(const ListCache::Bytes& bytes, std::string_view view) const;

  Env& env_;
  DiskIndexOptions options_;
  std::string label_;
  std::uint64_t next_number_ = 1;
  MemoryIndex recent_;
  std::vector<Kill> kills_;  ///< Removals in the delta: they take effect on segments when the delta is merged.
  std::map<BucketId, std::uint64_t> checksums_;
  mutable IndexCounts counts_;
  IndexCounts told_;  ///< The counts that the metrics already contain.
  std::optional<IndexMetrics> metrics_;
  mutable ListCache cache_;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::unique_ptr<SegmentMerge> merge_;
  std::uint64_t merge_number_ = 0;
  /// Bytes into which views point; kept until the next change.
  mutable std::unordered_set<ListCache::Bytes> pinned_;
  mutable Status damage_;
  bool lost_ = false;
  /// Number of calls of maintain() to skip after an error, and the number after the next error.
  unsigned pause_ = 0;
  unsigned next_pause_ = 1;
  bool manifest_due_ = false;  ///< True if label_ or checksums_ changed since the manifest was written.
};

}  // namespace fjord::search
