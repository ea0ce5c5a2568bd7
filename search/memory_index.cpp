#include "memory_index.h"

#include <algorithm>
#include <utility>

namespace fjord::search {
namespace {

std::string_view first_word(std::string_view words) { return words.substr(0, words.find(' ')); }

bool by_gid(const IndexedDocument* a, const IndexedDocument* b) { return a->gid < b->gid; }

/// Removes a pointer from one list of a map, and the list if it is then empty.
template <typename M, typename K>
void erase_from(M& lists, const K& key, const IndexedDocument* document) {
  const auto at = lists.find(key);
  std::erase(at->second, document);
  if (at->second.empty()) lists.erase(at);
}

}  // namespace

void MemoryIndex::change(Change change, std::size_t bytes) {
  delta_.push_back(std::move(change));
  delta_bytes_ += sizeof(Change) + bytes;
}

void MemoryIndex::put(IndexedDocument document) {
  const std::size_t bytes = document.words.size() + document.payload.size();
  change(std::move(document), bytes);
}

void MemoryIndex::remove(const GlobalId& gid) { change(gid, 0); }

void MemoryIndex::remove_bucket(BucketId bucket) {
  checksums_.erase(bucket);
  change(bucket, 0);
}

void MemoryIndex::merge_delta() {
  for (Change& change : delta_) carry_out(change);
  delta_.clear();
  delta_bytes_ = 0;
}

void MemoryIndex::carry_out(Change& change) {
  if (auto* document = std::get_if<IndexedDocument>(&change)) {
    const Key key = key_of(document->gid);
    if (const auto at = documents_.find(key); at != documents_.end()) drop(at);
    add(documents_.emplace(key, std::move(*document)).first->second);
  } else if (const auto* gid = std::get_if<GlobalId>(&change)) {
    if (const auto at = documents_.find(key_of(*gid)); at != documents_.end()) drop(at);
  } else {
    const BucketId bucket = std::get<BucketId>(change);
    auto at = documents_.lower_bound({bucket.position(), GlobalId{}});
    while (at != documents_.end() && at->first.first - bucket.position() < bucket.span()) drop(at++);
  }
}

void MemoryIndex::add(const IndexedDocument& document) {
  document_bytes_ += bytes_of(document);
  if (document.role == IndexRole::Keyword) {
    by_first_word_[std::string(first_word(document.words))].push_back(&document);
  } else {
    auto& members = by_group_[document.group];
    members.insert(std::upper_bound(members.begin(), members.end(), &document, by_gid), &document);
  }
}

void MemoryIndex::drop(Documents::iterator at) {
  const IndexedDocument& document = at->second;
  document_bytes_ -= bytes_of(document);
  if (document.role == IndexRole::Keyword) {
    erase_from(by_first_word_, first_word(document.words), &document);
  } else {
    erase_from(by_group_, document.group, &document);
  }
  documents_.erase(at);
}

Status MemoryIndex::for_each_keyword(std::string_view word,
                                     const std::function<void(const KeywordEntry&)>& sink) const {
  const auto at = by_first_word_.find(word);
  if (at == by_first_word_.end()) return Status::ok();
  for (const IndexedDocument* one : at->second) {
    sink({.gid = one->gid, .group = one->group, .kind = one->kind, .words = one->words});
  }
  return Status::ok();
}

Result<std::string_view> MemoryIndex::payload_of(const GlobalId& gid) const {
  const auto at = documents_.find(key_of(gid));
  if (at == documents_.end()) return Status(StatusCode::NotFound, gid.to_string() + " is not in the index");
  return std::string_view(at->second.payload);
}

Status MemoryIndex::for_each_of_group(
    std::uint64_t group, const std::function<void(const GlobalId&, IndexRole, std::string_view)>& sink) const {
  const auto at = by_group_.find(group);
  if (at == by_group_.end()) return Status::ok();
  for (const IndexedDocument* one : at->second) sink(one->gid, one->role, one->payload);
  return Status::ok();
}

void MemoryIndex::clear(const std::string& label) {
  by_first_word_.clear();
  by_group_.clear();
  documents_.clear();
  delta_.clear();
  delta_bytes_ = 0;
  document_bytes_ = 0;
  checksums_.clear();
  label_ = label;
}

}  // namespace fjord::search
