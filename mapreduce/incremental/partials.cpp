#include "partials.h"

#include <algorithm>
#include <bit>

#include "fjord/common/hash.h"

namespace fjord::mapreduce {
namespace {

constexpr std::size_t kGarbageMin = std::size_t{16} << 10;
constexpr std::uint32_t kNone = DocumentChange::kNew;
constexpr std::size_t kIndexMin = 16;

}  // namespace

KeyMark KeyMark::of(std::string_view key) {
  KeyMark mark;
  mark.bits_ = static_cast<std::uint16_t>(hash64(key) >> 48 | 1);
  return mark;
}

KeyMark KeyMark::of_tuples(std::string_view tuples) {
  ByteReader in(tuples);
  const std::string_view key = in.string();
  in.string();
  return in.ok() && in.remaining() == 0 ? of(key) : KeyMark();
}

void ContentVersion::add(const GlobalId& gid, Timestamp timestamp, bool removed) {
  ++entries;
  checksum += spi::entry_hash(gid, timestamp, removed);
}

void ContentVersion::subtract(const GlobalId& gid, Timestamp timestamp, bool removed) {
  --entries;
  checksum -= spi::entry_hash(gid, timestamp, removed);
}

std::size_t BucketPartial::home(const GlobalId& gid) const {
  // Some bits of the hash are equal in all documents of a bucket; the bits taken from the product are not.
  return static_cast<std::size_t>((gid.hash_bits() ^ gid.location_bits()) * 0x9e3779b97f4a7c15ULL >> 32) &
         (index_.size() - 1);
}

void BucketPartial::index(std::uint32_t number) {
  std::size_t at = home(documents_[number].gid);
  while (index_[at] != kNone) at = (at + 1) & (index_.size() - 1);
  index_[at] = number;
}

void BucketPartial::make_index(std::size_t documents) {
  index_.assign(std::bit_ceil(std::max(kIndexMin, documents * 4 / 3 + 1)), kNone);
  for (std::uint32_t i = 0; i < documents_.size(); ++i) index(i);
}

std::uint32_t BucketPartial::find(const GlobalId& gid) const {
  if (index_.empty()) return kNone;
  std::size_t at = home(gid);
  while (index_[at] != kNone && documents_[index_[at]].gid != gid) at = (at + 1) & (index_.size() - 1);
  return index_[at];
}

void BucketPartial::place(PartialDocument& document, bool mapped, std::string_view tuples) {
  document.mapped = mapped;
  document.at = static_cast<std::uint32_t>(tuples_.size());
  document.bytes = static_cast<std::uint32_t>(tuples.size());
  document.keys = KeyMark::of_tuples(tuples);
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
  if (documents_.size() * 4 > index_.size() * 3) {
    make_index(2 * documents_.size());
  } else {
    index(static_cast<std::uint32_t>(documents_.size() - 1));
  }
}

void BucketPartial::apply(const DocumentChanges& changes, const std::function<void(std::string_view)>& retract,
                          const std::function<void(std::string_view)>& add_tuples) {
  bool any_gone = false;
  for (const auto& [gid, change] : changes) {
    if (change.number != DocumentChange::kNew) {
      PartialDocument& document = documents_[change.number];
      version_.subtract(gid, document.timestamp, document.removed);
      mapped_ -= document.mapped ? 1 : 0;
      garbage_ += document.bytes;
      if (document.bytes != 0) retract(tuples_of(document));
      document.timestamp = change.meta.timestamp;
      document.removed = change.meta.removed;
      if (!change.gone) place(document, change.mapped, change.tuples);
      any_gone = any_gone || change.gone;
    } else if (!change.gone) {
      add(change.meta, change.mapped, change.tuples);
    }
    if (!change.tuples.empty()) add_tuples(change.tuples);
  }
  if (any_gone) {
    std::erase_if(documents_, [&](const PartialDocument& document) {
      const auto found = changes.find(document.gid);
      return found != changes.end() && found->second.gone;
    });
    make_index(documents_.size());
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
  std::vector<std::uint32_t>().swap(index_);
  tuples_ = std::move(merged);
  tuples_.shrink_to_fit();
  is_reduced_ = true;
}

std::size_t BucketPartial::bytes() const {
  return sizeof(*this) + documents_.capacity() * sizeof(PartialDocument) + index_.capacity() * sizeof(std::uint32_t) +
         tuples_.capacity();
}

std::size_t UnitPartial::bytes() const {
  std::size_t bytes = sizeof(*this) + serials.capacity() * sizeof(serials[0]);
  for (const std::string& piece : groups) bytes += sizeof(piece) + piece.capacity();
  return bytes;
}

}  // namespace fjord::mapreduce
