#include "slotfile_iterator.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace fjord::slotfile {

namespace {

/// Reading over a gap of this size costs less than a call more.
constexpr std::uint64_t kGapBytesMax = 64 << 10;

constexpr std::size_t kBuffersKept = 8;

}  // namespace

SlotfileIterator::SlotfileIterator(EngineContext& context, const BucketMap& buckets, const Bucket& bucket,
                                   const spi::IterateOptions& options)
    : context_(context),
      buckets_(buckets),
      id_(bucket.id()),
      incarnation_(bucket.incarnation()),
      filter_(options),
      first_slot_bits_(bucket.slot_bits()),
      generation_(bucket.generation()) {
  for (Side& side : sides_) {
    if (context_.window_buffers.empty()) break;
    side.window.lend(std::move(context_.window_buffers.back()));
    context_.window_buffers.pop_back();
  }
}

SlotfileIterator::~SlotfileIterator() {
  for (Side& side : sides_) {
    std::unique_ptr<char[]> buffer = side.window.take_back();
    if (buffer != nullptr && context_.window_buffers.size() < kBuffersKept) {
      context_.window_buffers.push_back(std::move(buffer));
    }
  }
}

Result<bool> SlotfileIterator::next(DocBlockBuilder& into, std::size_t max_bytes) {
  FJORD_TRY(resume());
  const std::size_t count_before = into.count();
  while (into.count() == count_before || into.size() < max_bytes) {
    if (at_ == pending_.size()) {
      if (!start_next_slot()) return false;
      continue;
    }
    if (const Status status = give(into); !status) {
      if (into.count() > count_before) return true;  // what is there first; the next call says it again
      return status;
    }
    ++at_;
  }
  return at_ < pending_.size() || next_slot_ < (1U << first_slot_bits_);
}

/// Finds the bucket, and follows what has happened to it since the last call.
Status SlotfileIterator::resume() {
  const auto found = buckets_.find(id_);
  if (found == buckets_.end() || found->second->incarnation() != incarnation_) {
    return Status(StatusCode::NotFound, id_.to_string() + " was deleted");
  }
  bucket_ = found->second.get();
  if (generation_ != bucket_->generation()) {
    generation_ = bucket_->generation();
    for (std::size_t i = at_; i < pending_.size(); ++i) {
      pending_[i].slot = slot_of(pending_[i].gid, bucket_->slot_bits());
      pending_[i].number = bucket_->slots()[pending_[i].slot]->index().find(pending_[i].gid);
    }
    order_pending();
  } else if (layout_version_ != layout_version()) {
    order_pending();
  }
  return Status::ok();
}

std::uint64_t SlotfileIterator::layout_version() const {
  std::uint64_t sum = 0;
  for (const auto& slot : bucket_->slots()) sum += slot->layout_version();
  return sum;
}

bool SlotfileIterator::start_next_slot() {
  if (next_slot_ >= (1U << first_slot_bits_)) return false;
  pending_.clear();
  at_ = 0;
  const std::uint32_t step = 1U << first_slot_bits_;
  for (std::uint32_t slot = next_slot_; slot < bucket_->slots().size(); slot += step) add_slot(slot);
  ++next_slot_;
  order_pending();
  return true;
}

void SlotfileIterator::add_slot(std::uint32_t slot) {
  const std::span<const MetaEntry> entries = bucket_->slots()[slot]->index().entries();
  for (std::uint32_t number = 0; number < entries.size(); ++number) {
    const MetaEntry& entry = entries[number];
    if (filter_.wants(entry.timestamp(), entry.removed())) {
      pending_.push_back({.gid = entry.gid, .slot = slot, .number = number});
    }
  }
}

/// Puts what is left in the order of the files as they are now.
void SlotfileIterator::order_pending() {
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(at_));
  at_ = 0;
  const auto key = [&](const Pending& p) {
    const MetaEntry& entry = bucket_->slots()[p.slot]->index().at(p.number);
    return std::tuple(p.slot, entry.header_position, entry.body_position);
  };
  const auto before = [&](const Pending& a, const Pending& b) { return key(a) < key(b); };
  if (!std::is_sorted(pending_.begin(), pending_.end(), before)) std::sort(pending_.begin(), pending_.end(), before);
  header_ends_.clear();
  for (const auto& slot : bucket_->slots()) header_ends_.push_back(slot->used_end(Part::Header));
  for (Side& side : sides_) side.window.forget();
  layout_version_ = layout_version();
}

