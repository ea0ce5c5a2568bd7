#include <algorithm>
#include <map>
#include <utility>

#include "bucket.h"
#include "fjord/common/log.h"
#include "metadata_list.h"

namespace fjord::slotfile {

namespace {

struct Found {
  std::uint64_t slotfiles = 0;
  std::uint64_t entries = 0;
  /// Slotfiles of each generation with a readable header, and the k of each.
  std::map<std::uint32_t, std::pair<unsigned, std::uint64_t>> generations;
};

/// Looks at all slotfiles in a folder whose manifest does not say which of them count.
Result<Found> survey(Env& env, const std::string& directory, BucketId id, std::span<const std::string> names) {
  Found found;
  for (const std::string& name : names) {
    const std::optional<SlotfileName> parsed = parse_slotfile_name(name);
    if (!parsed) continue;
    ++found.slotfiles;
    const std::string path = directory + "/" + name;
    FJORD_TRY_ASSIGN(auto file, env.open_random_access(path));
    const Result<FileHeader> header = read_file_header(*file, path);
    if (!header) {
      if (header.error().code() == StatusCode::Corruption) continue;
      return header.error();
    }
    if (header->bucket != id || header->generation != parsed->generation || header->slot != parsed->slot) continue;
    auto& [slot_bits, count] = found.generations[parsed->generation];
    slot_bits = header->slot_bits;
    ++count;
    FJORD_TRY_ASSIGN(const MetadataList list, MetadataList::read(*file, *header));
    found.entries += list.valid().size();
  }
  return found;
}

/// The newest generation that is complete; what a split has written is complete before the old one goes.
Result<Manifest> rebuild_manifest(const Found& found, const std::string& directory, BucketId id) {
  for (auto at = found.generations.rbegin(); at != found.generations.rend(); ++at) {
    const auto [slot_bits, count] = at->second;
    if (count != 1ULL << slot_bits) continue;
    return Manifest{
        .bucket = id, .generation = at->first, .slot_bits = static_cast<std::uint8_t>(slot_bits), .replicas = {}};
  }
  return Status(StatusCode::Corruption, directory + ": neither a manifest nor a complete set of slotfiles");
}

}  // namespace

Result<std::unique_ptr<Bucket>> Bucket::open(EngineContext& context, const std::string& directory, BucketId id,
                                             std::uint64_t incarnation) {
  FJORD_TRY_ASSIGN(const std::vector<std::string> names, context.env.list_directory(directory));
  const bool has_manifest = std::find(names.begin(), names.end(), kManifestName) != names.end();
  Result<Manifest> manifest = Status(StatusCode::NotFound, directory + ": no manifest");
  if (has_manifest) {
    FJORD_TRY_ASSIGN(const std::string bytes, read_file(context.env, directory + "/" + std::string(kManifestName)));
    manifest = decode_manifest(bytes);
    if (manifest && manifest->bucket != id) {
      manifest = Status(StatusCode::Corruption, "the manifest is that of another bucket");
    }
    if (!manifest && manifest.error().code() == StatusCode::NotImplemented) {
      return manifest.error().with_context(directory);
    }
  }
  const bool rebuilt = !manifest;
  if (rebuilt) {
    FJORD_TRY_ASSIGN(const Found found, survey(context.env, directory, id, names));
    // Made without getting as far as the manifest: create() had not returned.
    if (!has_manifest && found.entries == 0) return std::unique_ptr<Bucket>();
    log::error("slotfile", "{}: {}; made again from {} slotfiles", directory, manifest.error().message(),
               found.slotfiles);
    manifest = rebuild_manifest(found, directory, id);
    if (!manifest) return manifest.error();
    ++context.stats.rebuilt_manifests;
  }
  std::unique_ptr<Bucket> bucket(new Bucket(context, directory, std::move(*manifest), incarnation));
  if (rebuilt) FJORD_TRY(bucket->save_manifest(bucket->manifest_));
  FJORD_TRY(bucket->remove_leftovers(names));
  FJORD_TRY(bucket->load_slots());
  return bucket;
}

Status Bucket::remove_leftovers(std::span<const std::string> names) {
  for (const std::string& name : names) {
    const std::optional<SlotfileName> slotfile = parse_slotfile_name(name);
    const bool other_generation =
        slotfile && (slotfile->generation != manifest_.generation || slotfile->slot >= (1U << manifest_.slot_bits));
    if (!other_generation && !name.ends_with(kTemporarySuffix)) continue;
    // Nothing is lost if it stays: it is only removed to give its space back.
    if (context_.env.remove_file(directory_ + "/" + name)) ++context_.stats.leftovers_removed;
  }
  return Status::ok();
}

Status Bucket::load_slots() {
  for (std::uint32_t slot = 0; slot < (1U << manifest_.slot_bits); ++slot) {
    const std::string path = slot_path(manifest_.generation, slot);
    Result<std::unique_ptr<Slot>> loaded = Slot::load(context_, path, empty_header(slot));
    if (!loaded) {
      const StatusCode code = loaded.error().code();
      if (code != StatusCode::Corruption && code != StatusCode::NotFound) return loaded.error();
      log::error("slotfile", "{}", loaded.error().to_string());
      ++context_.stats.bad_slotfiles;
      if (code == StatusCode::Corruption) FJORD_TRY(context_.env.rename(path, path + std::string(kBadSuffix)));
      loaded = make_empty_slot(slot);
      if (!loaded) return loaded.error();
    }
    for (const MetaEntry& entry : (*loaded)->index().entries()) {
      ++info_.entries;
      if (!entry.removed()) ++info_.documents;
      info_.bytes += entry.document_bytes();
      info_.checksum += spi::entry_hash(entry.gid, entry.timestamp(), entry.removed());
      info_.max_timestamp_us = std::max(info_.max_timestamp_us, entry.timestamp_us);
    }
    slots_.push_back(std::move(*loaded));
  }
  return Status::ok();
}

}  // namespace fjord::slotfile
