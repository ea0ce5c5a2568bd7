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

/// What an incremental job remembers of a bucket (docs/design/0011-incremental-refresh.md).
namespace fjord::mapreduce {

/// Which versions of which documents a bucket has: equal ones are, on all replicas, the same content. The sum of 64
/// bits for each (spi::entry_hash), so that it does not depend on the order, nor on how the bucket is split.
struct ContentVersion {
  std::uint64_t entries = 0;
  std::uint64_t checksum = 0;

  void add(const GlobalId& gid, Timestamp timestamp, bool removed);
  void subtract(const GlobalId& gid, Timestamp timestamp, bool removed);
  friend bool operator==(const ContentVersion&, const ContentVersion&) = default;
};

/// What is quickly said of the keys of a document's tuples: of a single one some bits of its hash, else nothing.
class KeyMark {
 public:
  static KeyMark of(std::string_view key);
  static KeyMark of_tuples(std::string_view tuples);
  friend bool operator==(const KeyMark&, const KeyMark&) = default;

 private:
  friend class KeyMarks;
  std::uint16_t bits_ = 0;  ///< 0: may be any.
};

/// A set of keys, of which it is quickly said for most others that they are not in it.
class KeyMarks {
 public:
  void add(std::string_view key) { has_.set(KeyMark::of(key).bits_); }
  /// Whether one of the tuples may have a key of the set.
  bool may_contain(KeyMark mark) const { return mark.bits_ == 0 || has_.test(mark.bits_); }

 private:
  std::bitset<std::size_t{1} << 16> has_;
};

/// One version of one document, and what map made of it.
struct PartialDocument {
  GlobalId gid;
  bool removed = false;
  bool mapped = false;  ///< It was given to map; else it is removed, or does not match.
  KeyMark keys;
  Timestamp timestamp;
  std::uint32_t at = 0;  ///< Its tuples, in BucketPartial::tuples().
  std::uint32_t bytes = 0;

  spi::EntryMeta meta() const { return {gid, timestamp, removed}; }
};

/// What became of a document since a partial was made.
struct DocumentChange {
  static constexpr std::uint32_t kNew = 0xffffffff;

  spi::EntryMeta meta;
  std::uint32_t number = kNew;  ///< In BucketPartial::documents().
  bool gone = false;            ///< It is not to be remembered: not there any more, or map failed on it.
  bool mapped = false;          ///< With these tuples:
  std::string_view tuples = {};
};
using DocumentChanges = std::unordered_map<GlobalId, DocumentChange>;

/// What map made of the documents of one bucket, each by itself, with their versions: a function of the content that
/// version() tells. Documents that map failed on are not in it, so that they are always read again.
///
/// Threading: const ones from anywhere; else confined.
class BucketPartial {
 public:
  /// Made of what was read.
  void add(const spi::EntryMeta& meta, bool mapped, std::string_view tuples);
  /// Calls `retract(tuples)` for what was and is not any more, `add(tuples)` for what is new.
  void apply(const DocumentChanges& changes, const std::function<void(std::string_view)>& retract,
             const std::function<void(std::string_view)>& add);
  /// Only the tuples of all documents together, `merged`, are kept: good as long as nothing changes.
  void reduce_to(std::string merged);

  const ContentVersion& version() const { return version_; }
  Timestamp newest() const { return newest_; }
  /// Empty after reduce_to().
  const std::vector<PartialDocument>& documents() const { return documents_; }
  bool has_documents() const { return !is_reduced_; }
  /// Its number in documents(), or DocumentChange::kNew.
  std::uint32_t find(const GlobalId& gid) const;
  std::string_view tuples_of(const PartialDocument& document) const {
    return std::string_view(tuples_).substr(document.at, document.bytes);
  }
  /// Calls `f(tuples)` for all of them, one or more documents at a time; with `keys` at least for those that have one
  /// of these.
  template <typename F>
  Status for_each_tuples(const KeyMarks* keys, F f) const {
    if (is_reduced_) return f(std::string_view(tuples_));
    for (const PartialDocument& document : documents_) {
      if (document.bytes == 0 || (keys != nullptr && !keys->may_contain(document.keys))) continue;
      FJORD_TRY(f(tuples_of(document)));
    }
    return Status::ok();
  }
  std::uint64_t mapped() const { return mapped_; }  ///< How many documents were given to map.
  std::size_t bytes() const;

  std::uint64_t serial = 0;  ///< Of this state of it, in its process.

 private:
  void place(PartialDocument& document, bool mapped, std::string_view tuples);
  void compact();
  std::size_t home(const GlobalId& gid) const;
  void index(std::uint32_t number);
  void make_index(std::size_t documents);

  std::vector<PartialDocument> documents_;
  std::vector<std::uint32_t> index_;  ///< Numbers of documents by open addressing, three quarters full at most.
  std::string tuples_;
  std::size_t garbage_ = 0;
  ContentVersion version_;
  Timestamp newest_;
  std::uint64_t mapped_ = 0;
  bool is_reduced_ = false;
};

/// The groups of buckets that were read together, of certain states of their partials.
struct UnitPartial {
  std::vector<std::pair<BucketId, std::uint64_t>> serials;  ///< By rising bucket.
  std::vector<std::string> groups;                          ///< As for_each_tuple() reads them, in any order.

  std::size_t bytes() const;
};

/// Calls `f(key, value)` for tuples as Accumulator::map_alone() appends them, until it fails.
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
