#include "recovery.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

namespace fjord::slotfile {

namespace {

std::string parent_of(const std::string& directory) {
  const std::size_t slash = directory.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : directory.substr(0, slash);
}

}  // namespace

Status Recovery::run() {
  FJORD_TRY(context_.env.create_directories(context_.options.directory));
  FJORD_TRY_ASSIGN(LoadedCatalog loaded, load_catalog(context_));
  if (loaded.found && loaded.stripes != context_.options.stripes) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("{} was made with {} stripes and cannot be opened with {}", context_.options.directory,
                              loaded.stripes, context_.options.stripes));
  }
  if (loaded.damaged_copy) ++context_.stats.damaged_catalogs;
  if (!loaded.found) {
    loaded.catalog.next_file = 0;
    FJORD_TRY(context_.env.sync_directory(parent_of(context_.options.directory)));
  }
  // Replays in two passes: first the edits, which determine the buckets and slots; then the writes, which find their
  // places in them.
  FJORD_TRY(replay_edits(loaded));
  FJORD_TRY(build(loaded.catalog));
  FJORD_TRY(replay_writes(loaded.catalog.first_segment));
  FJORD_TRY(journal_.rewrite_replayed());
  const Status started = journal_.start(std::max(journal_.last_lsn(), loaded.catalog.lsn) + 1);
  // A store on a full disk can still be read. The journal then begins with the first record for which there is space.
  if (!started && (started.code() != StatusCode::NoSpace || !loaded.found)) return started;
  // Data that is read from now on must survive a loss of power, so the replayed records are synced.
  if (context_.options.syncs_changes()) FJORD_TRY(journal_.sync());
  FJORD_TRY(remove_leftovers());
  // Writes a first catalog. In a new store it records the number of stripes. In a store of an earlier version, it keeps
  // earlier programs from opening the store.
  if (!loaded.found) FJORD_TRY(checkpointer_.run());
  if (loaded.found && loaded.features != kFeatureForgotten) {
    const Status saved = checkpointer_.run();
    if (!saved && saved.code() != StatusCode::NoSpace) return saved;
  }
  return Status::ok();
}

Status Recovery::replay_edits(LoadedCatalog& loaded) {
  const std::uint64_t known = loaded.catalog.lsn;
  const auto visit = [&](const Journal::Record& record) -> Status {
    // Decodes the writes in this pass, which distinguishes lost records from records that were never finished.
    if (record.type == RecordType::Writes) {
      FJORD_TRY_ASSIGN(const std::vector<JournalWrite> writes, decode_writes(record.meta, record.parts));
      for (const JournalWrite& write : writes) {
        // The edit that created the bucket may be lost. No other bucket may get this uid while this record exists.
        loaded.catalog.next_uid = std::max(loaded.catalog.next_uid, write.uid + 1);
      }
      return Status::ok();
    }
    if (record.lsn <= known) return Status::ok();
    FJORD_TRY_ASSIGN(Edit edit, decode_edit(record.meta));
    loaded.catalog.apply(std::move(edit), record.lsn);
    return Status::ok();
  };
  FJORD_TRY_ASSIGN(const Journal::ReplayResult result, journal_.replay(loaded.catalog.first_segment, visit));
  context_.stats.replayed_bytes = result.bytes;
  context_.stats.replayed_records = result.records;
  context_.stats.lost_records = result.lost_records;
  loaded.catalog.lsn = std::max(known, result.last_lsn);
  return Status::ok();
}

