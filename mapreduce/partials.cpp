#include "partials.h"

#include <algorithm>

namespace fjord::mapreduce {
namespace {

constexpr std::size_t kGarbageMin = std::size_t{16} << 10;

}  // namespace

void ContentVersion::add(const GlobalId& gid, Timestamp timestamp, bool removed) {
  ++entries;
  checksum += spi::entry_hash(gid, timestamp, removed);
}

void ContentVersion::subtract(const GlobalId& gid, Timestamp timestamp, bool removed) {
  --entries;
  checksum -= spi::entry_hash(gid, timestamp, removed);
}

HashFilter filter_of(const DocumentChanges& changes) {
  HashFilter filter;
  for (const auto& [gid, change] : changes) filter.add(filter_hash(gid));
  return filter;
}

void BucketPartial::place(PartialDocument& document, bool mapped, std::string_view tuples) {
  document.mapped = mapped;
  document.at = static_cast<std::uint32_t>(tuples_.size());
  document.bytes = static_cast<std::uint32_t>(tuples.size());
  tuples_ += tuples;
  mapped_ += mapped ? 1 : 0;
  version_.add(document.gid, document.timestamp, document.removed);
  newest_ = std::max(newest_, document.timestamp);
}

void BucketPartial::add(const spi::EntryMeta& meta, bool mapped, std::string_view tuples) {
  PartialDocument& document = documents_.emplace_back();
  document.gid = meta.gid;
  document.timestamp = meta.timestamp;
  document.removed = meta.removed;
  place(document, mapped, tuples);
}

void BucketPartial::apply(DocumentChanges& changes, const std::function<void(std::string_view)>& retract,
                          const std::function<void(std::string_view)>& add_tuples) {
  const HashFilter filter = filter_of(changes);
  std::size_t left = changes.size();
  for (std::size_t i = 0; i < documents_.size() && left > 0;) {
    PartialDocument& document = documents_[i];
    const auto found = filter.may_contain(filter_hash(document.gid)) ? changes.find(document.gid) : changes.end();
    if (found == changes.end()) {
      ++i;
      continue;
    }
    DocumentChange& change = found->second;
    change.seen = true;
    --left;
    version_.subtract(document.gid, document.timestamp, document.removed);
    mapped_ -= document.mapped ? 1 : 0;
    garbage_ += document.bytes;
    if (document.bytes != 0) retract(tuples_of(document));
    if (change.gone) {
      document = documents_.back();
      documents_.pop_back();
      continue;
    }
    document.timestamp = change.meta.timestamp;
    document.removed = change.meta.removed;
    place(document, change.mapped, change.tuples);
    ++i;
  }
  for (const auto& [gid, change] : changes) {
    if (!change.tuples.empty()) add_tuples(change.tuples);
    if (!change.seen && !change.gone) add(change.meta, change.mapped, change.tuples);
  }
  compact();
}

void BucketPartial::compact() {
  if (garbage_ < kGarbageMin || garbage_ * 2 < tuples_.size()) return;
  std::string kept;
  kept.reserve(tuples_.size() - garbage_);
  for (PartialDocument& document : documents_) {
    const std::string_view own = tuples_of(document);
    document.at = static_cast<std::uint32_t>(kept.size());
    kept += own;
  }
  tuples_ = std::move(kept);
  garbage_ = 0;
}

void BucketPartial::reduce_to(std::string merged) {
  std::vector<PartialDocument>().swap(documents_);
  tuples_ = std::move(merged);
  tuples_.shrink_to_fit();
  is_reduced_ = true;
}

std::size_t BucketPartial::bytes() const {
  return sizeof(*this) + documents_.capacity() * sizeof(PartialDocument) + tuples_.capacity();
}

std::size_t UnitPartial::bytes() const {
  std::size_t bytes = sizeof(*this) + serials.capacity() * sizeof(serials[0]);
  for (const auto& [key, value] : groups) {
    bytes += sizeof(groups[0]);
    for (const std::string* text : {&key, &value}) bytes += text->capacity() > 15 ? text->capacity() : 0;
  }
  return bytes;
}

}  // namespace fjord::mapreduce
