#include "catalog.h"

#include <fmt/format.h>
#include <utility>

#include "file_format.h"
#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "fjord/common/log.h"

namespace fjord::slotfile {

namespace {

constexpr std::uint32_t kCatalogMagic = 0x41434a46;  // The bytes "FJCA" as a little-endian number.
constexpr std::size_t kChecksumBytes = sizeof(std::uint64_t);
// Bit in the flags of a bucket: the bucket is damaged.
constexpr std::uint8_t kDamaged = 1;
constexpr std::uint8_t kHasForgotten = 2;

Status malformed() { return Status(StatusCode::Corruption, "a record of the engine's structure is malformed"); }

void put_slot(std::string& out, const SlotRecord& slot) {
  put_fixed<std::uint8_t>(out, slot.first_cell);
  put_fixed<std::uint8_t>(out, slot.depth);
  put_varint(out, slot.info.entries);
  put_varint(out, slot.info.documents);
  put_varint(out, slot.info.bytes);
  put_fixed<std::uint64_t>(out, slot.info.checksum);
  put_varint(out, slot.info.max_timestamp_us);
  put_varint(out, slot.live_bytes);
  put_varint(out, slot.files.size());
  for (const FileShare& file : slot.files) {
    put_varint(out, file.number);
    put_fixed<std::uint64_t>(out, file.bucket.raw());
    put_fixed<std::uint8_t>(out, file.first_cell);
    put_fixed<std::uint8_t>(out, file.end_cell);
  }
}

SlotRecord take_slot(ByteReader& in) {
  SlotRecord slot;
  slot.first_cell = in.fixed<std::uint8_t>();
  slot.depth = in.fixed<std::uint8_t>();
  slot.info.entries = in.varint();
  slot.info.documents = in.varint();
  slot.info.bytes = in.varint();
  slot.info.checksum = in.fixed<std::uint64_t>();
  slot.info.max_timestamp_us = in.varint();
  slot.live_bytes = in.varint();
  const std::uint64_t files = in.varint();
  for (std::uint64_t i = 0; i < files && in.ok(); ++i) {
    FileShare& file = slot.files.emplace_back();
    file.number = static_cast<std::uint32_t>(in.varint());
    file.bucket = BucketId(in.fixed<std::uint64_t>());
    file.first_cell = in.fixed<std::uint8_t>();
    file.end_cell = in.fixed<std::uint8_t>();
  }
  return slot;
}

void put_bucket(std::string& out, const BucketRecord& bucket) {
  put_varint(out, bucket.uid);
  put_fixed<std::uint64_t>(out, bucket.id.raw());
  put_varint(out, bucket.replicas.epoch);
  put_varint(out, bucket.replicas.nodes.size());
  for (const std::uint16_t node : bucket.replicas.nodes) put_fixed<std::uint16_t>(out, node);
  put_varint(out, bucket.forgotten.removes.us);
  const bool has_forgotten = bucket.forgotten.tokens.us != 0 || bucket.forgotten.checksum != 0;
  put_fixed<std::uint8_t>(
      out, static_cast<std::uint8_t>((bucket.damaged ? kDamaged : 0) | (has_forgotten ? kHasForgotten : 0)));
  if (has_forgotten) {
    put_varint(out, bucket.forgotten.tokens.us);
    put_fixed<std::uint64_t>(out, bucket.forgotten.checksum);
  }
  put_varint(out, bucket.slots.size());
  for (const SlotRecord& slot : bucket.slots) put_slot(out, slot);
}

/// Returns true if the slots, in order, together cover all cells.
bool covers_all_cells(const std::vector<SlotRecord>& slots) {
  unsigned next = 0;
  for (const SlotRecord& slot : slots) {
    if (slot.depth > kCellBits || slot.first_cell != next) return false;
    next += kCells >> slot.depth;
  }
  return next == kCells;
}

Result<BucketRecord> take_bucket(ByteReader& in) {
  BucketRecord bucket;
  bucket.uid = in.varint();
  bucket.id = BucketId(in.fixed<std::uint64_t>());
  bucket.replicas.epoch = in.varint();
  const std::uint64_t nodes = in.varint();
  for (std::uint64_t i = 0; i < nodes && in.ok(); ++i) bucket.replicas.nodes.push_back(in.fixed<std::uint16_t>());
  bucket.forgotten.removes.us = in.varint();
  const auto flags = in.fixed<std::uint8_t>();
  if ((flags & ~(kDamaged | kHasForgotten)) != 0) return malformed();
  bucket.damaged = (flags & kDamaged) != 0;
  if ((flags & kHasForgotten) != 0) {
    bucket.forgotten.tokens.us = in.varint();
    bucket.forgotten.checksum = in.fixed<std::uint64_t>();
  }
  const std::uint64_t slots = in.varint();
  for (std::uint64_t i = 0; i < slots && in.ok(); ++i) bucket.slots.push_back(take_slot(in));
  if (!in.ok() || !covers_all_cells(bucket.slots)) return malformed();
  return bucket;
}

}  // namespace

std::string encode_edit(const Edit& edit) {
  std::string out;
  put_varint(out, edit.next_uid);
  put_varint(out, edit.next_file);
  put_varint(out, edit.removed.size());
  for (const std::uint64_t uid : edit.removed) put_varint(out, uid);
  put_varint(out, edit.successors.size());
  for (const Successors& successors : edit.successors) {
    put_varint(out, successors.uid);
    put_varint(out, successors.lsn);
    put_varint(out, successors.buckets.size());
    for (const auto& [uid, id] : successors.buckets) {
      put_varint(out, uid);
      put_fixed<std::uint64_t>(out, id.raw());
    }
  }
  put_varint(out, edit.file_sizes.size());
  for (const auto& [number, size] : edit.file_sizes) {
    put_varint(out, number);
    put_varint(out, size);
  }
  put_varint(out, edit.buckets.size());
  for (const BucketRecord& bucket : edit.buckets) put_bucket(out, bucket);
  return out;
}

Result<Edit> decode_edit(std::string_view bytes) {
  ByteReader in(bytes);
  Edit edit;
  edit.next_uid = in.varint();
  edit.next_file = static_cast<std::uint32_t>(in.varint());
  const std::uint64_t removed = in.varint();
  for (std::uint64_t i = 0; i < removed && in.ok(); ++i) edit.removed.push_back(in.varint());
  const std::uint64_t inherited = in.varint();
  for (std::uint64_t i = 0; i < inherited && in.ok(); ++i) {
    Successors& successors = edit.successors.emplace_back();
    successors.uid = in.varint();
    successors.lsn = in.varint();
    const std::uint64_t heir_count = in.varint();
    for (std::uint64_t j = 0; j < heir_count && in.ok(); ++j) {
      const std::uint64_t uid = in.varint();
      successors.buckets.emplace_back(uid, BucketId(in.fixed<std::uint64_t>()));
    }
  }
  const std::uint64_t files = in.varint();
  for (std::uint64_t i = 0; i < files && in.ok(); ++i) {
    const auto number = static_cast<std::uint32_t>(in.varint());
    edit.file_sizes[number] = in.varint();
  }
  const std::uint64_t buckets = in.varint();
  for (std::uint64_t i = 0; i < buckets && in.ok(); ++i) {
    FJORD_TRY_ASSIGN(BucketRecord bucket, take_bucket(in));
    edit.buckets.push_back(std::move(bucket));
  }
  if (!in.at_end()) return malformed();
  return edit;
}

void Catalog::apply(Edit edit, std::uint64_t edit_lsn) {
  for (const std::uint64_t uid : edit.removed) buckets.erase(uid);
  for (BucketRecord& bucket : edit.buckets) buckets[bucket.uid] = std::move(bucket);
  for (Successors& of : edit.successors) {
    if (of.lsn == 0) of.lsn = edit_lsn;
    successors[of.uid] = std::move(of);
  }
  for (const auto& [number, size] : edit.file_sizes) {
    std::uint64_t& known = file_sizes[number];
    known = std::max(known, size);
  }
  next_uid = std::max(next_uid, edit.next_uid);
  next_file = std::max(next_file, edit.next_file);
}

std::string encode_catalog(const Catalog& catalog, unsigned stripe, unsigned stripes) {
  std::string out;
  put_fixed<std::uint32_t>(out, kCatalogMagic);
  put_fixed<std::uint16_t>(out, kFormatVersion);
  put_fixed<std::uint16_t>(out, kFeatureForgotten);
  put_fixed<std::uint32_t>(out, stripe);
  put_fixed<std::uint32_t>(out, stripes);
  put_fixed<std::uint64_t>(out, catalog.lsn);
  put_fixed<std::uint64_t>(out, catalog.first_segment);
  Edit all{.removed = {},
           .buckets = {},
           .successors = {},
           .file_sizes = catalog.file_sizes,
           .next_uid = catalog.next_uid,
           .next_file = catalog.next_file};
  for (const auto& [uid, bucket] : catalog.buckets) all.buckets.push_back(bucket);
  for (const auto& [uid, successors] : catalog.successors) all.successors.push_back(successors);
  out += encode_edit(all);
  put_fixed<std::uint64_t>(out, hash64(out, kCatalogMagic));
  return out;
}

Result<LoadedCatalog> decode_catalog(std::string_view bytes, unsigned stripe) {
  const auto corrupt = [](std::string what) { return Status(StatusCode::Corruption, std::move(what)); };
  if (bytes.size() < 32 + kChecksumBytes) return corrupt("the catalog is too short");
  ByteReader in(bytes.substr(0, bytes.size() - kChecksumBytes));
  if (in.fixed<std::uint32_t>() != kCatalogMagic) return corrupt("not a catalog: the magic number is wrong");
  const auto version = in.fixed<std::uint16_t>();
  const auto features = in.fixed<std::uint16_t>();
  if (load_fixed<std::uint64_t>(bytes.data() + bytes.size() - kChecksumBytes) !=
      hash64(bytes.substr(0, bytes.size() - kChecksumBytes), kCatalogMagic)) {
    return corrupt("the checksum of the catalog is wrong");
  }
  if (version != kFormatVersion || (features & ~kFeatureForgotten) != 0) {
    return Status(StatusCode::NotImplemented, fmt::format("catalog of format version {} with features {:#x}; this "
                                                          "program knows version {} with features {:#x}",
                                                          version, features, kFormatVersion, kFeatureForgotten));
  }
  if (in.fixed<std::uint32_t>() != stripe) return corrupt("the catalog is that of another stripe");
  LoadedCatalog loaded;
  loaded.found = true;
  loaded.features = features;
  loaded.stripes = in.fixed<std::uint32_t>();
  loaded.catalog.lsn = in.fixed<std::uint64_t>();
  loaded.catalog.first_segment = in.fixed<std::uint64_t>();
  FJORD_TRY_ASSIGN(Edit all, decode_edit(in.rest()));
  loaded.catalog.apply(std::move(all), loaded.catalog.lsn);
  return loaded;
}

Result<LoadedCatalog> load_catalog(EngineContext& context) {
  LoadedCatalog best;
  Status trouble;
  for (const unsigned copy : {0U, 1U}) {
    const std::string path = context.path(catalog_name(context.options.stripe, copy));
    const Result<std::string> bytes = read_file(context.env, path);
    if (!bytes && bytes.error().code() == StatusCode::NotFound) continue;
    if (!bytes) return bytes.error();
    Result<LoadedCatalog> loaded = decode_catalog(*bytes, context.options.stripe);
    if (!loaded) {
      if (loaded.error().code() == StatusCode::NotImplemented) return loaded.error().with_context(path);
      trouble = loaded.error().with_context(path);
      log::error("slotfile", "{}", trouble.to_string());
      continue;
    }
    if (!best.found || loaded->catalog.lsn > best.catalog.lsn) best = std::move(*loaded);
  }
  if (!best.found && !trouble) return trouble;
  best.damaged_copy = !trouble;
  return best;
}

Status save_catalog(Env& env, const std::string& directory, unsigned stripe, const std::string& encoded) {
  for (const unsigned copy : {0U, 1U}) {
    FJORD_TRY(write_file_atomically(env, directory + "/" + catalog_name(stripe, copy), encoded, true));
  }
  return Status::ok();
}

}  // namespace fjord::slotfile
