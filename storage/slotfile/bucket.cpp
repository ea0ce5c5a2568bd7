#include "bucket.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "fjord/common/log.h"

namespace fjord::slotfile {

namespace {

/// Bounds the memory of a run of writes, and how much a slotfile can overshoot before it is split.
constexpr std::uint64_t kRunBytesMax = 4 << 20;

/// Files below it are enlarged in longer steps: a rewrite costs more than the space.
constexpr std::uint64_t kSmallFileBytes = 256 << 10;

bool too_large(const spi::Write& write) {
  return write.header.size() > spi::kPartBytesMax || write.body.size() > spi::kPartBytesMax ||
         write.id.size() > spi::kPartBytesMax;
}

std::uint64_t part_of(std::uint64_t whole, std::uint64_t numerator, std::uint64_t denominator) {
  return denominator == 0 ? 0 : whole * numerator / denominator;
}

}  // namespace

std::string Bucket::slot_path(std::uint32_t generation, std::uint32_t slot) const {
  return directory_ + "/" + slotfile_name(generation, slot);
}

FileHeader Bucket::empty_header(std::uint32_t slot) const {
  return {.bucket = id(),
          .generation = manifest_.generation,
          .slot = static_cast<std::uint16_t>(slot),
          .slot_bits = manifest_.slot_bits};
}

Status Bucket::save_manifest(const Manifest& manifest) {
  FJORD_TRY(health_);
  const Status status = write_file_atomically(context_.env, directory_ + "/" + std::string(kManifestName),
                                              encode_manifest(manifest), context_.sync());
  // A sync that failed after the rename leaves open which manifest a restart will see.
  if (!status && context_.sync()) health_ = status.with_context("closed until the next start");
  return status;
}

Result<std::unique_ptr<Slot>> Bucket::make_empty_slot(std::uint32_t slot) {
  const FileHeader header = empty_header(slot);
  std::vector<MetaEntry> none;
  const std::string path = slot_path(manifest_.generation, slot);
  FJORD_TRY(write_slotfile(context_, path, header, nullptr, none));
  return std::make_unique<Slot>(context_, path, header, none);
}

Result<std::unique_ptr<Bucket>> Bucket::create(EngineContext& context, const std::string& directory, BucketId id,
                                               std::uint64_t incarnation) {
  FJORD_TRY(context.env.create_directories(directory));
  if (context.sync()) FJORD_TRY(context.env.sync_directory(context.options.directory));
  std::unique_ptr<Bucket> bucket(new Bucket(context, directory, Manifest{.bucket = id, .replicas = {}}, incarnation));
  FJORD_TRY_ASSIGN(auto slot, bucket->make_empty_slot(0));
  bucket->slots_.push_back(std::move(slot));
  FJORD_TRY(bucket->save_manifest(bucket->manifest_));  // last: a folder without it was never acknowledged
  return bucket;
}

Status Bucket::set_replicas(const ReplicaSet& replicas) {
  Manifest next = manifest_;
  next.replicas = replicas;
  FJORD_TRY(save_manifest(next));
  manifest_ = std::move(next);
  return Status::ok();
}

void Bucket::apply(std::span<const spi::Write> writes, std::span<spi::WriteResult> results) {
  std::vector<std::uint32_t>& pending = context_.scratch.pending;
  pending.clear();
  for (std::uint32_t i = 0; i < writes.size(); ++i) {
    if (!health_.is_ok()) {
      results[i] = {.status = health_};
    } else if (too_large(writes[i])) {
      results[i] = {.status = Status(StatusCode::TooLarge, "a document part may have 64 MiB at most")};
    } else {
      pending.push_back(i);
    }
  }
  while (!pending.empty()) {
    const std::uint32_t slot = take_group(writes);
    apply_group(slot, writes, results);
  }
}

std::uint32_t Bucket::take_group(std::span<const spi::Write> writes) {
  WriteScratch& scratch = context_.scratch;
  const std::uint32_t slot = slot_of(writes[scratch.pending.front()].gid, manifest_.slot_bits);
  scratch.group.clear();
  scratch.rest.clear();
  std::uint64_t bytes = 0;
  for (const std::uint32_t i : scratch.pending) {
    // Once one is left for later, all that follow for this slot are: they are applied in order.
    const bool full = bytes > kRunBytesMax;
    if (full || slot_of(writes[i].gid, manifest_.slot_bits) != slot) {
      scratch.rest.push_back(i);
      continue;
    }
    scratch.group.push_back(i);
    bytes += writes[i].header.size() + writes[i].body.size() + writes[i].id.size();
  }
  std::swap(scratch.pending, scratch.rest);
  return slot;
}

void Bucket::apply_group(std::uint32_t slot, std::span<const spi::Write> writes, std::span<spi::WriteResult> results) {
  WriteScratch& scratch = context_.scratch;
  Slot& target = *slots_[slot];
  Room need;
  for (const std::uint32_t i : scratch.group) need += Room::of(writes[i]);
  // The exact room needs a lookup for each write; only where the upper bound does not do.
  if (!target.fits(need)) need = target.room_for(writes, scratch.group);
  if (target.fits(need)) {
    const Status status = target.append(writes, scratch.group, results, info_);
    if (target.sync_failed()) health_ = status.with_context("closed until the next start");
    return;
  }
  if (const Status status = make_room(slot, need, scratch.group.size() == 1); !status) {
    ++context_.stats.failed_writes;
    for (const std::uint32_t i : scratch.group) results[i] = {.status = status};
    return;
  }
  scratch.group.insert(scratch.group.end(), scratch.pending.begin(), scratch.pending.end());
  std::swap(scratch.group, scratch.pending);
}

Status Bucket::make_room(std::uint32_t slot, const Room& need, bool one_document) {
  Slot& target = *slots_[slot];
  if (should_split(target, need, one_document)) return split();
  const Room want = target.live() + need;
  const Room capacity = capacity_for(want);
  if (want.header_bytes > kRegionBytesMax || want.body_bytes > kRegionBytesMax || want.entries > kRegionBytesMax) {
    return Status(StatusCode::NoSpace,
                  fmt::format("{} holds as much as its slotfiles can; it has to be split", id().to_string()));
  }
  const Status status = target.rewrite(capacity);
  if (target.sync_failed()) health_ = status.with_context("closed until the next start");
  return status;
}

/// A slotfile that would be more than three quarters full is split, so that each rewrite gives a good part of the file
/// for new documents. Documents that would not fit beside others anyway do not count: splitting does not help them.
bool Bucket::should_split(const Slot& slot, const Room& need, bool one_document) const {
  const SlotfileOptions& options = context_.options;
  if ((2U << manifest_.slot_bits) > options.slotfiles_max) return false;
  const std::uint64_t bytes_limit = options.file_bytes_max / 4 * 3;
  Room want = slot.live();
  for (const MetaEntry& entry : slot.index().entries()) {
    const Room room = Room::of(entry);
    if (room.file_bytes() > bytes_limit) want -= room;
  }
  const bool need_is_large = one_document && need.file_bytes() > bytes_limit;
  if (!need_is_large) want += need;
  if (want.entries < 2) return false;
  return want.file_bytes() > bytes_limit || want.entries > std::uint64_t{options.entries_max} / 4 * 3;
}

/// Four times what is wanted while that is little, then twice, but not more than the limits while they can be kept.
/// What is to spare goes to the three regions as they were used so far.
Room Bucket::capacity_for(const Room& want) const {
  const SlotfileOptions& options = context_.options;
  const std::uint64_t base = want.file_bytes();
  const std::uint64_t factor = base < kSmallFileBytes ? 4 : 2;
  std::uint64_t target = std::max(options.file_bytes_initial, base * factor);
  if (target > options.file_bytes_max) target = std::max(options.file_bytes_max, base + base / 3);
  const std::uint64_t spare = target - base;

  // A region that is hardly used gets a little as well, or the first documents to need it would each cost a rewrite.
  const std::uint64_t least = base / 16;
  const std::uint64_t entry_weight = want.entries * kEntryBytes + least / 4;
  const std::uint64_t header_weight = want.header_bytes + least;
  const std::uint64_t body_weight = want.body_bytes + least;
  const std::uint64_t sum = entry_weight + header_weight + body_weight;
  Room capacity = want;
  capacity.entries += part_of(spare, entry_weight, sum) / kEntryBytes;
  capacity.entries = std::max<std::uint64_t>(capacity.entries, options.entries_initial);
  const std::uint64_t entries_bound = std::max<std::uint64_t>(options.entries_max, want.entries + want.entries / 3);
  capacity.entries = std::clamp<std::uint64_t>(capacity.entries, want.entries, entries_bound);
  capacity.header_bytes = std::min(kRegionBytesMax, capacity.header_bytes + part_of(spare, header_weight, sum));
  capacity.body_bytes = std::min(kRegionBytesMax, capacity.body_bytes + part_of(spare, body_weight, sum));
  return capacity;
}

Result<std::unique_ptr<Slot>> Bucket::write_half(Slot& source, const Manifest& next, std::uint32_t slot) {
  std::vector<MetaEntry> entries;
  Room live;
  for (const MetaEntry& entry : source.index().entries()) {
    if (slot_of(entry.gid, next.slot_bits) != slot) continue;
    entries.push_back(entry);
    live += Room::of(entry);
  }
  const Room capacity = entries.empty() ? Room{} : capacity_for(live);
  const FileHeader header{.bucket = id(),
                          .generation = next.generation,
                          .slot = static_cast<std::uint16_t>(slot),
                          .slot_bits = next.slot_bits,
                          .entry_capacity = static_cast<std::uint32_t>(capacity.entries),
                          .header_capacity = capacity.header_bytes,
                          .body_capacity = capacity.body_bytes};
  const std::string path = slot_path(next.generation, slot);
  FJORD_TRY(write_slotfile(context_, path, header, &source, entries));
  return std::make_unique<Slot>(context_, path, header, entries);
}

/// All slotfiles in two: the new ones are written beside the old, then the manifest is switched over.
Status Bucket::split() {
  Manifest next = manifest_;
  ++next.generation;
  ++next.slot_bits;
  const std::uint32_t count = 1U << next.slot_bits;
  std::vector<std::unique_ptr<Slot>> slots;
  Status status;
  for (std::uint32_t slot = 0; slot < count && status; ++slot) {
    auto half = write_half(*slots_[slot & (count / 2 - 1)], next, slot);
    status = half.status();
    if (half) slots.push_back(std::move(*half));
  }
  if (status && context_.sync()) status = context_.env.sync_directory(directory_);
  if (status) status = save_manifest(next);
  if (!status) {
    slots.clear();
    if (health_.is_ok()) remove_generation(next.generation, next.slot_bits);
    return status;
  }
  const Manifest old = std::exchange(manifest_, std::move(next));
  slots_ = std::move(slots);
  remove_generation(old.generation, old.slot_bits);
  ++context_.stats.splits;
  return Status::ok();
}

void Bucket::remove_generation(std::uint32_t generation, unsigned slot_bits) {
  for (std::uint32_t slot = 0; slot < (1U << slot_bits); ++slot) {
    // What cannot be removed now is removed at the next start.
    static_cast<void>(context_.env.remove_file(slot_path(generation, slot)));
  }
}

}  // namespace fjord::slotfile
