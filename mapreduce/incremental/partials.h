#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fjord/common/coding.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/document_id.h"
#include "fjord/document/timestamp.h"
#include "fjord/storage/spi/persistence_provider.h"

/// The data that an incremental job keeps about a bucket (docs/design/0011-incremental-refresh.md).
namespace fjord::mapreduce {

/// Identifies the document versions in a bucket: equal values mean equal content, on all replicas. The checksum is the
/// sum of a 64-bit hash of each entry (spi::entry_hash), so it depends neither on the order of entries nor on how the
/// bucket is split.
struct ContentVersion {
  std::uint64_t entries = 0;
  std::uint64_t checksum = 0;

  void add(const GlobalId& gid, Timestamp timestamp, bool removed);
  void subtract(const GlobalId& gid, Timestamp timestamp, bool removed);
  friend bool operator==(const ContentVersion&, const ContentVersion&) = default;
};

/// A fingerprint of the key of a document's tuples: some bits of its hash if there is a single tuple, else no
/// information.
class KeyMark {
 public:
  static KeyMark of(std::string_view key);
  static KeyMark of_tuples(std::string_view tuples);
  friend bool operator==(const KeyMark&, const KeyMark&) = default;

 private:
  friend class KeyMarks;
  std::uint16_t bits_ = 0;  ///< 0: the tuples may have any keys.
};

/// A set of keys that quickly excludes most keys which are not in it.
class KeyMarks {
 public:
  void add(std::string_view key) { has_.set(KeyMark::of(key).bits_); }
  /// False if no tuple with this fingerprint has a key in the set. True may be wrong.
  bool may_contain(KeyMark mark) const { return mark.bits_ == 0 || has_.test(mark.bits_); }

 private:
  std::bitset<std::size_t{1} << 16> has_;
};

/// One version of a document, with the tuples that map made of it.
struct PartialDocument {
  GlobalId gid;
  bool removed = false;
  bool mapped = false;  ///< The document was mapped. False: it is removed or not selected.
  KeyMark keys;
  Timestamp timestamp;
  std::uint32_t at = 0;  ///< Position of its tuples in BucketPartial::tuples_.
  std::uint32_t bytes = 0;

  spi::EntryMeta meta() const { return {gid, timestamp, removed}; }
};

/// Change of a document since a partial was made.
struct DocumentChange {
  static constexpr std::uint32_t kNew = 0xffffffff;

  spi::EntryMeta meta;
  std::uint32_t number = kNew;  ///< Index in BucketPartial::documents().
  bool gone = false;            ///< The document must be dropped: it no longer exists, or map failed on it.
  bool mapped = false;          ///< The document was mapped to `tuples`.
  std::string_view tuples = {};
};
using DocumentChanges = std::unordered_map<GlobalId, DocumentChange>;

/// The tuples that map made of each document of one bucket, with the documents' versions. They are a function of the
/// content that version() identifies. Documents that map failed on are left out, so that every run reads them again.
///
/// Threading: const objects are readable from any thread; others are confined.
class BucketPartial {
 public:
  /// Adds a document that was read.
  void add(const spi::EntryMeta& meta, bool mapped, std::string_view tuples);
  /// Applies `changes`. Calls `retract(tuples)` for tuples of old versions and `add(tuples)` for those of new ones.
  void apply(const DocumentChanges& changes, const std::function<void(std::string_view)>& retract,
             const std::function<void(std::string_view)>& add);
  /// Keeps only `merged`, the merged tuples of all documents. They are valid as long as the bucket does not change.
  void reduce_to(std::string merged);

  const ContentVersion& version() const { return version_; }
  Timestamp newest() const { return newest_; }
  /// Empty after reduce_to().
  const std::vector<PartialDocument>& documents() const { return documents_; }
  bool has_documents() const { return !is_reduced_; }
  /// Returns the index in documents(), or DocumentChange::kNew.
  std::uint32_t find(const GlobalId& gid) const;
  std::string_view tuples_of(const PartialDocument& document) const {
    return std::string_view(tuples_).substr(document.at, document.bytes);
  }
  /// Calls `f(tuples)` for the tuples of all documents, of one or more documents per call. With `keys`, documents
  /// without a key in the set may be skipped.
  template <typename F>
  Status for_each_tuples(const KeyMarks* keys, F f) const {
    if (is_reduced_) return f(std::string_view(tuples_));
    for (const PartialDocument& document : documents_) {
      if (document.bytes == 0 || (keys != nullptr && !keys->may_contain(document.keys))) continue;
      FJORD_TRY(f(tuples_of(document)));
    }
    return Status::ok();
  }
  std::uint64_t mapped() const { return mapped_; }  ///< Number of documents that were mapped.
  std::size_t bytes() const;

  std::uint64_t serial = 0;  ///< Identifies this state of the partial in its process.

 private:
  void place(PartialDocument& document, bool mapped, std::string_view tuples);
  void compact();
  std::size_t home(const GlobalId& gid) const;
  void index(std::uint32_t number);
  void make_index(std::size_t documents);

  std::vector<PartialDocument> documents_;
  std::vector<std::uint32_t> index_;  ///< Indexes of documents by open addressing, at most three quarters full.
  std::string tuples_;
  std::size_t garbage_ = 0;
  ContentVersion version_;
  Timestamp newest_;
  std::uint64_t mapped_ = 0;
  bool is_reduced_ = false;
};

/// The merged groups of buckets that were read together, for given states of their partials.
struct UnitPartial {
  std::vector<std::pair<BucketId, std::uint64_t>> serials;  ///< Serials of the partials, by rising bucket.
  std::vector<std::string> groups;                          ///< Pieces that for_each_tuple() reads, in any order.

  std::size_t bytes() const;
};

/// Calls `f(key, value)` for tuples in the form of Accumulator::map_alone() until a call fails. Errors: Corruption;
/// those of `f`.
template <typename F>
Status for_each_alone(std::string_view tuples, F f) {
  ByteReader in(tuples);
  while (in.remaining() > 0) {
    const std::string_view key = in.string();
    const std::string_view value = in.string();
    if (!in.ok()) return Status(StatusCode::Corruption, "malformed tuples of a document");
    FJORD_TRY(f(key, value));
  }
  return Status::ok();
}

}  // namespace fjord::mapreduce
