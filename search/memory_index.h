#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "fjord/search/index_store.h"

namespace fjord::search {

/// An index in memory, built again from the engine's documents after each start.
class MemoryIndex final : public IndexStore {
 public:
  void put(IndexedDocument document) override;
  void remove(const GlobalId& gid) override;
  void remove_bucket(BucketId bucket) override;
  std::size_t delta_bytes() const override { return delta_bytes_; }
  void merge_delta() override;
  Status for_each_keyword(std::string_view word, const std::function<void(const KeywordEntry&)>& sink) const override;
  Result<std::string_view> payload_of(const GlobalId& gid) const override;
  Status for_each_of_group(
      std::uint64_t group,
      const std::function<void(const GlobalId&, IndexRole, std::string_view)>& sink) const override;
  void set_checksum(BucketId bucket, std::uint64_t checksum) override { checksums_[bucket] = checksum; }
  std::vector<std::pair<BucketId, std::uint64_t>> checksums() const override {
    return {checksums_.begin(), checksums_.end()};
  }
  std::string label() const override { return label_; }
  void clear(const std::string& label) override;
  Result<bool> maintain() override { return false; }
  bool take_lost() override { return false; }

  /// Documents in the order of the bucket tree, so that a bucket is a range.
  using Key = std::pair<std::uint64_t, GlobalId>;
  using Documents = std::map<Key, IndexedDocument>;
  /// Returns the documents that searches see.
  const Documents& documents() const { return documents_; }
  /// Returns the bytes of documents(), without the delta.
  std::size_t document_bytes() const { return document_bytes_; }

 private:
  using Change = std::variant<IndexedDocument, GlobalId, BucketId>;  // A put, a remove, or the removal of a bucket.
  struct WordHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
  };

  static std::size_t bytes_of(const IndexedDocument& document) {
    return sizeof(Change) + document.words.size() + document.payload.size();
  }
  static Key key_of(const GlobalId& gid) { return {bucket_of(gid, BucketId::kUsedBitsMax).position(), gid}; }
  void change(Change change, std::size_t bytes);
  void carry_out(Change& change);
  void add(const IndexedDocument& document);
  void drop(Documents::iterator at);

  std::vector<Change> delta_;
  std::size_t delta_bytes_ = 0;
  std::size_t document_bytes_ = 0;
  Documents documents_;
  std::unordered_map<std::string, std::vector<const IndexedDocument*>, WordHash, std::equal_to<>> by_first_word_;
  // Members of each group in the order of their gids, without keywords.
  std::unordered_map<std::uint64_t, std::vector<const IndexedDocument*>> by_group_;
  std::map<BucketId, std::uint64_t> checksums_;
  std::string label_;
};

}  // namespace fjord::search
