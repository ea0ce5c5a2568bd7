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
  /// Bytes of new documents in memory at which they become a segment.
  std::size_t recent_bytes_max = std::size_t{1} << 20;
  /// Segments of about the same size at which they become one.
  std::size_t segments_of_tier = 4;
  /// Bytes of segments kept in memory: posting lists and runs of documents.
  std::size_t cache_bytes = std::size_t{32} << 20;
  /// Limits of the cache that may change; asked at each maintain(). Empty: `cache_bytes`.
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
/// buckets that have another content by now. If a file is missing or damaged the whole index starts anew.
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
  /// Opens what the manifest names. Errors: NotFound if there is none; Corruption; those of the files.
  Status load();
  /// Kills the documents of segments that lie in no bucket with a checksum: nobody would remove them any more.
  Status kill_unknown();
  Status kill(const Kill& kill);
  Status write_manifest();
  /// Removes files that the manifest does not name.
  Status remove_strangers();
  /// Makes a segment of the documents in memory, and a manifest: both are of one moment, so the checksums are those of
  /// what the segments hold. The delta is empty.
  Status save();
  Result<bool> work();
  Result<SegmentPlace> write_segment(std::uint64_t number);
  /// Segments that should become one; empty if none.
  std::vector<Segment*> to_merge() const;
  Status finish_merge();
  /// Forgets all content; the owner indexes everything anew.
  void lose(const Status& why);
  /// Adds what was counted since the last call to the metrics.
  void tell_metrics();
  /// Notes that a file turned out to be damaged, and passes the error on.
  Status noted(const Status& status) const;
  std::string_view pin(const ListCache::Bytes& bytes, std::string_view view) const;

  Env& env_;
  DiskIndexOptions options_;
  std::string label_;
  std::uint64_t next_number_ = 1;
  MemoryIndex recent_;
  std::vector<Kill> kills_;  ///< In the delta: what they hit in segments is dead when the delta is merged.
  std::map<BucketId, std::uint64_t> checksums_;
  mutable IndexCounts counts_;
  IndexCounts told_;  ///< What the metrics have.
  std::optional<IndexMetrics> metrics_;
  mutable ListCache cache_;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::unique_ptr<SegmentMerge> merge_;
  std::uint64_t merge_number_ = 0;
  /// Bytes that views point into, until the next change.
  mutable std::unordered_set<ListCache::Bytes> pinned_;
  mutable Status damage_;
  bool lost_ = false;
  /// After errors, calls of maintain() to pass over, and how many of them after the next error.
  unsigned pause_ = 0;
  unsigned next_pause_ = 1;
  bool manifest_due_ = false;  ///< The manifest is not that of label_ and checksums_.
};

}  // namespace fjord::search
