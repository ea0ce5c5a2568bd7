#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "slot.h"

namespace fjord::slotfile {

/// A bucket's folder: its manifest and its 2^k slotfiles.
///
/// Threading: confined to the engine. Lifetime: the context outlives it.
class Bucket {
 public:
  /// Makes the folder of an empty bucket. Errors: NoSpace, IoError.
  static Result<std::unique_ptr<Bucket>> create(EngineContext& context, const std::string& directory, BucketId id,
                                                std::uint64_t incarnation);
  /// Opens an existing folder, removes what an interrupted change left in it and goes round damage (see
  /// SlotfileStats). Null if nothing in it was ever acknowledged; the folder may be removed then.
  /// Errors: Corruption if nothing can be made of the folder; NotImplemented for a newer format; IoError.
  static Result<std::unique_ptr<Bucket>> open(EngineContext& context, const std::string& directory, BucketId id,
                                              std::uint64_t incarnation);

  BucketId id() const { return manifest_.bucket; }
  /// Differs between two buckets of the same id, one of which was deleted.
  std::uint64_t incarnation() const { return incarnation_; }
  /// Rises when the slots are others than before.
  std::uint32_t generation() const { return manifest_.generation; }
  unsigned slot_bits() const { return manifest_.slot_bits; }
  const BucketInfo& info() const { return info_; }
  const ReplicaSet& replicas() const { return manifest_.replicas; }
  Status set_replicas(const ReplicaSet& replicas);

  void apply(std::span<const spi::Write> writes, std::span<spi::WriteResult> results);

  std::span<const std::unique_ptr<Slot>> slots() const { return slots_; }
  Slot& slot_for(const GlobalId& gid) { return *slots_[slot_of(gid, manifest_.slot_bits)]; }
  /// OK unless a sync failed; then the files are not touched until they are opened again.
  const Status& health() const { return health_; }

 private:
  Bucket(EngineContext& context, std::string directory, Manifest manifest, std::uint64_t incarnation)
      : context_(context),
        directory_(std::move(directory)),
        manifest_(std::move(manifest)),
        incarnation_(incarnation) {}

  std::string slot_path(std::uint32_t generation, std::uint32_t slot) const;
  FileHeader empty_header(std::uint32_t slot) const;
  Status save_manifest(const Manifest& manifest);
  Status remove_leftovers(std::span<const std::string> names);
  Status load_slots();
  Result<std::unique_ptr<Slot>> make_empty_slot(std::uint32_t slot);

  /// Moves the next writes for one slot, at most kRunBytesMax of them, from scratch.pending to scratch.group.
  std::uint32_t take_group(std::span<const spi::Write> writes);
  /// Writes scratch.group, or makes room for it and puts it back.
  void apply_group(std::uint32_t slot, std::span<const spi::Write> writes, std::span<spi::WriteResult> results);
  Status make_room(std::uint32_t slot, const Room& need, bool one_document);
  bool should_split(const Slot& slot, const Room& need, bool one_document) const;
  Room capacity_for(const Room& want) const;
  Status split();
  Result<std::unique_ptr<Slot>> write_half(Slot& source, const Manifest& next, std::uint32_t slot);
  void remove_generation(std::uint32_t generation, unsigned slot_bits);

  EngineContext& context_;
  const std::string directory_;
  Manifest manifest_;
  const std::uint64_t incarnation_;
  std::vector<std::unique_ptr<Slot>> slots_;
  BucketInfo info_;
  Status health_;
};

}  // namespace fjord::slotfile
