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
  std::string words = {};    ///< For keywords only; the first one finds it.
  std::string payload = {};  ///< The rest, opaque to the index: not read for keywords that do not match.
};

/// What a search reads of a keyword to decide whether it matches. Lifetime: the views are valid during the call.
struct KeywordEntry {
  GlobalId gid;
  std::uint64_t group = 0;
  MatchKind kind = MatchKind::Broad;
  std::string_view words = {};
};

/// What searches used of the lists of keywords in files, since the index was opened.
struct ListUse {
  std::uint64_t hits = 0;        ///< Lists found in the cache.
  std::uint64_t misses = 0;      ///< Lists read.
  std::uint64_t pages = 0;       ///< Pages of both.
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
  /// Does nothing if there is no such document.
  virtual void remove(const GlobalId& gid) = 0;
  /// Removes all documents that lie in the bucket: it was deleted here, or is indexed again.
  virtual void remove_bucket(BucketId bucket) = 0;
  /// Bytes of the delta.
  virtual std::size_t delta_bytes() const = 0;
  /// Lets searches see all changes so far.
  virtual void merge_delta() = 0;

  /// Pages of files read for searches since the index was opened.
  virtual std::uint64_t pages_read() const { return 0; }

  /// Gives each keyword whose first word is `word` once. `sink` must not call the index.
  virtual Status for_each_keyword(std::string_view word,
                                  const std::function<void(const KeywordEntry&)>& sink) const = 0;
  /// Lifetime: the view is valid until the next change. Errors: NotFound; those of the store.
  virtual Result<std::string_view> payload_of(const GlobalId& gid) const = 0;
  /// Gives the group documents and the ads of a group, by rising gid. Lifetime: payloads are valid until the next
  /// change.
  virtual Status for_each_of_group(
      std::uint64_t group,
      const std::function<void(const GlobalId&, IndexRole, std::string_view payload)>& sink) const = 0;

  /// The content of a bucket (BucketInfo::checksum of the engine) that the index is known to have. After a restart the
  /// caller compares them with the engine and indexes again what differs.
  virtual void set_checksum(BucketId bucket, std::uint64_t checksum) = 0;
  virtual std::vector<std::pair<BucketId, std::uint64_t>> checksums() const = 0;
  /// What the index was made by: the types that take part in searches. Empty: it is new.
  virtual std::string label() const = 0;
  /// Drops everything, also the checksums, and takes a new label.
  virtual void clear(const std::string& label) = 0;
  /// A bounded step of background work. True if more is due. Ends the life of views. Errors: those of the store.
  virtual Result<bool> maintain() = 0;
  /// True once after content was lost, for a file was damaged. The index is empty then, without checksums, and its
  /// owner indexes all buckets again.
  virtual bool take_lost() = 0;

  // --- What brokers are told, so that they choose replicas by what is in caches. An index in memory has no lists.

  virtual ListUse list_use() const { return {}; }
  /// Words whose lists entered or left the cache. Null: there is no cache.
  virtual const affinity::CacheChanges* cache_changes() const { return nullptr; }
  /// Pages of the lists of a word in files.
  virtual std::uint64_t pages_of(std::string_view /*word*/) const { return 0; }
};

}  // namespace fjord::search
