#include "import_v1.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine.h"
#include "fjord/common/log.h"
#include "format_v1.h"

namespace fjord::slotfile {

namespace {

constexpr std::string_view kImportedSuffix = ".imported";
constexpr std::string_view kDamagedSuffix = ".damaged";
/// Version 1 gave this suffix to the folder of a deleted bucket.
constexpr std::string_view kDeletedSuffix = ".deleted";
constexpr std::size_t kBatchBytes = 1 << 20;
constexpr std::size_t kBatchWrites = 1024;
/// Bytes imported between two checkpoints, each of which writes the whole catalog.
constexpr std::uint64_t kBytesPerCheckpoint = 256 << 20;

/// Imports one bucket from its old folder into the engine.
class BucketImport {
 public:
  BucketImport(Engine& engine, BucketId id, std::string directory)
      : engine_(engine), env_(engine.import_parts().table.context().env), id_(id), directory_(std::move(directory)) {}

  Status run() {
    FJORD_TRY_ASSIGN(const std::vector<std::string> names, env_.list_directory(directory_));
    FJORD_TRY(read_manifest(names));
    for (unsigned slot = 0; found_ && slot < (1U << manifest_.slot_bits); ++slot) FJORD_TRY(import_slotfile(slot));
    FJORD_TRY(write_batch());
    // Without a manifest and entries, the bucket was just being created when the process ended, and this was not
    // acknowledged.
    if (!has_manifest_ && bytes_ == 0 && damage_ == 0) return Status::ok();
    FJORD_TRY(engine_.create_bucket(id_));
    if (damage_ != 0) {
      mark_damaged();
    } else {
      // Only the import has written to this bucket, so it has now restored everything that a loss of power during an
      // earlier import took from the journal.
      FJORD_TRY(engine_.import_parts().repair.renew_now(id_));
      FJORD_TRY(engine_.mark_repaired(id_));
    }
    return engine_.set_replica_set(id_, manifest_.replicas);
  }

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t damage() const { return damage_; }

 private:
  struct Pending {
    v1::Entry entry;
    std::string header;
    std::string body;
  };

  /// Logs damage and adds one to `count`, one of the engine's statistics.
  void note(std::uint64_t& count, const std::string& what) {
    ++count;
    ++damage_;
    log::error("slotfile", "import of {}: {}", directory_, what);
  }

  Status read_manifest(const std::vector<std::string>& names) {
    has_manifest_ = std::find(names.begin(), names.end(), v1::kManifestName) != names.end();
    Result<v1::Manifest> manifest = Status(StatusCode::NotFound, "no manifest");
    if (has_manifest_) {
      FJORD_TRY_ASSIGN(const std::string bytes, read_file(env_, directory_ + "/" + std::string(v1::kManifestName)));
      manifest = v1::decode_manifest(bytes);
      if (!manifest && manifest.error().code() == StatusCode::NotImplemented) {
        return manifest.error().with_context(directory_);
      }
      if (manifest && manifest->bucket == id_) {
        manifest_ = std::move(*manifest);
        found_ = true;
        return Status::ok();
      }
      note(engine_.import_parts().table.context().stats.bad_entries,
           manifest ? "the manifest is that of another bucket" : manifest.error().message());
    }
    return find_generation(names);
  }

  /// Finds, if there is no manifest, the newest generation of which all slotfiles exist.
  Status find_generation(const std::vector<std::string>& names) {
    // By generation: number of slot bits, and number of slotfiles found.
    std::map<std::uint32_t, std::pair<unsigned, unsigned>> generations;
    for (const std::string& name : names) {
      const std::optional<v1::SlotfileName> parsed = v1::parse_slotfile_name(name);
      if (!parsed) continue;
      FJORD_TRY_ASSIGN(const auto file, env_.open_random_access(directory_ + "/" + name));
      const Result<v1::FileHeader> header = v1::read_header(*file);
      if (!header && header.error().code() != StatusCode::Corruption) return header.error().with_context(directory_);
      if (!header || header->bucket != id_ || header->generation != parsed->generation) continue;
      auto& [slot_bits, count] = generations[parsed->generation];
      slot_bits = header->slot_bits;
      ++count;
    }
    for (const auto& [generation, of] : generations) {
      if (of.second != 1U << of.first) continue;
      manifest_ = {.bucket = id_, .generation = generation, .slot_bits = of.first, .replicas = {}};
      found_ = true;
    }
    return Status::ok();
  }

  Status import_slotfile(unsigned slot) {
    SlotfileStats& stats = engine_.import_parts().table.context().stats;
    const std::string name = v1::slotfile_name({.generation = manifest_.generation, .slot = slot});
    const auto file = env_.open_random_access(directory_ + "/" + name);
    if (!file && file.error().code() != StatusCode::NotFound) return file.error();
    if (!file) {
      note(stats.bad_slotfiles, name + " is missing");
      return Status::ok();
    }
    const Result<v1::FileHeader> header = v1::read_header(**file);
    if (!header && header.error().code() != StatusCode::Corruption) return header.error().with_context(directory_);
    const bool right = header && header->bucket == id_ && header->slot == slot &&
                       header->slot_bits == manifest_.slot_bits && header->generation == manifest_.generation;
    if (!right) {
      note(stats.bad_slotfiles,
           name + ": " + (header ? "the header is that of another slotfile" : header.error().message()));
      return Status::ok();
    }
    FJORD_TRY_ASSIGN(const v1::EntryList list, v1::read_entries(**file, *header));
    for (std::uint64_t i = 0; i < list.lost; ++i) note(stats.bad_entries, name + ": an entry cannot be read");
    for (const v1::Entry& entry : list.newest) FJORD_TRY(import_entry(**file, *header, entry));
    return Status::ok();
  }