Status SlotfileIterator::give(DocBlockBuilder& into) {
  const Pending& pending = pending_[at_];
  Slot& slot = *bucket_->slots()[pending.slot];
  if (window_slot_ != pending.slot) {
    for (Side& side : sides_) side.window.forget();
    window_slot_ = pending.slot;
  }
  const MetaEntry& entry = slot.index().at(pending.number);
  if (!filter_.wants(entry.timestamp(), entry.removed())) return Status::ok();  // replaced by one that is not wanted
  if (!entry.removed()) return give_document(slot, entry, into);
  FJORD_TRY_ASSIGN(const std::string_view id, part(slot, entry, Part::Header));
  into.add({.gid = entry.gid, .timestamp = entry.timestamp(), .removed = true, .id = id, .header = {}, .body = {}});
  return Status::ok();
}

Status SlotfileIterator::give_document(Slot& slot, const MetaEntry& entry, DocBlockBuilder& into) {
  FJORD_TRY_ASSIGN(const std::string_view header, part(slot, entry, Part::Header));
  const bool selects_on_body = filter_.selects_on_body();
  if (filter_.has_selection() && !selects_on_body && !filter_.matches(header, {})) return Status::ok();
  std::string_view body;
  if (filter_.wants_body() || selects_on_body) {
    FJORD_TRY_ASSIGN(body, part(slot, entry, Part::Body));
  }
  if (selects_on_body && !filter_.matches(header, body)) return Status::ok();
  into.add({.gid = entry.gid,
            .timestamp = entry.timestamp(),
            .removed = false,
            .id = {},
            .header = filter_.project(header),
            .body = filter_.wants_body() ? body : std::string_view{}});
  return Status::ok();
}

Result<std::string_view> SlotfileIterator::part(Slot& slot, const MetaEntry& entry, Part part) {
  const std::uint64_t length = stored_bytes(Slot::part_length(entry, part));
  if (length == 0) return std::string_view();
  Side& side = sides_[part == Part::Header ? 0 : 1];
  if (slot.part_offset(entry, Part::Header) >= header_ends_[slot.header().slot]) {
    FJORD_TRY(slot.read_part(entry, part, side.moved));
    return std::string_view(side.moved);
  }
  const std::uint64_t begin = slot.part_offset(entry, part);
  std::uint64_t ahead_end = 0;
  if (!side.window.contains(begin, length)) ahead_end = read_ahead(slot, part, begin, length);
  FJORD_TRY_ASSIGN(const RandomAccessFile* file, slot.file());
  FJORD_TRY_ASSIGN(const std::string_view stored, side.window.read(*file, begin, length, ahead_end));
  FJORD_TRY(slot.verify(entry, part, stored));
  return stored.substr(0, length - kPartChecksumBytes);
}

/// Where the next read from a blob should end. Without a selection the list says what will be asked for. With one,
/// bodies are asked for here and there: it reads on twice as far each time that the last reading on was of use.
std::uint64_t SlotfileIterator::read_ahead(const Slot& slot, Part part, std::uint64_t begin, std::uint64_t length) {
  if (part == Part::Body && filter_.has_selection() && !filter_.selects_on_body()) {
    Side& side = sides_[1];
    const bool goes_on = begin >= side.window.end() && begin - side.window.end() <= kGapBytesMax;
    side.ahead = goes_on ? std::min(side.ahead * 2, ReadWindow::kBytesMax) : kGapBytesMax / 4;
    return std::min(begin + std::max(length, side.ahead), slot.used_end(part));
  }
  std::uint64_t end = begin + length;
  for (std::size_t i = at_ + 1; i < pending_.size() && pending_[i].slot == pending_[at_].slot; ++i) {
    const MetaEntry& entry = slot.index().at(pending_[i].number);
    const std::uint64_t size = stored_bytes(Slot::part_length(entry, part));
    const std::uint64_t offset = slot.part_offset(entry, part);
    if (size == 0) continue;
    if (offset < end || offset - end > kGapBytesMax || offset + size - begin > ReadWindow::kBytesMax) break;
    end = offset + size;
  }
  return end;
}

}  // namespace fjord::slotfile