Status Recovery::build(const Catalog& catalog) {
  table_.restore(catalog);
  std::map<std::uint32_t, std::shared_ptr<SlotFile>> files;
  for (const auto& [uid, record] : catalog.buckets) {
    auto bucket = std::make_unique<Bucket>();
    bucket->id = record.id;
    bucket->uid = uid;
    bucket->replicas = record.replicas;
    bucket->forgotten = record.forgotten;
    bucket->damaged = record.damaged || context_.stats.lost_records != 0;
    bucket->damage_saved = record.damaged;
    for (const SlotRecord& slot_record : record.slots) {
      auto slot =
          std::make_unique<Slot>(context_, table_.loaded(), record.id, slot_record.first_cell, slot_record.depth);
      slot->set_info(slot_record.info, slot_record.live_bytes);
      slot->set_forgotten(record.forgotten);
      slot->adopting_info = true;
      // It is not known whether the files were rewritten before the last process ended. A loss in the journal says
      // nothing about them.
      if (record.damaged) slot->set_suspect();
      for (const FileShare& share : slot_record.files) {
        const std::uint32_t number = share.number;
        std::shared_ptr<SlotFile>& file = files[number];
        const auto size = catalog.file_sizes.find(number);
        if (size == catalog.file_sizes.end()) {
          return Status(StatusCode::Corruption, fmt::format("the catalog names file {} without a size", number));
        }
        if (file == nullptr) file = std::make_shared<SlotFile>(context_, number, size->second);
        slot->add_file({file, share.bucket, share.first_cell, share.end_cell});
      }
      bucket->slots.push_back(std::move(slot));
    }
    bucket->index_cells();
    // The older bucket is still there if the edit that removed it was lost.
    const bool has_older = table_.find(record.id) != nullptr;
    if (bucket->damaged && !has_older) table_.report_damaged(bucket->id);
    table_.adopt(std::move(bucket));
  }
  return Status::ok();
}

Status Recovery::replay_writes(std::uint64_t first_segment) {
  const auto visit = [&](const Journal::Record& record) {
    return record.type == RecordType::Writes ? replay_write_record(record) : Status::ok();
  };
  FJORD_TRY(journal_.replay(first_segment, visit).status());
  for (const auto& [uid, bucket] : table_.by_uid()) {
    for (const auto& slot : bucket->slots) slot->adopting_info = false;
  }
  return Status::ok();
}

Status Recovery::replay_write_record(const Journal::Record& record) {
  FJORD_TRY_ASSIGN(const std::vector<JournalWrite> writes, decode_writes(record.meta, record.parts));
  for (const JournalWrite& write : writes) {
    Bucket* bucket = table_.find_successor(write.uid, write.entry.gid);
    if (bucket == nullptr) continue;  // The bucket was deleted later.
    Slot& slot = bucket->slot_for(write.entry.gid);
    FJORD_TRY(table_.load(slot));
    // The journal's copy is the better one if that in the file does not verify: the file may have been repaired by it.
    const bool is_bad = slot.has_bad_copy(write.entry);
    if (is_bad) slot.set_suspect();
    slot.stage_stored(write.entry, write.header, write.body, is_bad || bucket->damaged || slot.is_damaged());
    if (context_.stats.held_bytes <= context_.options.limits.held_bytes_max) continue;
    const Status status = checkpointer_.flush_slot(*bucket, slot);
    // On a full disk the replayed writes stay in memory.
    if (!status && status.code() != StatusCode::NoSpace) return status;
  }
  return Status::ok();
}

/// Removes slotfiles to which nothing refers: an interrupted change left them, or they were already to be removed.
Status Recovery::remove_leftovers() {
  std::set<std::uint32_t> known;
  for (const auto& [uid, bucket] : table_.by_uid()) {
    for (const auto& slot : bucket->slots) {
      for (const auto& file : slot->files()) known.insert(file->number());
    }
  }
  FJORD_TRY_ASSIGN(const auto names, context_.env.list_directory(context_.options.directory));
  bool durable = false;
  for (const std::string& name : names) {
    const std::optional<std::uint32_t> number = parse_slotfile_name(name);
    const bool ours = number && *number % context_.options.stripes == context_.options.stripe;
    if (!ours || known.contains(*number)) continue;
    // The journal shows that the file is not needed. The journal is synced first, because the previous process may not
    // have synced it.
    if (!std::exchange(durable, true)) FJORD_TRY(journal_.sync());
    FJORD_TRY(context_.env.remove_file(context_.path(name)));
    ++context_.stats.leftovers_removed;
  }
  return Status::ok();
}

}  // namespace fjord::slotfile