  Status import_entry(const RandomAccessFile& file, const v1::FileHeader& header, const v1::Entry& entry) {
    SlotfileStats& stats = engine_.import_parts().table.context().stats;
    if (bucket_of(entry.gid, id_.used_bits()) != id_) {
      note(stats.bad_entries, entry.gid.to_string() + " does not belong to the bucket");
      return Status::ok();
    }
    Result<std::string> parts[2] = {v1::read_part(file, header, entry, v1::Part::Header),
                                    v1::read_part(file, header, entry, v1::Part::Body)};
    for (const Result<std::string>& part : parts) {
      if (part) continue;
      if (part.error().code() != StatusCode::Corruption) return part.error();
      note(stats.corrupt_reads, entry.gid.to_string() + ": " + part.error().message());
      return Status::ok();
    }
    pending_bytes_ += parts[0]->size() + parts[1]->size();
    pending_.push_back({.entry = entry, .header = std::move(*parts[0]), .body = std::move(*parts[1])});
    return pending_bytes_ < kBatchBytes && pending_.size() < kBatchWrites ? Status::ok() : write_batch();
  }

  Status write_batch() {
    if (pending_.empty()) return Status::ok();
    FJORD_TRY(engine_.create_bucket(id_));
    std::vector<spi::Write> writes;
    for (const Pending& pending : pending_) {
      const v1::Entry& entry = pending.entry;
      spi::Write& write = writes.emplace_back();
      write.bucket = id_;
      write.gid = entry.gid;
      write.timestamp = Timestamp{entry.timestamp_us};
      write.remove = entry.removed;
      (entry.removed ? write.id : write.header) = pending.header;
      write.body = pending.body;
    }
    std::vector<spi::WriteResult> results(writes.size());
    engine_.apply(writes, results, spi::Durability::Process);
    for (const spi::WriteResult& result : results) FJORD_TRY(result.status);
    bytes_ += pending_bytes_ + pending_.size() * kEntryBytes;
    pending_bytes_ = 0;
    pending_.clear();
    return Status::ok();
  }

  void mark_damaged() {
    Bucket& bucket = *engine_.import_parts().table.find(id_);
    engine_.import_parts().table.set_damaged(
        bucket);  // Becomes durable together with the replica set, which is stored next.
    for (const auto& slot : bucket.slots) slot->set_lost_entries();
    engine_.import_parts().table.note_damage(bucket);
  }

  Engine& engine_;
  Env& env_;
  const BucketId id_;
  const std::string directory_;
  bool has_manifest_ = false;
  bool found_ = false;  ///< True if a generation was found whose slotfiles can be read.
  v1::Manifest manifest_;
  std::vector<Pending> pending_;
  std::uint64_t pending_bytes_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t damage_ = 0;
};

class Import {
 public:
  explicit Import(Engine& engine) : engine_(engine), context_(engine.import_parts().table.context()) {}

  Status run() {
    FJORD_TRY_ASSIGN(const std::vector<std::string> names, context_.env.list_directory(context_.options.directory));
    for (const std::string& name : names) {
      const std::optional<BucketId> bucket = v1::parse_bucket_name(std::string_view(name).substr(0, 16));
      if (!bucket || (bucket->raw() & (context_.options.stripes - 1)) != context_.options.stripe) continue;
      const std::string_view suffix = std::string_view(name).substr(16);
      if (suffix == kImportedSuffix || suffix == kDeletedSuffix) {
        FJORD_TRY(context_.env.remove_all(context_.path(name)));
        ++context_.stats.leftovers_removed;
      } else if (suffix.empty()) {
        BucketImport import(engine_, *bucket, context_.path(name));
        FJORD_TRY(import.run());
        bytes_ += import.bytes();
        done_.emplace_back(name, import.damage() == 0 ? kImportedSuffix : kDamagedSuffix);
        if (bytes_ > kBytesPerCheckpoint) FJORD_TRY(finish_some());
      }
    }
    return finish_some();
  }

 private:
  /// Renames and removes old folders whose content is durable. Syncs the renaming before writes are possible: if an old
  /// folder came back after a loss of power, it would bring back documents that were deleted since.
  Status finish_some() {
    if (done_.empty()) return Status::ok();
    FJORD_TRY(engine_.checkpoint());
    for (const auto& [name, suffix] : done_) {
      FJORD_TRY(context_.env.rename(context_.path(name), context_.path(name + std::string(suffix))));
    }
    FJORD_TRY(context_.env.sync_directory(context_.options.directory));
    for (const auto& [name, suffix] : done_) {
      if (suffix == kImportedSuffix) FJORD_TRY(context_.env.remove_all(context_.path(name + std::string(suffix))));
    }
    log::info("slotfile", "{}: imported {} buckets of format version 1", context_.options.directory, done_.size());
    done_.clear();
    bytes_ = 0;
    return Status::ok();
  }

  Engine& engine_;
  EngineContext& context_;
  /// Old folders that are no longer needed, each with the suffix that it gets.
  std::vector<std::pair<std::string, std::string_view>> done_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Status import_version_1(Engine& engine) { return Import(engine).run(); }

}  // namespace fjord::slotfile
