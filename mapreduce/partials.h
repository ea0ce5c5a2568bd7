#pragma once

#include <array>
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

struct GlobalIdHash {
  std::size_t operator()(const GlobalId& gid) const { return static_cast<std::size_t>(gid.hash_bits()); }
};

/// Which versions of which documents a bucket has: equal ones are, on all replicas, the same content. The sum of 64
/// bits for each (spi::entry_hash), so that it does not depend on the order, nor on how the bucket is split.
struct ContentVersion {
  std::uint64_t entries = 0;
  std::uint64_t checksum = 0;

  void add(const GlobalId& gid, Timestamp timestamp, bool removed);
  void subtract(const GlobalId& gid, Timestamp timestamp, bool removed);
  friend bool operator==(const ContentVersion&, const ContentVersion&) = default;
};

/// Says quickly of most hashes that are not in a small set that they are not.
class HashFilter {
 public:
  void add(std::uint64_t hash) { bits_[word(hash)] |= bit(hash); }
  bool may_contain(std::uint64_t hash) const { return (bits_[word(hash)] & bit(hash)) != 0; }

 private:
  static std::size_t word(std::uint64_t hash) { return static_cast<std::size_t>(hash >> 6) % 256; }
  static std::uint64_t bit(std::uint64_t hash) { return std::uint64_t{1} << (hash % 64); }

  std::array<std::uint64_t, 256> bits_{};
};

/// One version of one document, and what map made of it.
struct PartialDocument {
  GlobalId gid;
  bool removed = false;
  bool mapped = false;  ///< It was given to map; else it is removed, or does not match.
  Timestamp timestamp;
  std::uint32_t at = 0;  ///< Its tuples, in BucketPartial::tuples().
  std::uint32_t bytes = 0;

  spi::EntryMeta meta() const { return {gid, timestamp, removed}; }
};

/// What became of a document since a partial was made.
struct DocumentChange {
  spi::EntryMeta meta;
  bool gone = false;    ///< It is not to be remembered: not there any more, or map failed on it.
  bool mapped = false;  ///< With these tuples:
  std::string_view tuples;
  bool seen = false;  ///< For apply().
};
using DocumentChanges = std::unordered_map<GlobalId, DocumentChange, GlobalIdHash>;

HashFilter filter_of(const DocumentChanges& changes);
inline std::uint64_t filter_hash(const GlobalId& gid) { return gid.hash_bits() >> 8; }

/// What map made of the documents of one bucket, each by itself, with their versions: a function of the content that
/// version() tells. Documents that map failed on are not in it, so that they are always read again.
///
/// Threading: const ones from anywhere; else confined.
class BucketPartial {
 public:
  /// Made of what was read.
  void add(const spi::EntryMeta& meta, bool mapped, std::string_view tuples);
  /// Calls `retract(tuples)` for what was and is not any more, `add(tuples)` for what is new. `changes` are marked.
  void apply(DocumentChanges& changes, const std::function<void(std::string_view)>& retract,
             const std::function<void(std::string_view)>& add);
  /// Only the tuples of all documents together, `merged`, are kept: good as long as nothing changes.
  void reduce_to(std::string merged);

  const ContentVersion& version() const { return version_; }
  Timestamp newest() const { return newest_; }
  /// Empty after reduce_to().
  const std::vector<PartialDocument>& documents() const { return documents_; }
  bool has_documents() const { return !is_reduced_; }
  std::string_view tuples_of(const PartialDocument& document) const {
    return std::string_view(tuples_).substr(document.at, document.bytes);
  }
  /// Calls `f(tuples)` for all of them, one or more documents at a time.
  template <typename F>
  Status for_each_tuples(F f) const {
    if (is_reduced_) return f(std::string_view(tuples_));
    for (const PartialDocument& document : documents_) {
      if (document.bytes != 0) FJORD_TRY(f(tuples_of(document)));
    }
    return Status::ok();
  }
  std::uint64_t mapped() const { return mapped_; }  ///< How many documents were given to map.
  std::size_t bytes() const;

  std::uint64_t serial = 0;  ///< Of this state of it, in its process.

 private:
  void place(PartialDocument& document, bool mapped, std::string_view tuples);
  void compact();

  std::vector<PartialDocument> documents_;
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
  std::vector<std::pair<std::string, std::string>> groups;  ///< Key and value, in any order.

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
