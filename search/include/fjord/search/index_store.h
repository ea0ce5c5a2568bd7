#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/affinity/cache_changes.h"
#include "fjord/common/result.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/document_id.h"
#include "fjord/document/timestamp.h"
#include "fjord/search/search_document.h"

namespace fjord::search {

/// What an index keeps of one document.
struct IndexedDocument {
  GlobalId gid;
  Timestamp timestamp;
  IndexRole role = IndexRole::Keyword;
  std::uint64_t group = 0;
  MatchKind kind = MatchKind::Broad;
  std::string words = {};    ///< For keywords only; the index finds a keyword by the first word.
  std::string payload = {};  ///< The rest, opaque to the index, which reads it only for keywords that match.
};

/// The part of a keyword that a search reads to decide whether it matches. Lifetime: the views are valid during the
/// call.
struct KeywordEntry {
  GlobalId gid;
  std::uint64_t group = 0;
  MatchKind kind = MatchKind::Broad;
  std::string_view words = {};
};

/// How searches used the lists of keywords in files, since the index was opened.
struct ListUse {
  std::uint64_t hits = 0;        ///< Lists found in the cache.
  std::uint64_t misses = 0;      ///< Lists read from files.
  std::uint64_t pages = 0;       ///< Pages of the lists found and the lists read.
  std::uint64_t pages_read = 0;  ///< Pages of the lists read.

  friend ListUse operator-(const ListUse& a, const ListUse& b) {
    return {a.hits - b.hits, a.misses - b.misses, a.pages - b.pages, a.pages_read - b.pages_read};
  }
  ListUse& operator+=(const ListUse& other) {
    hits += other.hits;
    misses += other.misses;
    pages += other.pages;
    pages_read += other.pages_read;
    return *this;
  }
};

/// The keywords, groups and ads of one stripe. Changes are collected in a delta, which searches do not see, until
/// merge_delta().
///
/// Threading: confined to the stripe's executor.
class IndexStore {
 public:
  virtual ~IndexStore() = default;

  virtual void put(IndexedDocument document) = 0;
  /// Removes a document; no effect if there is none.
  virtual void remove(const GlobalId& gid) = 0;
  /// Removes all documents that lie in the bucket, because it was deleted here or is to be indexed again.
  virtual void remove_bucket(BucketId bucket) = 0;
  /// How much is in memory alone until a file takes it: less than makes a file, enough for one, or as much as may be.
  enum class Backlog : std::uint8_t { Small, Due, Full };
  virtual Backlog backlog() const { return Backlog::Small; }
  /// Returns the size of the delta in bytes.
  virtual std::size_t delta_bytes() const = 0;
  /// Lets searches see all changes so far.
  virtual void merge_delta() = 0;

  /// Returns the number of pages that searches have read from files since the index was opened.
  virtual std::uint64_t pages_read() const { return 0; }

  /// Calls `sink` once with each keyword whose first word is `word`. `sink` must not call the index.
  virtual Status for_each_keyword(std::string_view word,
                                  const std::function<void(const KeywordEntry&)>& sink) const = 0;
  /// Lifetime: the view is valid until the next change. Errors: NotFound; those of the store.
  virtual Result<std::string_view> payload_of(const GlobalId& gid) const = 0;
  /// Calls `sink` with the group documents and the ads of a group, by rising gid. Lifetime: payloads are valid until
  /// the next change.
  virtual Status for_each_of_group(
      std::uint64_t group,
      const std::function<void(const GlobalId&, IndexRole, std::string_view payload)>& sink) const = 0;

  /// Sets the content of a bucket (BucketInfo::checksum of the engine) that the index has. After a restart the caller
  /// compares these checksums with the engine, and indexes the buckets again that differ.
  virtual void set_checksum(BucketId bucket, std::uint64_t checksum) = 0;
  virtual std::vector<std::pair<BucketId, std::uint64_t>> checksums() const = 0;
  /// Returns the types that take part in searches, as of when the index was made. Empty: the index is new.
  virtual std::string label() const = 0;
  /// Drops all content and all checksums, and sets a new label.
  virtual void clear(const std::string& label) = 0;
  /// Does a bounded step of background work. Returns true if more is due. Views become invalid. Errors: those of the
  /// store.
  virtual Result<bool> maintain() = 0;
  /// Returns true once after content was lost because a file was damaged. The index is empty then, without checksums,
  /// and its owner indexes all buckets again.
  virtual bool take_lost() = 0;

  // --- Reports for brokers, which choose replicas by the content of caches. An index in memory has no lists.

  virtual ListUse list_use() const { return {}; }
  /// Returns the words whose lists entered or left the cache. Null: there is no cache.
  virtual const affinity::CacheChanges* cache_changes() const { return nullptr; }
  /// Returns the number of pages of a word's lists in files.
  virtual std::uint64_t pages_of(std::string_view /*word*/) const { return 0; }
};

}  // namespace fjord::search
